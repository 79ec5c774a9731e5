//! A column of names that recur: services, operations, codes. Each distinct name is stored once in a batch, and each
//! row has a number.

use super::column::Kind;
use arrow::array::builder::NullBufferBuilder;
use arrow::array::{ArrayRef, DictionaryArray, Int32Array, StringBuilder};
use arrow::datatypes::{DataType, Int32Type};
use hashbrown::HashTable;
use std::hash::BuildHasher;
use std::sync::Arc;

/// A column of names.
#[derive(Default)]
pub(crate) struct Name {
    hasher: foldhash::fast::RandomState,
    /// The numbers of names, found by their hash.
    known: HashTable<i32>,
    names: StringBuilder,
    /// The number of each row.
    numbers: Vec<i32>,
    nulls: Option<NullBufferBuilder>,
}

impl Name {
    /// Returns the number of a name, and assigns one to a new name.
    #[inline]
    fn number(&mut self, name: &str) -> i32 {
        // More often than not, the name is that of the row before.
        if let Some(&last) = self.numbers.last()
            && name_at(&self.names, last) == Some(name.as_bytes())
        {
            return last;
        }
        let Self { hasher, known, names, .. } = self;
        let hash = hasher.hash_one(name.as_bytes());
        if let Some(&number) = known.find(hash, |&number| name_at(names, number) == Some(name.as_bytes())) {
            return number;
        }
        let number = i32::try_from(known.len()).unwrap_or(i32::MAX);
        names.append_value(name);
        known.insert_unique(hash, number, |&number| {
            hasher.hash_one(name_at(names, number).unwrap_or_default())
        });
        number
    }

    /// Returns the builder of nulls, which is created for the first null.
    fn nulls(&mut self) -> &mut NullBufferBuilder {
        let rows = self.numbers.len();
        self.nulls.get_or_insert_with(|| {
            let mut nulls = NullBufferBuilder::new(rows);
            nulls.append_n_non_nulls(rows);
            nulls
        })
    }
}

fn name_at(names: &StringBuilder, number: i32) -> Option<&[u8]> {
    let place = usize::try_from(number).ok()?;
    let ends = names.offsets_slice();
    let (start, end) = (*ends.get(place)?, *ends.get(place + 1)?);
    names.values_slice().get(usize::try_from(start).ok()?..usize::try_from(end).ok()?)
}

impl Kind for Name {
    type Cell<'a> = &'a str;

    fn data_type() -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }

    #[inline]
    fn push(&mut self, cell: Option<&str>) {
        match cell {
            Some(name) => {
                let number = self.number(name);
                if let Some(nulls) = &mut self.nulls {
                    nulls.append_non_null();
                }
                self.numbers.push(number);
            }
            None => {
                self.nulls().append_null();
                self.numbers.push(0);
            }
        }
    }

    fn finish(&mut self) -> ArrayRef {
        self.known.clear();
        let nulls = self.nulls.take().and_then(|mut nulls| nulls.finish());
        let numbers = Int32Array::new(std::mem::take(&mut self.numbers).into(), nulls);
        Arc::new(DictionaryArray::<Int32Type>::new(numbers, Arc::new(self.names.finish())))
    }
}
