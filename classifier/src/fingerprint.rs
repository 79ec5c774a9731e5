//! The fingerprint: a stable 64-bit hash that is equal for two events of the same problem.

use xxhash_rust::xxh3::xxh3_64;

/// The byte that separates the parts. No text contains it, so that `a` + `bc` differs from `ab` + `c`.
const SEPARATOR: u8 = 0xff;

/// Hashes the identity of a group. It is stable across runs, machines and versions, which a golden file verifies.
#[must_use]
pub fn compute(canonical: &str, service: &str, operation: &str, template: &str) -> u64 {
    compute_with_buffer(&mut Vec::new(), canonical, service, operation, template)
}

/// Does the same as [`compute`], with a reusable buffer.
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
