//! Serialization of JSON: strings are escaped as the standard requires, numbers have their shortest form.

use super::Scalar;
use crate::swar;

/// Appends a quoted, escaped string.
pub(crate) fn string(out: &mut String, text: &str) {
    out.reserve(text.len() + 2);
    out.push('"');
    if is_plain(text.as_bytes()) {
        out.push_str(text);
    } else {
        push_escaped(out, text);
    }
    out.push('"');
}

/// Reports whether a text needs no escapes, which holds for nearly all texts.
fn is_plain(text: &[u8]) -> bool {
    (0..text.len()).step_by(8).all(|offset| swar::escape_mask(swar::load(text, offset)) == 0)
}

fn push_escaped(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(needs_escape) {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            control => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.push_str("\\u00");
                out.push(char::from(HEX[usize::from(control >> 4)]));
                out.push(char::from(HEX[usize::from(control & 15)]));
            }
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// Reports whether a byte is escaped: control characters, the quote, the backslash, and DEL, so that no
/// terminal receives it raw.
pub(crate) const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\' || byte == 0x7f
}

/// Appends a scalar.
pub(crate) fn scalar(out: &mut String, value: Scalar<'_>) {
    match value {
        Scalar::Text(text) => string(out, text),
        Scalar::Signed(value) => out.push_str(itoa::Buffer::new().format(value)),
        Scalar::Unsigned(value) => out.push_str(itoa::Buffer::new().format(value)),
        Scalar::Float(value) => float(out, value),
        Scalar::Bool(value) => out.push_str(if value { "true" } else { "false" }),
        Scalar::Null => out.push_str("null"),
    }
}

/// Appends a number. Whole numbers have no fraction; a number that is not finite becomes `null`.
pub(crate) fn float(out: &mut String, value: f64) {
    match super::exact_integer(value) {
        Some(whole) => out.push_str(itoa::Buffer::new().format(whole)),
        None if value.is_finite() => out.push_str(zmij::Buffer::new().format(value)),
        None => out.push_str("null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_parses_back() {
        for text in ["plain", "a\"b\\c", "\u{0}\u{1f}\u{7f}\n\r\t", "naïve ☃ 🦀", ""] {
            let mut out = String::new();
            string(&mut out, text);
            assert_eq!(serde_json::from_str::<String>(&out).expect(&out), text);
        }
    }

    #[test]
    fn numbers_are_short() {
        let written = |value| {
            let mut out = String::new();
            float(&mut out, value);
            out
        };
        assert_eq!(written(404.0), "404");
        assert_eq!(written(0.1), "0.1");
        assert_eq!(written(f64::NAN), "null");
    }
}
