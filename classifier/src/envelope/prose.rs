//! Detection of failures that a text states without any flag beside it.

use crate::registry::Registry;

/// Reports whether a text as a whole states a failure, rather than being data that mentions one.
pub(super) fn is_failure(registry: &Registry, text: &str) -> bool {
    registry.evidence().opens_as_failure(text)
}
