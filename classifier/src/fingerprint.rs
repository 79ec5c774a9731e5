//! The fingerprint: a stable 64-bit hash that says two events are the same thing going wrong again.

use xxhash_rust::xxh3::xxh3_64;

/// Parts are kept apart by a byte that no text holds, so that `a` + `bc` is not `ab` + `c`.
const SEPARATOR: u8 = 0xff;

/// Hashes what identifies a group. Stable across runs, machines and versions; a golden file holds it.
#[must_use]
pub fn compute(canonical: &str, service: &str, operation: &str, template: &str) -> u64 {
    compute_with_buffer(&mut Vec::new(), canonical, service, operation, template)
}

/// The same, in a buffer that stays.
pub(crate) fn compute_with_buffer(
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
        assert_ne!(compute("A", "bc", "", ""), compute("A", "b", "c", ""));
        assert_ne!(compute("A", "", "b", ""), compute("A", "b", "", ""));
        assert_eq!(compute("A", "b", "c", "d"), compute("A", "b", "c", "d"));
    }
}
