//! Values that are assigned to a secret key, `password=...` or `"api_key": "..."`, recognized from the sign between
//! them.

use super::candidates::mark_length;
use super::keys::{self, KeyKind};
use super::phrases;
use super::scan::{Found, Mark, REACH, is_run};
use super::schemes::{bearer, header_value, takes_whole_line};
use super::values::{is_harmless, is_prose, is_random, is_remark, looks_secret};
use super::{Redactor, Rule};
use std::ops::Range;

impl Redactor {
    /// Returns the secret that a `=` or `:` assigns. `sign` is its position; it may also be written as `%3D` or `%3A`.
    pub(super) fn assignment(&self, bytes: &[u8], sign: Range<usize>, from: usize) -> Option<Found> {
        if !self.is_on(Rule::Assignment) {
            return None;
        }
        let span = key_before(bytes, sign.start, from)?;
        let key = &bytes[span.clone()];
        let kind = match self.keys.kind(key) {
            KeyKind::Secret if is_in_arn(bytes, span.start) => return None,
            KeyKind::Plain if self.is_longer_key(bytes, &span, from) => KeyKind::Secret,
            kind => kind,
        };
        match kind {
            KeyKind::Secret | KeyKind::Token => self.telling(bytes, &span, sign, kind),
            KeyKind::Random => random_value(bytes, sign, 16),
            _ if is_in_query(bytes, span.start) && keys::is_query_key(key) => random_value(bytes, sign, 8),
            _ if keys::is_name_key(key) => self.named_value(bytes, sign),
            _ => None,
        }
    }

    /// Returns true if the key consists of two or three words and is secret: `api key`, `mot de passe`.
    fn is_longer_key(&self, bytes: &[u8], key: &Range<usize>, from: usize) -> bool {
        let last = &bytes[key.clone()];
        if !phrases::ends_longer_key(last) {
            return false;
        }
        let mut start = key.start;
        for _ in 0..2 {
            let Some(space) =
                start.checked_sub(1).filter(|at| *at > from && matches!(bytes[*at], b' ' | b'-' | b'+'))
            else {
                return false;
            };
            let word = bytes[from.max(space.saturating_sub(32))..space]
                .iter()
                .rev()
                .take_while(|byte| is_key(**byte))
                .count();
            start = space - word;
            if word == 0 {
                return false;
            }
            let is_secret = matches!(self.keys.kind(&bytes[start..key.end]), KeyKind::Secret);
            if is_secret {
                return true;
            }
        }
        false
    }

    fn telling(&self, bytes: &[u8], key: &Range<usize>, sign: Range<usize>, kind: KeyKind) -> Option<Found> {
        let header = takes_whole_line(&bytes[key.clone()]).then(|| header_value(bytes, sign.end)).flatten();
        if let Some(span) = header {
            return Some((span, Mark::Redacted));
        }
        let value = Value::after(bytes, sign.clone())?;
        let text = &bytes[value.span.clone()];
        if is_harmless(text) {
            // In `token: Bearer ...`, the scheme itself is not a secret, but it introduces one.
            return self.beyond_the_word(bytes, &value);
        }
        if value.is_quoted && is_remark(text) {
            return None;
        }
        let is_certain = value.is_quoted || bytes[sign.start] != b':' && !sign_is_colon(bytes, &sign);
        if !is_certain && !looks_secret(text) && !is_whole_line(bytes, key, &value) {
            return None;
        }
        // In `Unexpected token: '}'`, "token" has another meaning.
        if kind == KeyKind::Token && bytes[sign.start] == b':' && (text.len() < 6 || is_code(text)) {
            return None;
        }
        if let Some(found) = self.beyond_the_word(bytes, &value) {
            return Some(found);
        }
        let mark = if kind == KeyKind::Token { Mark::Token } else { Mark::Redacted };
        Some((value.span, mark))
    }

    /// Finds the secret in `token: Bearer ...` and `key=-----BEGIN ...`, where the first word of the value only
    /// introduces it.
    fn beyond_the_word(&self, bytes: &[u8], value: &Value) -> Option<Found> {
        let text = &bytes[value.span.clone()];
        if text.starts_with(b"-----BEGIN") {
            return self.private_key(bytes, value.span.start);
        }
        let found = bearer(bytes, value.span.clone());
        found.filter(|(secret, _)| secret.start >= value.span.end)
    }

    /// Finds the value in `"name": "Authorization", "value": "..."`, and the same in attributes of an XML element.
    fn named_value(&self, bytes: &[u8], sign: Range<usize>) -> Option<Found> {
        let name = Value::after(near(bytes, &sign), sign).filter(|name| name.span.len() <= 64)?;
        if !matches!(self.keys.kind(&bytes[name.span.clone()]), KeyKind::Secret | KeyKind::Token) {
            return None;
        }
        let skipped = |from: usize, signs: &[u8]| {
            from + bytes[from..].iter().take(16).take_while(|byte| signs.contains(byte)).count()
        };
        let next = skipped(name.span.end, b"\\\"' ,\n\t");
        // An escaped newline in JSON text.
        let next = match bytes.get(next..) {
            Some([b'n', b' ', ..]) if bytes[next - 1] == b'\\' => skipped(next + 1, b" "),
            _ => next,
        };
        // The value is the content of an XML element.
        if bytes.get(next) == Some(&b'>') {
            let length = bytes[next + 1..].iter().take(REACH).position(|&byte| byte == b'<')?;
            let value = next + 1..next + 1 + length;
            return (length > 0 && !is_harmless(&bytes[value.clone()])).then_some((value, Mark::Redacted));
        }
        let key = bytes[next..].iter().take(16).take_while(|byte| is_key(**byte)).count();
        let sign = skipped(next + key, b"\\\"' ");
        if !keys::is_value_key(&bytes[next..next + key]) || !matches!(bytes.get(sign), Some(b':' | b'=')) {
            return None;
        }
        let value = Value::after(bytes, sign..sign + 1)?;
        (!is_harmless(&bytes[value.span.clone()])).then_some((value.span, Mark::Redacted))
    }

    /// Finds the value in `["Authorization", "..."]` and `('x-api-key', '...')`, starting from the bracket.
    pub(super) fn pair(&self, bytes: &[u8], bracket: usize) -> Option<Found> {
        let (name, end) = quoted_at(bytes, bracket + 1)?;
        if name.len() > 64 || !matches!(self.keys.kind(&bytes[name]), KeyKind::Secret | KeyKind::Token) {
            return None;
        }
        let comma = end + bytes[end..].iter().take(8).take_while(|&&byte| byte == b' ').count();
        if bytes.get(comma) != Some(&b',') || !self.is_on(Rule::Assignment) {
            return None;
        }
        let start =
            comma + 1 + bytes[comma + 1..].iter().take(8).take_while(|byte| b" \n[".contains(byte)).count();
        let (value, _) = quoted_at(bytes, start)?;
        super::pairs::is_value(&bytes[value.clone()]).then_some((value, Mark::Redacted))
    }
}

/// Returns the range of a quoted text, which may have a prefix letter such as `b`, and the end of its closing quote.
fn quoted_at(bytes: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
    let letter = usize::from(matches!(bytes.get(at..), Some([b'b' | b'u' | b'r', b'"' | b'\'', ..])));
    let escapes = bytes[at + letter..].iter().take(4).take_while(|&&byte| byte == b'\\').count();
    let start = at + letter + escapes;
    let quote = *bytes.get(start).filter(|byte| matches!(byte, b'"' | b'\''))?;
    let length = bytes[start + 1..].iter().take(16 << 10).position(|&byte| byte == quote)?;
    let length = length.checked_sub(escapes)?;
    Some((start + 1..start + 1 + length, start + 1 + length + escapes + 1))
}

/// Returns the value after a sign if it looks randomly generated.
fn random_value(bytes: &[u8], sign: Range<usize>, at_least: usize) -> Option<Found> {
    // Only a value that looks random is read to its end, which may be far away.
    let value = Value::after(near(bytes, &sign), sign.clone())?;
    if !is_random(&bytes[value.span], at_least) {
        return None;
    }
    Value::after(bytes, sign).map(|value| (value.span, Mark::Redacted))
}

/// The number of bytes that are sufficient to judge whether a value looks random, or to read a name.
const NEAR: usize = 96;

/// Returns a text up to a bounded distance after a sign.
fn near<'t>(bytes: &'t [u8], sign: &Range<usize>) -> &'t [u8] {
    &bytes[..bytes.len().min(sign.end + NEAR)]
}

fn sign_is_colon(bytes: &[u8], sign: &Range<usize>) -> bool {
    sign.len() > 1 && matches!(bytes[sign.end - 1], b'A' | b'a')
}

/// Returns true for the code of a token error, such as `NOT_FOUND` or `expired_token`.
fn is_code(text: &[u8]) -> bool {
    text.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_')
        || text.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_')
}

/// Returns true if the assignment is a line of its own, as in configuration files: `password: swordfish`.
fn is_whole_line(bytes: &[u8], key: &Range<usize>, value: &Value) -> bool {
    let before = bytes[..key.start].iter().rev().take(64).find(|byte| !matches!(byte, b' ' | b'\t' | b'-'));
    let after = bytes[value.span.end..].iter().take(64).find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
    let text = &bytes[value.span.clone()];
    // In JSON text, a quote ends the line.
    matches!(before, None | Some(b'\n' | b'"'))
        && matches!(after, None | Some(b'\n' | b'"' | b'\\'))
        && text.len() >= 4
        && text.last() != Some(&b'.')
        && !is_prose(text)
}

/// Returns true if the key is a query parameter (`?key=`, `&code=`), also if the separator is escaped or encoded.
fn is_in_query(bytes: &[u8], key: usize) -> bool {
    let before = &bytes[..key];
    matches!(before.last(), Some(b'?' | b'&'))
        || [&b"&amp;"[..], b"%26", b"%3F", b"%3f", b"\\u0026"].iter().any(|sign| before.ends_with(sign))
}

/// Returns true inside an ARN such as `arn:aws:secretsmanager:eu-west-1:1:secret:name`, which names a secret without
/// containing it.
fn is_in_arn(bytes: &[u8], key: usize) -> bool {
    let before = &bytes[key.saturating_sub(REACH)..key];
    before.ends_with(b":")
        && before
            .split(|byte| byte.is_ascii_whitespace() || b"\"'(=".contains(byte))
            .next_back()
            .is_some_and(|run| run.starts_with(b"arn:"))
}

const fn is_key(byte: u8) -> bool {
    is_run(byte) || !byte.is_ascii()
}

/// Returns the key in front of a sign, skipping quotes, brackets and backslashes.
fn key_before(bytes: &[u8], sign: usize, from: usize) -> Option<Range<usize>> {
    let base = from.max(sign.saturating_sub(REACH));
    let before = &bytes[base..sign];
    let mut end =
        before.iter().rposition(|byte| !matches!(byte, b' ' | b'"' | b'\'' | b'\\' | b']' | b'`'))? + 1;
    while let Some(rest) =
        [&b"%22"[..], b"%27", b"%20"].iter().find_map(|code| before[..end].strip_suffix(*code))
    {
        end = rest.len();
    }
    let mut start = before[..end].iter().rposition(|&byte| !is_key(byte)).map_or(0, |at| at + 1);
    let key = &before[start..end];
    match start.checked_sub(1).map(|at| before[at]) {
        // Without this, the digits of an escape such as `\u0026` would become part of the key.
        Some(b'\\') if key.first() == Some(&b'u') && key.len() > 5 => start += 5,
        Some(b'\\') if key.len() > 2 && matches!(key[0], b'n' | b'r' | b't') => start += 1,
        // The same applies to the digits of `%26`.
        Some(b'%') if key.len() > 2 && key[..2].iter().all(u8::is_ascii_hexdigit) => start += 2,
        _ => {}
    }
    (start < end).then_some(base + start..base + end)
}

/// The value after a sign.
pub(super) struct Value {
    pub(super) span: Range<usize>,
    /// True if the value is quoted or in brackets, so that its form does not matter.
    pub(super) is_quoted: bool,
}

impl Value {
    pub(super) fn after(bytes: &[u8], sign: Range<usize>) -> Option<Self> {
        if sign.len() > 1 {
            return Self::encoded(bytes, sign.end);
        }
        let start = sign.end + skipped(&bytes[sign.end..]);
        let rest = &bytes[start..];
        if mark_length(rest).is_some() {
            return None;
        }
        // In JSON text that was encoded again, backslashes precede the quotes.
        let escapes = rest.iter().take_while(|&&byte| byte == b'\\').count();
        let (offset, length, is_quoted) = match rest.get(escapes) {
            Some(&quote @ (b'"' | b'\'' | b'`')) => {
                (escapes + 1, quoted_length(&rest[escapes + 1..], quote, escapes), true)
            }
            Some(b'[' | b'{') if !is_template(rest) => (0, bracketed_length(rest), true),
            _ => (0, bare_length(rest), false),
        };
        let span = start + offset..start + offset + length;
        (length > 0).then_some(Self { span, is_quoted })
    }

    /// Returns a percent-encoded value, which ends at an encoded or literal delimiter.
    fn encoded(bytes: &[u8], after: usize) -> Option<Self> {
        let mut start = after;
        let is_space = |at: usize| {
            [&b"%20"[..], b"%22", b"%27", b"%5B"].iter().any(|code| bytes[at..].starts_with(code))
        };
        while is_space(start) {
            start += 3;
        }
        start += usize::from(bytes.get(start) == Some(&b'+'));
        let rest = &bytes[start..];
        let ends = |at: usize| {
            let byte = rest[at];
            let code = || rest.get(at + 1..at + 3).unwrap_or_default().to_ascii_uppercase();
            byte.is_ascii_whitespace()
                || b"&\"'<>,;)".contains(&byte)
                || byte == b'%' && rest[at..].starts_with(b"%2526")
                || byte == b'%'
                    && [&b"26"[..], b"22", b"27", b"2C", b"3B", b"7D", b"0A", b"0D", b"20", b"5D"]
                        .contains(&&code()[..])
        };
        let length = (0..rest.len()).find(|&at| ends(at)).unwrap_or(rest.len());
        let is_quoted = start > after;
        (length > 0).then_some(Self { span: start..start + length, is_quoted })
    }
}

/// Returns the length of the text between a sign and its value: spaces, the rest of the sign, a new line with an
/// indent, the name of a type, the letter in front of a quote.
fn skipped(rest: &[u8]) -> usize {
    let mut length = rest.iter().take_while(|byte| b" =:>\t".contains(byte)).count();
    length += line_below(&rest[length..]);
    let after = &rest[length..];
    length
        + match after {
            [b'b' | b'u' | b'r' | b'f' | b'@' | b'N', b'"' | b'\'', ..] => 1,
            [b'S', b'o', b'm', b'e', b'(', ..] => 5,
            [b's', b't', b'r', b'i', b'n', b'g', b'(', ..] => wrapped(after),
            [first, ..] if first.is_ascii_alphabetic() => call_length(after),
            _ => 0,
        }
}

/// Returns the length up to a value on the next line, in `key: |` or `key:` followed by a line that is not a key
/// itself. In JSON text the new line is an escape.
fn line_below(after: &[u8]) -> usize {
    let block = match after {
        [b'|' | b'>', b'-' | b'+', ..] => 2,
        [b'|' | b'>', ..] => 1,
        _ => 0,
    };
    let newline = match &after[block..] {
        [b'\n', ..] => 1,
        [b'\r', b'\n', ..] | [b'\\', b'n', ..] => 2,
        _ => return 0,
    };
    let indent = after[block + newline..].iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    let line = &after[block + newline + indent..];
    let key = line.iter().take(64).take_while(|byte| is_key(**byte)).count();
    let is_key = block == 0 && key > 0 && matches!(line.get(key), Some(b':' | b'='));
    if indent + block == 0 || is_key { 0 } else { block + newline + indent }
}

/// Returns the length of the type in `string(7) "..."`, as PHP prints values.
fn wrapped(rest: &[u8]) -> usize {
    match rest.iter().take(24).position(|&byte| byte == b'"') {
        Some(quote) if rest[..quote].ends_with(b") ") => quote,
        Some(quote) if rest[..quote].ends_with(b") \\") => quote - 1,
        _ => 0,
    }
}

/// Returns the length of the type in front of a quoted value: `SecretString("...")`.
fn call_length(rest: &[u8]) -> usize {
    let name = rest.iter().take(24).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    match &rest[name..] {
        [b'(', b'"' | b'\'', ..] => name + 1,
        _ => 0,
    }
}

/// Returns true for a template such as `{{ name }}`, which is a placeholder for a value.
fn is_template(rest: &[u8]) -> bool {
    rest.starts_with(b"{{")
}

/// Returns the length up to the closing quote, which has no more backslashes in front of it than the opening one.
fn quoted_length(rest: &[u8], quote: u8, escapes: usize) -> usize {
    let mut backslashes = 0;
    for (at, &byte) in rest.iter().enumerate() {
        if byte == quote && backslashes <= escapes {
            return at - backslashes;
        }
        backslashes = if byte == b'\\' { backslashes + 1 } else { 0 };
    }
    rest.len()
}

/// Returns the length up to the bracket that closes the first one.
fn bracketed_length(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    for (at, &byte) in rest.iter().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' if depth <= 1 => return at + 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the length of an unquoted value, which ends like a word of a query, a list or a sentence.
pub(super) fn bare_length(rest: &[u8]) -> usize {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b",;&)}]>\"'\\<`|".contains(byte);
    // A reference such as `${NAME}` contains a bracket.
    let from = if rest.starts_with(b"${") || rest.starts_with(b"{{") || rest.starts_with(b"<") {
        rest.iter().take(64).position(|byte| matches!(byte, b'}' | b'>')).unwrap_or(0)
    } else {
        0
    };
    let from = from + usize::from(rest[from..].starts_with(b"}}")) * 2;
    rest[from..].iter().position(ends).map_or(rest.len(), |at| from + at + usize::from(from > 0 && at == 0))
}
