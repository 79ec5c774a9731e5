//! Numbers for the names of rows of traffic, so that a call can be corrected later without keeping its names.
//!
//! Invariant: memory is bounded. When it is used up, all names are forgotten; calls that were counted under them stay as
//! they are.

use classifier::Dialect;
use hashbrown::HashMap;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

/// The largest number of names.
const MAX_NAMES: usize = 16_384;

/// What the calls of a row of traffic share, except their minute and outcome.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Names {
    pub(super) service: Option<Box<str>>,
    pub(super) environment: Option<Box<str>>,
    pub(super) operation: Option<Box<str>>,
    pub(super) dialect: Dialect,
    pub(super) span_kind: Option<Box<str>>,
}

/// The names that have numbers.
#[derive(Debug, Default)]
pub(super) struct TrafficNames(Mutex<Numbered>);

#[derive(Debug, Default)]
struct Numbered {
    last: u32,
    numbers: HashMap<Arc<Names>, NonZeroU32>,
    names: HashMap<NonZeroU32, Arc<Names>>,
}

impl TrafficNames {
    /// Returns the number of names. A number is never used again; without numbers left there is none.
    pub(super) fn number_of(&self, names: Names) -> Option<NonZeroU32> {
        let mut numbered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = numbered.numbers.get(&names) {
            return Some(*number);
        }
        if numbered.names.len() >= MAX_NAMES {
            numbered.numbers.clear();
            numbered.names.clear();
        }
        let number = NonZeroU32::new(numbered.last.checked_add(1)?)?;
        let names = Arc::new(names);
        numbered.last = number.get();
        numbered.names.insert(number, Arc::clone(&names));
        numbered.numbers.insert(names, number);
        Some(number)
    }

    /// Returns the names with a number, unless they were forgotten.
    pub(super) fn get(&self, number: NonZeroU32) -> Option<Arc<Names>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).names.get(&number).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(operation: usize) -> Names {
        let operation = Some(operation.to_string().into());
        Names { service: None, environment: None, operation, dialect: Dialect::Jsonrpc, span_kind: None }
    }

    #[test]
    fn equal_names_have_one_number_until_memory_is_used_up() {
        let numbered = TrafficNames::default();
        let first = numbered.number_of(names(0)).unwrap();
        assert_eq!(numbered.number_of(names(0)), Some(first));
        assert_eq!(*numbered.get(first).unwrap(), names(0));
        for operation in 1..=MAX_NAMES {
            numbered.number_of(names(operation));
        }
        assert_eq!(numbered.get(first), None, "a forgotten number means nothing else");
        assert_ne!(numbered.number_of(names(0)), Some(first));
        assert!(numbered.0.lock().unwrap().names.len() <= MAX_NAMES);
    }
}
