//! Whether an unflagged text says that a call failed.

use crate::registry::Registry;

/// Returns true for a text that, as a whole, states a failure, rather than being data that mentions one.
pub(super) fn is_failure(registry: &Registry, text: &str) -> bool {
    registry.evidence().opens_as_failure(text)
}
