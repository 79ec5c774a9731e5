//! The kinds of columns: what they take, and how they keep it in Arrow.
//!
//! Words of closed lists keep their place in the list (a byte a row); names that recur keep a number each;
//! everything else is kept as it is.

use arrow::array::{
    ArrayRef, BooleanBuilder, DictionaryArray, Float64Builder, Int8Builder, Int32Builder, Int64Builder,
    ListBuilder, StringArray, StringBuilder, StringDictionaryBuilder, TimestampMicrosecondBuilder,
};
use arrow::datatypes::{DataType, Field, Int8Type, Int32Type, TimeUnit};
use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, LazyLock};
use taxonomy::{Category, DangerLevel, Dialect, Finding, Findings, Kind as EventKind, Outcome, QuotaLevel};
use taxonomy::{Recovery, Severity};

/// One kind of column.
pub trait Kind {
    /// What a cell is made from.
    type Cell<'a>;
    /// The cells are JSON text.
    const IS_JSON: bool = false;
    /// The Arrow type.
    fn data_type() -> DataType;
    /// Appends a cell.
    fn push(&mut self, cell: Option<Self::Cell<'_>>);
    /// The cells as an array; empty afterwards.
    fn finish(&mut self) -> ArrayRef;
}

/// Declares kinds that an Arrow builder serves as it is.
macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident($builder:ty, $cell:ty, $data_type:expr);)+) => { $(
        $(#[$doc])*
        #[derive(Debug, Default)]
        pub struct $name($builder);

        impl Kind for $name {
            type Cell<'a> = $cell;

            fn data_type() -> DataType {
                $data_type
            }

            fn push(&mut self, cell: Option<$cell>) {
                self.0.append_option(cell);
            }

            fn finish(&mut self) -> ArrayRef {
                Arc::new(self.0.finish())
            }
        }
    )+ };
}

plain! {
    /// True or false.
    Flag(BooleanBuilder, bool, DataType::Boolean);
    /// A small whole number.
    Small(Int32Builder, i32, DataType::Int32);
    /// A whole number.
    Whole(Int64Builder, i64, DataType::Int64);
    /// A number.
    Number(Float64Builder, f64, DataType::Float64);
}

/// A text.
#[derive(Debug, Default)]
pub struct Text(StringBuilder);

impl Kind for Text {
    type Cell<'a> = &'a str;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn push(&mut self, cell: Option<&str>) {
        self.0.append_option(cell);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// JSON, as text.
#[derive(Debug, Default)]
pub struct Json(StringBuilder);

impl Kind for Json {
    type Cell<'a> = &'a str;
    const IS_JSON: bool = true;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn push(&mut self, cell: Option<&str>) {
        self.0.append_option(cell);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// A point in time: microseconds, UTC.
#[derive(Debug)]
pub struct Time(TimestampMicrosecondBuilder);

impl Default for Time {
    fn default() -> Self {
        Self(TimestampMicrosecondBuilder::new().with_timezone("UTC"))
    }
}

impl Kind for Time {
    type Cell<'a> = i64;

    fn data_type() -> DataType {
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
    }

    fn push(&mut self, cell: Option<i64>) {
        self.0.append_option(cell);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// A name that recurs: services, operations, codes.
#[derive(Default)]
pub struct Name(StringDictionaryBuilder<Int32Type>);

impl Kind for Name {
    type Cell<'a> = &'a str;

    fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }

    fn push(&mut self, cell: Option<&str>) {
        self.0.append_option(cell);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// An identity, as 32 hex digits.
#[derive(Debug, Default)]
pub struct Identity(StringBuilder);

impl Kind for Identity {
    type Cell<'a> = u128;

    fn data_type() -> DataType {
        DataType::Utf8
    }

    fn push(&mut self, cell: Option<u128>) {
        match cell {
            Some(id) => self.0.append_value(Hex::of(&id.to_be_bytes()).as_str()),
            None => self.0.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// A hash that recurs, as 16 hex digits.
#[derive(Default)]
pub struct Hash(StringDictionaryBuilder<Int32Type>);

impl Kind for Hash {
    type Cell<'a> = u64;

    fn data_type() -> DataType {
        Name::data_type()
    }

    fn push(&mut self, cell: Option<u64>) {
        match cell {
            Some(hash) => self.0.append_value(Hex::of(&hash.to_be_bytes()).as_str()),
            None => self.0.append_null(),
        }
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}

/// Hex digits without an allocation.
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
    /// The list, as a dictionary that all batches share.
    fn dictionary() -> &'static ArrayRef;
    /// The place in the list.
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

closed_lists!(Category, DangerLevel, Dialect, EventKind, Outcome, QuotaLevel, Recovery, Severity);

/// A word of a closed list.
#[derive(Debug)]
pub struct OneOf<W> {
    places: Int8Builder,
    list: PhantomData<W>,
}

impl<W> Default for OneOf<W> {
    fn default() -> Self {
        Self { places: Int8Builder::new(), list: PhantomData }
    }
}

impl<W: Word> Kind for OneOf<W> {
    type Cell<'a> = W;

    fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))
    }

    fn push(&mut self, cell: Option<W>) {
        self.places.append_option(cell.map(W::place));
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(DictionaryArray::<Int8Type>::new(self.places.finish(), Arc::clone(W::dictionary())))
    }
}

/// A set of findings, as a list of words.
#[derive(Debug)]
pub struct FindingWords(ListBuilder<StringBuilder>);

impl Default for FindingWords {
    fn default() -> Self {
        Self(ListBuilder::new(StringBuilder::new()).with_field(Self::item()))
    }
}

impl FindingWords {
    fn item() -> Field {
        Field::new("element", DataType::Utf8, false)
    }
}

impl Kind for FindingWords {
    type Cell<'a> = Findings;

    fn data_type() -> DataType {
        DataType::List(Arc::new(Self::item()))
    }

    fn push(&mut self, cell: Option<Findings>) {
        for finding in cell.into_iter().flat_map(Findings::iter) {
            self.0.values().append_value(Finding::as_str(finding));
        }
        self.0.append(true);
    }

    fn finish(&mut self) -> ArrayRef {
        Arc::new(self.0.finish())
    }
}
