//! Repair of numbers that exceed a 64-bit float: integers of 400 digits, `1e400`.
//!
//! JSON's grammar allows them, but parsers reject the whole document because of them. The number is kept as a
//! text, so that neither it nor the record around it is lost.

use std::borrow::Cow;

/// A number with fewer digits than this fits into a float, unless it has an exponent.
const OVERSIZED_DIGITS: usize = 300;
/// A number of at most this many characters is left unchanged, unless it has a large exponent.
const MAX_UNCHANGED_LENGTH: usize = 40;

/// Returns the document with quotes around each number that is too large for a float; borrowed if there is
/// none.
///
/// A number that fits into a float, but is written with very many digits or a very large exponent, is
/// rewritten in its shortest form.
#[must_use]
pub fn quote_oversized_numbers(document: &[u8]) -> Cow<'_, [u8]> {
    if !may_have_oversized_number(document) {
        return Cow::Borrowed(document);
    }
    let mut repaired = Vec::new();
    let (mut position, mut copied) = (0, 0);
    while let Some(byte) = document.get(position) {
        match byte {
            b'"' => position = string_end(document, position),
            b'-' | b'0'..=b'9' => {
                let length = document[position..].iter().take_while(|byte| is_number_byte(**byte)).count();
                if let Some(number) = rewrite_number(&document[position..position + length]) {
                    repaired.extend_from_slice(&document[copied..position]);
                    repaired.extend_from_slice(number.as_bytes());
                    copied = position + length;
                }
                position += length;
            }
            // No JSON number begins like this, so the bytes that follow are not one either.
            b'.' | b'+' => {
                position += document[position..].iter().take_while(|byte| is_number_byte(**byte)).count();
            }
            _ => position += 1,
        }
    }
    if copied == 0 {
        return Cow::Borrowed(document);
    }
    repaired.extend_from_slice(&document[copied..]);
    Cow::Owned(repaired)
}

/// Reports whether a document has many digits in a row, or a number with an exponent. Most documents have
/// neither, and are not scanned further.
fn may_have_oversized_number(document: &[u8]) -> bool {
    let digit_at = |position: usize| document.get(position).is_some_and(u8::is_ascii_digit);
    // A run of that many digits covers one of these positions.
    let has_run = (0..document.len())
        .step_by(OVERSIZED_DIGITS / 2)
        .any(|position| digit_at(position) && digit_at(position + 1));
    has_run
        || memchr::memchr2_iter(b'e', b'E', document).any(|position| {
            let exponent =
                position + 1 + usize::from(matches!(document.get(position + 1), Some(b'+' | b'-')));
            position > 0 && digit_at(position - 1) && digit_at(exponent)
        })
}

/// Returns the position after the string that begins at `start`.
fn string_end(document: &[u8], start: usize) -> usize {
    let mut position = start + 1;
    while let Some(offset) = document.get(position..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        position += offset;
        if document[position] == b'"' {
            return position + 1;
        }
        position += 2;
    }
    document.len()
}

fn is_number_byte(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Returns the replacement for a number, or `None` if it stays unchanged.
fn rewrite_number(number: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(number).ok().filter(|text| is_number(text))?;
    let value: f64 = text.parse().ok()?;
    if value.is_infinite() {
        return Some(format!("\"{text}\""));
    }
    let exponent =
        text.split_once(['e', 'E']).map_or(0, |(_, exponent)| exponent.trim_start_matches(['+', '-']).len());
    (text.len() > MAX_UNCHANGED_LENGTH || exponent > 2).then(|| format!("{value:e}"))
}

/// Reports whether a text is a number by the grammar of JSON. Rust accepts more than that.
fn is_number(text: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repaired(document: &str) -> String {
        String::from_utf8(quote_oversized_numbers(document.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn numbers_beyond_floats_become_texts() {
        let long = "7".repeat(400);
        for (number, expected) in [
            (long.as_str(), format!("\"{long}\"")),
            (&format!("-{long}"), format!("\"-{long}\"")),
            (&format!("{long}.5"), format!("\"{long}.5\"")),
            ("1e400", "\"1e400\"".to_owned()),
            ("-1E+99999999999999999999", "\"-1E+99999999999999999999\"".to_owned()),
            ("-0.0e-999", "-0e0".to_owned()),
            ("0e400", "0e0".to_owned()),
            ("1e-400", "0e0".to_owned()),
            ("12", "12".to_owned()),
            ("1.5e10", "1.5e10".to_owned()),
        ] {
            for (before, after) in
                [("", ""), ("[1,", ",2]"), ("{\"a\\\"\":", "}"), ("{\"e\":1e5,\"a\":\t", "\n}")]
            {
                assert_eq!(
                    repaired(&format!("{before}{number}{after}")),
                    format!("{before}{expected}{after}")
                );
            }
        }
        let tiny = format!("0.{}1", "0".repeat(400));
        assert_eq!(repaired(&tiny), "0e0");
    }

    #[test]
    fn everything_else_stays() {
        let in_text = format!("{{\"a\":\"{} 1e400\"}}", "7".repeat(400));
        for document in [
            &in_text,
            "",
            "-",
            "1e",
            "--1e400",
            "01e400",
            "1.e400",
            ".1e400",
            "1e400e400",
            "\"1e400",
            "\"\\",
            "{\"e4\":2e2}",
        ] {
            assert_eq!(repaired(document), *document);
        }
    }
}
