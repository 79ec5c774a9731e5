//! Repair of lone surrogates in JSON.
//!
//! `JSON.stringify` and `json.dumps` write `\ud83d` for a text that was cut inside an emoji. JSON's grammar
//! allows it, Unicode does not, and parsers reject the whole document. One broken character must not cost an
//! event.

use std::borrow::Cow;

/// Returns the document with a replacement character for each lone surrogate; borrowed if there is none.
#[must_use]
pub fn replace_lone_surrogates(document: &[u8]) -> Cow<'_, [u8]> {
    let mut repaired = Cow::Borrowed(document);
    let mut position = 0;
    while let Some(offset) = document.get(position..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        let escape = position + offset;
        position = escape + 2;
        let Some(unit) = code_unit_at(document, escape) else { continue };
        position = escape + 6;
        let is_pair = is_high_surrogate(unit)
            && code_unit_at(document, position).is_some_and(|next| (0xdc00..0xe000).contains(&next));
        if is_pair {
            position += 6;
        } else if (0xd800..0xe000).contains(&unit) {
            repaired.to_mut()[escape + 2..escape + 6].copy_from_slice(b"fffd");
        }
    }
    repaired
}

fn is_high_surrogate(unit: u16) -> bool {
    (0xd800..0xdc00).contains(&unit)
}

/// Returns the value of the `\uXXXX` at a position.
fn code_unit_at(document: &[u8], position: usize) -> Option<u16> {
    let digits = document.get(position..position + 6)?.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0, |unit, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_replaced_and_pairs_stay() {
        for (document, expected) in [
            (r#""cut \ud83d""#, r#""cut \ufffd""#),
            (r#""\uDE00 first""#, r#""\ufffd first""#),
            (r#""\ud83d\ude00 whole""#, r#""\ud83d\ude00 whole""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\\ud83d is text""#, r#""\\ud83d is text""#),
            (r#""\u00e9 \n \ud8""#, r#""\u00e9 \n \ud8""#),
            ("\"\\", "\"\\"),
        ] {
            assert_eq!(replace_lone_surrogates(document.as_bytes()), expected.as_bytes(), "{document}");
        }
    }
}
