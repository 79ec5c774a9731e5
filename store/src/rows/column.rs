//! The kinds of columns: the values that they take, and their Arrow representation.
//!
//! Words of closed lists are stored as their index in the list (one byte for each row); names that recur are stored as
//! numbers; all other values are stored as they are.

use super::name::Name;
use super::requests::EntryKind;
use arrow::array::builder::NullBufferBuilder;
use arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, DictionaryArray, Float64Builder, Int8Array, Int32Builder,
    Int64Array, Int64Builder, ListArray, StringArray, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int8Type, TimeUnit};
use classifier::{Category, DangerLevel, Dialect, EventKind, Fault, Finding, Findings, Outcome, QuotaLevel};
use classifier::{Recovery, Severity};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};

/// One kind of column.
pub trait Kind {
    /// The value that a cell is made from.
    type Cell<'a>;
    /// True if the cells are JSON text.
    const IS_JSON: bool = false;
    /// Returns the Arrow type.
    fn data_type() -> DataType;
    /// Appends a cell.
    fn push(&mut self, cell: Option<Self::Cell<'_>>);
    /// Returns the cells as an array; the column is empty afterwards.
    fn finish(&mut self) -> ArrayRef;
}

/// Declares kinds that use an Arrow builder directly.
///
/// Most cells of most columns are null, so nulls are only counted, and appended together when a value follows.
macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident($builder:expr => $builder_type:ty, $cell:ty, $data_type:expr, $is_json:expr);)+) => { $(
        $(#[$doc])*
        pub struct $name {
            builder: $builder_type,
            nulls: usize,
        }

        impl Default for $name {
            fn default() -> Self {
                Self { builder: $builder, nulls: 0 }
            }
        }

        impl Kind for $name {
            type Cell<'a> = $cell;
            const IS_JSON: bool = $is_json;

            fn data_type() -> DataType {
                $data_type
            }

            #[inline]
            fn push(&mut self, cell: Option<Self::Cell<'_>>) {
                let Some(cell) = cell else {
                    self.nulls += 1;
                    return;
                };
                if self.nulls > 0 {
                    self.builder.append_nulls(std::mem::take(&mut self.nulls));
                }
                self.builder.append_value(cell);
            }

            fn finish(&mut self) -> ArrayRef {
                self.builder.append_nulls(std::mem::take(&mut self.nulls));
                Arc::new(self.builder.finish())
            }
        }
    )+ };
}

plain! {
    /// True or false.
    Flag(BooleanBuilder::new() => BooleanBuilder, bool, DataType::Boolean, false);
    /// A small whole number.
    Small(Int32Builder::new() => Int32Builder, i32, DataType::Int32, false);
    /// A whole number.
    Whole(Int64Builder::new() => Int64Builder, i64, DataType::Int64, false);
    /// A number.
    Number(Float64Builder::new() => Float64Builder, f64, DataType::Float64, false);
    /// A text.
    Text(StringBuilder::new() => StringBuilder, &'a str, DataType::Utf8, false);
    /// JSON, as text.
    Json(StringBuilder::new() => StringBuilder, &'a str, DataType::Utf8, true);
    /// Bytes.
    Bytes(BinaryBuilder::new() => BinaryBuilder, &'a [u8], DataType::Binary, false);
    /// A point in time: microseconds, UTC.
    Time(
        TimestampMicrosecondBuilder::new().with_timezone("UTC") => TimestampMicrosecondBuilder,
        i64,
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        false
    );
}

/// An identity, as 32 hex digits.
#[derive(Default)]
pub struct Identity(Text);

impl Kind for Identity {
    type Cell<'a> = u128;

    fn data_type() -> DataType {
        Text::data_type()
    }

    fn push(&mut self, cell: Option<u128>) {
        match cell {
            Some(id) => self.0.push(Some(Hex::of(&id.to_be_bytes()).as_str())),
            None => self.0.push(None),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        self.0.finish()
    }
}

/// A hash that recurs, as 16 hex digits.
#[derive(Default)]
pub struct Hash(Name);

impl Kind for Hash {
    type Cell<'a> = u64;

    fn data_type() -> DataType {
        Name::data_type()
    }

    fn push(&mut self, cell: Option<u64>) {
        match cell {
            Some(hash) => self.0.push(Some(Hex::of(&hash.to_be_bytes()).as_str())),
            None => self.0.push(None),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        self.0.finish()
    }
}

/// The number of things that a row stands for. It is never null in new data, and can grow while rows are gathered.
#[derive(Default)]
pub struct Count(Vec<i64>);

impl Count {
    /// Adds to the number of things that the row stands for.
    pub(super) fn add(&mut self, row: usize, more: i64) {
        if let Some(count) = self.0.get_mut(row) {
            *count = count.saturating_add(more);
        }
    }
}

impl Kind for Count {
    type Cell<'a> = i64;

    fn data_type() -> DataType {
        DataType::Int64
    }

    #[inline]
    fn push(&mut self, cell: Option<i64>) {
        self.0.push(cell.unwrap_or(1));
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(Int64Array::from(std::mem::take(&mut self.0)))
    }
}

/// Formats hex digits without an allocation.
struct Hex {
    digits: [u8; 32],
    length: usize,
}

impl Hex {
    fn of(bytes: &[u8]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut digits = [b'0'; 32];
        for (pair, byte) in digits.chunks_exact_mut(2).zip(bytes) {
            pair[0] = DIGITS[usize::from(byte >> 4)];
            pair[1] = DIGITS[usize::from(byte & 15)];
        }
        Self { digits, length: 2 * bytes.len().min(16) }
    }

    fn as_str(&self) -> &str {
        std::str::from_utf8(&self.digits[..self.length]).unwrap_or_default()
    }
}

/// A closed list of words.
pub trait Word: Copy + fmt::Debug + 'static {
    /// Returns the list, as a dictionary that all batches share.
    fn dictionary() -> &'static ArrayRef;
    /// Returns the index in the list.
    fn place(self) -> i8;
}

macro_rules! closed_lists {
    ($($name:ident),+) => { $(
        impl Word for $name {
            fn dictionary() -> &'static ArrayRef {
                static WORDS: LazyLock<ArrayRef> = LazyLock::new(|| {
                    Arc::new(StringArray::from_iter_values($name::ALL.iter().map(|word| word.as_str())))
                });
                &WORDS
            }

            fn place(self) -> i8 {
                self as i8
            }
        }
    )+ };
}

closed_lists!(
    Category,
    DangerLevel,
    Dialect,
    EntryKind,
    EventKind,
    Fault,
    Finding,
    Outcome,
    QuotaLevel,
    Recovery,
    Severity
);

/// A word of a closed list.
pub struct OneOf<W> {
    places: Vec<i8>,
    nulls: NullBufferBuilder,
    list: PhantomData<W>,
}

impl<W> Default for OneOf<W> {
    fn default() -> Self {
        Self { places: Vec::new(), nulls: NullBufferBuilder::new(0), list: PhantomData }
    }
}

impl<W: Word> Kind for OneOf<W> {
    type Cell<'a> = W;

    fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))
    }

    #[inline]
    fn push(&mut self, cell: Option<W>) {
        self.nulls.append(cell.is_some());
        self.places.push(cell.map_or(0, W::place));
    }

    fn finish(&mut self) -> ArrayRef {
        let places = Int8Array::new(std::mem::take(&mut self.places).into(), self.nulls.finish());
        Arc::new(DictionaryArray::<Int8Type>::new(places, Arc::clone(W::dictionary())))
    }
}

/// A set of findings, as a list of words.
pub struct FindingWords {
    places: Vec<i8>,
    ends: Vec<i32>,
}

impl Default for FindingWords {
    fn default() -> Self {
        Self { places: Vec::new(), ends: vec![0] }
    }
}

impl FindingWords {
    fn item() -> Arc<Field> {
        Arc::new(Field::new("element", OneOf::<Finding>::data_type(), false))
    }
}

impl Kind for FindingWords {
    type Cell<'a> = Findings;

    fn data_type() -> DataType {
        DataType::List(Self::item())
    }

    #[inline]
    fn push(&mut self, cell: Option<Findings>) {
        if let Some(findings) = cell.filter(|findings| !findings.is_empty()) {
            self.places.extend(findings.iter().map(Word::place));
        }
        self.ends.push(i32::try_from(self.places.len()).unwrap_or(i32::MAX));
    }

    fn finish(&mut self) -> ArrayRef {
        let Self { places, ends } = std::mem::take(self);
        let words = DictionaryArray::<Int8Type>::new(
            Int8Array::new(places.into(), None),
            Arc::clone(Finding::dictionary()),
        );
        Arc::new(ListArray::new(Self::item(), OffsetBuffer::new(ends.into()), Arc::new(words), None))
    }
}
