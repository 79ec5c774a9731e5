//! The fingerprint: a stable 64-bit hash that says two events are the same thing going wrong again.

use xxhash_rust::xxh3::xxh3_64;

/// Parts are kept apart by a byte that no text holds, so that `a` + `bc` is not `ab` + `c`.
const SEPARATOR: u8 = 0xff;

/// Hashes what identifies a group. Stable across runs, machines and versions; a golden file holds it.
#[must_use]
pub fn of(canonical: &str, service: &str, operation: &str, template: &str) -> u64 {
    with_buffer(&mut Vec::new(), canonical, service, operation, template)
}

/// The same, in a buffer that stays.
pub(crate) fn with_buffer(
    buffer: &mut Vec<u8>,
    canonical: &str,
    service: &str,
    operation: &str,
    template: &str,
) -> u64 {
    buffer.clear();
    for part in [canonical, service, operation, template] {
        buffer.extend_from_slice(part.as_bytes());
        buffer.push(SEPARATOR);
    }
    xxh3_64(buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_together() {
        assert_ne!(of("A", "bc", "", ""), of("A", "b", "c", ""));
        assert_ne!(of("A", "", "b", ""), of("A", "b", "", ""));
        assert_eq!(of("A", "b", "c", "d"), of("A", "b", "c", "d"));
    }
}
