//! The encoding of identities of counted calls, which are stored in the WAL beside the sums.
//!
//! A successful call leaves no row, so only its identity shows that it was counted. An identity has eight bytes: with
//! a million remembered ones, a new call is taken for a duplicate about once in twenty trillion calls.

use base64::Engine;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use store::rows::CALLS;

/// The size of an identity, in bytes.
const BYTES: usize = size_of::<u64>();

/// Encodes identities as the text of a row.
pub(super) fn encode(identities: &[u64]) -> String {
    let bytes: Vec<u8> = identities.iter().flat_map(|identity| identity.to_le_bytes()).collect();
    let mut text = String::with_capacity(CALLS.len() + bytes.len().div_ceil(3) * 4 + 2);
    text.push_str(CALLS);
    BASE64_STANDARD_NO_PAD.encode_string(bytes, &mut text);
    text.push_str("\"}");
    text
}

/// Decodes identities; returns `None` for other data that is stored in the same column.
pub(super) fn decode(text: &str) -> Option<Vec<u64>> {
    let bytes = BASE64_STANDARD_NO_PAD.decode(text.strip_prefix(CALLS)?.strip_suffix("\"}")?).ok()?;
    Some(bytes.as_chunks::<BYTES>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_come_back_and_take_eleven_bytes() {
        let identities: Vec<u64> =
            (0..8192).map(|number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let text = encode(&identities);
        assert_eq!(decode(&text), Some(identities));
        assert!(text.len() < 11 * 8192, "{}", text.len());
        for other in ["{\"folded\":\"00\"}", "{\"calls\":\"!\"}", "{\"calls\":\"", ""] {
            assert_eq!(decode(other), None, "{other}");
        }
    }
}
