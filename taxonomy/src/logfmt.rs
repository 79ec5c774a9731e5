//! Logfmt: `level=INFO msg="tool call" tool=echo status=401`.
//!
//! A line is turned into the JSON object it stands for, so that everything after this point knows one
//! format only. Values stay texts, except whole numbers.

use crate::json::write;

/// Appends the object that a line stands for; false when the line is not logfmt.
pub(crate) fn to_json(line: &str, out: &mut String) -> bool {
    let mut rest = line.trim();
    let mut pairs = 0;
    out.push('{');
    while !rest.is_empty() {
        let end =
            rest.bytes().position(|byte| byte == b'=' || byte.is_ascii_whitespace()).unwrap_or(rest.len());
        let (key, after) = rest.split_at(end);
        let Some(value) = after.strip_prefix('=') else {
            // A bare word is a flag, but a line that starts with one is prose.
            if pairs == 0 {
                return false;
            }
            rest = after.trim_start();
            continue;
        };
        if !is_key(key) {
            return false;
        }
        if pairs > 0 {
            out.push(',');
        }
        write::string(out, key);
        out.push(':');
        rest = push_value(out, value).trim_start();
        pairs += 1;
    }
    out.push('}');
    pairs > 0
}

fn is_key(key: &str) -> bool {
    key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '@')
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-@/".contains(&byte))
}

/// Appends one value and returns what follows it.
fn push_value<'t>(out: &mut String, text: &'t str) -> &'t str {
    if let Some(quoted) = text.strip_prefix('"') {
        let end = closing_quote(quoted).unwrap_or(quoted.len());
        push_unescaped(out, &quoted[..end]);
        return quoted.get(end + 1..).unwrap_or_default();
    }
    let end = text.bytes().position(|byte| byte.is_ascii_whitespace()).unwrap_or(text.len());
    let (value, rest) = text.split_at(end);
    let is_number = value.len() <= 15
        && (value == "0" || !value.starts_with('0'))
        && !value.is_empty()
        && value.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        out.push_str(value);
    } else {
        write::string(out, value);
    }
    rest
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

fn push_unescaped(out: &mut String, text: &str) {
    if !text.contains('\\') {
        return write::string(out, text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, c == '\\') {
            (_, true) => match chars.next() {
                Some('n') => plain.push('\n'),
                Some('t') => plain.push('\t'),
                Some('r') => plain.push('\r'),
                Some(other) => plain.push(other),
                None => plain.push('\\'),
            },
            (c, false) => plain.push(c),
        }
    }
    write::string(out, &plain);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<&str>) {
        let mut out = String::new();
        let read = to_json(line, &mut out).then_some(out);
        assert_eq!(read.as_deref(), expected, "{line}");
    }

    #[test]
    fn pairs_become_fields() {
        check(
            r#"level=INFO msg="tool call" audit=true user=u-17 status=401 empty= zip=012"#,
            Some(
                r#"{"level":"INFO","msg":"tool call","audit":"true","user":"u-17","status":401,"empty":"","zip":"012"}"#,
            ),
        );
        check(r#"msg="say \"hi\"\n" flag n=1"#, Some(r#"{"msg":"say \"hi\"\n","n":1}"#));
        check(r#"msg="not closed"#, Some(r#"{"msg":"not closed"}"#));
    }

    #[test]
    fn prose_is_not_logfmt() {
        for line in ["", "hello world", "error: a=b", "a b=c", "=x", "1+1=2"] {
            check(line, None);
        }
    }
}
