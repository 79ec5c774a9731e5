//! Payment card numbers, which have a valid length, an issuer prefix and a valid Luhn check digit.

use super::keys::is_identifier;

/// The minimum and maximum number of digits of a card number.
const SHORTEST: usize = 13;
const LONGEST: usize = 19;

/// Returns the end of a card number that starts at `start`. Groups may be separated by spaces or dashes, or by other
/// signs if they are the groups that are printed on cards. Another number may follow after the same separator, so each
/// group may be the last.
pub(super) fn ends_at(bytes: &[u8], start: usize) -> Option<usize> {
    let mut digits = [0_u8; LONGEST];
    let mut groups = [0_u8; LONGEST];
    let (mut count, mut group) = (0, 0);
    let mut has_odd_signs = false;
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii_digit() {
            *digits.get_mut(count)? = byte - b'0';
            count += 1;
            groups[group] += 1;
            at += 1;
            let ends_a_group = bytes.get(at).is_none_or(|byte| !byte.is_ascii_alphanumeric());
            let is_printed = !has_odd_signs || is_printed_so(&groups[..=group]);
            if ends_a_group && is_printed && is_card(&digits[..count]) {
                let is_number = group == 0 && is_identified(&bytes[..start]);
                return (!is_number).then_some(at);
            }
        } else {
            let (length, is_odd) = separator(&bytes[at..])?;
            has_odd_signs |= is_odd;
            at += length;
            group += 1;
            if group >= LONGEST {
                return None;
            }
        }
    }
    None
}

/// Returns the length of the separator of two groups, and whether it is an unusual one.
fn separator(rest: &[u8]) -> Option<(usize, bool)> {
    match rest {
        [b' ' | b'-', b'0'..=b'9', ..] => Some((1, false)),
        [b' ' | b'-', b' ' | b'-', b'0'..=b'9', ..] => Some((2, true)),
        [b' ', b'-', b' ', b'0'..=b'9', ..] => Some((3, true)),
        [b'.' | b'/' | b'_' | b'+' | b',' | b'|' | b':' | b'*' | b'\t' | b'\n', b'0'..=b'9', ..] => {
            Some((1, true))
        }
        [b',', b' ', b'0'..=b'9', ..] => Some((2, true)),
        // A non-breaking space, or one of the Unicode dashes.
        [0xc2, 0xa0 | 0xb7, b'0'..=b'9', ..] => Some((2, true)),
        [0xe2, 0x80, _, b'0'..=b'9', ..] => Some((3, true)),
        [b'%', b'2', b'0' | b'D' | b'd' | b'E' | b'e', b'0'..=b'9', ..] => Some((3, true)),
        _ => None,
    }
}

/// Returns true for the groups in which numbers are printed on cards.
fn is_printed_so(groups: &[u8]) -> bool {
    matches!(groups, [4, 4, 4, 4] | [4, 6, 5] | [4, 6, 4] | [4, 4, 4, 4, 3] | [4, 4, 4, 1])
}

/// Returns true if the words in front of a number show that it identifies an order, a trace or the like.
fn is_identified(before: &[u8]) -> bool {
    const REACH: usize = 48;
    let mut rest = &before[before.len().saturating_sub(REACH)..];
    for _ in 0..2 {
        let end = rest.iter().rposition(|byte| !b" #=:\"'([\\{".contains(byte)).map_or(0, |last| last + 1);
        let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
        let start = rest[..end].iter().rposition(|byte| !is_inside(byte)).map_or(0, |last| last + 1);
        let word = &rest[start..end];
        let is_filler = ["no", "no.", "nr", "nr.", "number", "num"]
            .iter()
            .any(|filler| word.eq_ignore_ascii_case(filler.as_bytes()));
        if !is_filler {
            return !word.is_empty() && is_identifier(word);
        }
        rest = &rest[..start];
    }
    false
}

/// Returns true if a JSON number is a card number. Only full lengths count here, because identifiers and durations are
/// numbers too.
pub(super) fn is_card_number(number: u64) -> bool {
    if !(100_000_000_000_000..10_000_000_000_000_000).contains(&number) {
        return false;
    }
    let mut digits = [0_u8; LONGEST];
    let mut count = 0;
    for byte in itoa::Buffer::new().format(number).bytes() {
        digits[count] = byte - b'0';
        count += 1;
    }
    is_card(&digits[..count])
}

fn is_card(digits: &[u8]) -> bool {
    (SHORTEST..=LONGEST).contains(&digits.len()) && has_issuer(digits) && passes_luhn(digits)
}

/// Returns true for the prefixes and lengths of the large issuers.
fn has_issuer(digits: &[u8]) -> bool {
    let four = digits[..4].iter().fold(0_u16, |number, &digit| number * 10 + u16::from(digit));
    match four {
        4000..=4999 => matches!(digits.len(), 13 | 16 | 19),
        3400..=3499 | 3700..=3799 => digits.len() == 15,
        3000..=3059 | 3600..=3699 | 3800..=3999 => digits.len() == 14 || digits.len() == 16,
        3528..=3589 | 5100..=5599 | 2221..=2720 => digits.len() == 16,
        5000..=5099 | 5600..=5899 => digits.len() >= 16,
        6000..=6099 | 6200..=6299 | 6440..=6599 => digits.len() >= 16,
        6300..=6399 | 6700..=6799 => digits.len() >= 16,
        2200..=2204 => digits.len() == 16,
        _ => false,
    }
}

fn passes_luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, &digit)| match (place % 2, u32::from(digit) * 2) {
            (0, _) => u32::from(digit),
            (_, doubled) if doubled > 9 => doubled - 9,
            (_, doubled) => doubled,
        })
        .sum();
    sum.is_multiple_of(10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_told_from_other_numbers() {
        for card in ["4111111111111111", "4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005"] {
            assert_eq!(ends_at(card.as_bytes(), 0), Some(card.len()), "{card}");
        }
        for other in [
            "4111111111111112",
            "1794824430250",
            "1794824430250000",
            "1794824430250000000",
            "41111111111111110000000",
            "4111111111111111x",
            "4111x1111 1111 1111 1111",
            "411111",
        ] {
            assert_eq!(ends_at(other.as_bytes(), 0), None, "{other}");
        }
        for card in [
            "4111.1111.1111.1111",
            "4111/1111/1111/1111",
            "3782 822463 10005",
            "4111\u{a0}1111\u{a0}1111\u{a0}1111",
        ] {
            assert_eq!(ends_at(card.as_bytes(), 0), Some(card.len()), "{card}");
        }
        for text in ["order 4111111111111111", "span_id=4111111111111111", "Order no. #4111111111111111"] {
            assert_eq!(ends_at(text.as_bytes(), text.len() - 16), None, "{text}");
        }
        for (text, end) in [
            ("4111 1111 1111 1111 12/27", 19),
            ("4111111111111111 2 times", 16),
            ("4111-1111-1111-1111-99", 19),
        ] {
            assert_eq!(ends_at(text.as_bytes(), 0), Some(end), "{text}");
        }
        assert!(is_card_number(4_111_111_111_111_111));
        assert!(!is_card_number(4_111_111_111_111_112));
        assert!(!is_card_number(42));
    }
}
