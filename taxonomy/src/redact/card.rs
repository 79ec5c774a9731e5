//! Payment card numbers: the right length and issuer prefix, and a Luhn check digit that fits.

/// The lengths that card numbers have.
const SHORTEST: usize = 13;
const LONGEST: usize = 19;

/// Where a card number that starts at `start` ends, if one does. Groups may be parted by single spaces or
/// dashes; another number may follow in the same way, so each group may be the last.
pub(super) fn ends_at(bytes: &[u8], start: usize) -> Option<usize> {
    let mut digits = [0_u8; LONGEST];
    let mut count = 0;
    let mut at = start;
    while let Some(&byte) = bytes.get(at) {
        if byte.is_ascii_digit() {
            *digits.get_mut(count)? = byte - b'0';
            count += 1;
        } else if !matches!(byte, b' ' | b'-') {
            return None;
        }
        at += 1;
        let ends_a_group =
            byte.is_ascii_digit() && bytes.get(at).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        if ends_a_group && is_card(&digits[..count]) {
            return Some(at);
        }
    }
    None
}

/// A JSON number that is a card number. Only full lengths count here: identifiers and durations are
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

/// The prefixes and lengths of the large issuers.
fn has_issuer(digits: &[u8]) -> bool {
    let four = digits[..4].iter().fold(0_u16, |number, &digit| number * 10 + u16::from(digit));
    match four {
        4000..=4999 => matches!(digits.len(), 13 | 16 | 19),
        3400..=3499 | 3700..=3799 => digits.len() == 15,
        3000..=3059 | 3600..=3699 | 3800..=3999 => digits.len() == 14 || digits.len() == 16,
        3528..=3589 | 5100..=5599 | 2221..=2720 => digits.len() == 16,
        5000..=5099 | 5600..=5899 => digits.len() >= 16,
        6000..=6999 => digits.len() >= 16,
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
