//! Reads columns of names, words and hashes, which are dictionaries with small or large keys.

use arrow::array::{Array, ArrayRef, AsArray, FixedSizeBinaryArray, StringArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Int8Type, Int32Type};
use std::sync::Arc;

/// The place of names in memory: their bytes, their offsets, and their number.
pub(super) type Address = (usize, usize, usize);

/// A column of names: the place of each row's name in a list of distinct names.
pub(super) struct NamesOf<'b> {
    keys: Keys<'b>,
    nulls: Option<&'b NullBuffer>,
    /// The distinct names.
    pub(super) values: Values<'b>,
}

enum Keys<'b> {
    Small(&'b [i8]),
    Large(&'b [i32]),
}

/// The distinct names of a column, as bytes.
#[derive(Clone, Copy)]
pub(super) enum Values<'b> {
    /// Texts.
    Texts(&'b StringArray),
    /// Hashes.
    Hashes(&'b FixedSizeBinaryArray),
}

impl<'b> NamesOf<'b> {
    /// Returns the names of a column, or `None` if it has another type.
    pub(super) fn new(column: &'b ArrayRef) -> Option<Self> {
        let values = column.as_any_dictionary_opt()?.values();
        let values = match values.data_type() {
            DataType::FixedSizeBinary(_) => Values::Hashes(values.as_fixed_size_binary_opt()?),
            _ => Values::Texts(values.as_string_opt()?),
        };
        let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
        let keys = if let Some(words) = column.as_dictionary_opt::<Int8Type>() {
            Keys::Small(words.keys().values())
        } else {
            Keys::Large(column.as_dictionary_opt::<Int32Type>()?.keys().values())
        };
        Some(Self { keys, nulls, values })
    }

    /// Returns the place of a row's name in the values; `None` if it has no name.
    #[inline]
    pub(super) fn key(&self, row: usize) -> Option<usize> {
        if self.nulls.is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        match &self.keys {
            Keys::Small(keys) => keys[row].try_into().ok(),
            Keys::Large(keys) => keys[row].try_into().ok(),
        }
    }
}

impl<'b> Values<'b> {
    /// Returns the number of names.
    pub(super) fn len(self) -> usize {
        match self {
            Self::Texts(texts) => texts.len(),
            Self::Hashes(hashes) => hashes.len(),
        }
    }

    /// Returns the bytes of a name.
    pub(super) fn get(self, place: usize) -> &'b [u8] {
        match self {
            Self::Texts(texts) => texts.value(place).as_bytes(),
            Self::Hashes(hashes) => hashes.value(place),
        }
    }

    /// Returns the bytes of all names.
    pub(super) fn iter(self) -> impl Iterator<Item = &'b [u8]> {
        (0..self.len()).map(move |place| self.get(place))
    }

    /// Returns the names as an array that shares their memory, and the address of that memory. As long as one of two
    /// arrays is kept, equal addresses mean equal names.
    pub(super) fn shared(self) -> (ArrayRef, Address) {
        match self {
            Self::Texts(texts) => {
                let offsets = texts.value_offsets().as_ptr() as usize;
                (Arc::new(texts.clone()), (texts.values().as_ptr() as usize, offsets, texts.len()))
            }
            Self::Hashes(hashes) => {
                (Arc::new(hashes.clone()), (hashes.value_data().as_ptr() as usize, 0, hashes.len()))
            }
        }
    }
}
