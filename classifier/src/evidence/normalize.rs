//! Normalizes texts to one spelling, so that each pattern has to be written only once.
//!
//! Texts and patterns are converted to the same form: lower case, identifiers split into words
//! (`ExpiredTokenException` and `expired_token_exception` both become "expired token exception"), runs of white space
//! as one space. URLs and paths become a placeholder, because their words are values.
//!
//! Invariants: the work is linear in the length of the text, and normalization is idempotent.

use std::borrow::Cow;

/// The placeholder of a URL or a path.
pub(super) const VALUE: char = '\u{1}';

/// The number of bytes that a text may grow by without another allocation.
const SPARE_BYTES: usize = 16;

/// A text in the normalized form, in which patterns are searched.
#[derive(Debug, Default)]
pub(super) struct Normalized {
    pub(super) text: String,
    /// For each byte of the text: true for a space that marks a word boundary inside an identifier.
    pub(super) is_joint: Vec<bool>,
    /// For each byte of the text: true inside a quoted value.
    pub(super) is_quoted: Vec<bool>,
}

impl Normalized {
    /// Normalizes a text and replaces URLs and paths with a placeholder.
    pub(super) fn of_text(text: &str) -> Self {
        let mut form = Self {
            text: String::with_capacity(text.len() + SPARE_BYTES),
            is_joint: Vec::with_capacity(text.len() + SPARE_BYTES),
            is_quoted: Vec::new(),
        };
        let may_hold_url = memchr::memchr_iter(b':', text.as_bytes())
            .any(|at| matches!(text.as_bytes().get(at + 1), Some(b'/' | b'\\')));
        let mut rest = text;
        let mut before = None;
        while let Some(c) = rest.chars().next() {
            let used = form.push_plain(rest, before, may_hold_url);
            if used > 0 {
                before = rest[..used].chars().next_back();
                rest = &rest[used..];
                continue;
            }
            let length = value_length(rest, before);
            if length > 0 {
                form.push(VALUE);
                before = Some(VALUE);
                rest = &rest[length..];
                continue;
            }
            let after = &rest[c.len_utf8()..];
            let used = form.push_char(before, c, after);
            before = rest[..used].chars().next_back();
            rest = &rest[used..];
        }
        form.mark_quotes();
        form
    }

    /// Appends the characters at the start of a text that need at most lower case: nearly all of most texts. Returns
    /// their number. They are those for which [`Self::push_char`] does the same, and with which no value begins.
    fn push_plain(&mut self, text: &str, before: Option<char>, may_hold_url: bool) -> usize {
        // A character beyond ASCII may be a letter, after which a hump or a value begins differently.
        let mut last = match before {
            None => b' ',
            Some(c) if c.is_ascii() => c as u8,
            Some(_) => return 0,
        };
        // What stays as it is is copied in runs.
        let mut copied = 0;
        let mut used = 0;
        for &byte in text.as_bytes() {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' if may_hold_url && !last.is_ascii_alphanumeric() => break,
                b'a'..=b'z'
                | b'0'..=b'9'
                | b'!'..=b')'
                | b'+'
                | b','
                | b':'..=b'@'
                | b'['
                | b']'
                | b'^'
                | b'{'..=b'}' => {}
                b' ' if last != b' ' && (used > 0 || !self.ends_in_space()) => {}
                b'A'..=b'Z' if !last.is_ascii_alphabetic() => {
                    self.text.push_str(&text[copied..used]);
                    self.text.push(char::from(byte.to_ascii_lowercase()));
                    copied = used + 1;
                }
                _ => break,
            }
            last = byte;
            used += 1;
        }
        self.text.push_str(&text[copied..used]);
        self.is_joint.resize(self.text.len(), false);
        used
    }

    /// Normalizes a pattern.
    pub(super) fn of_pattern(pattern: &str) -> String {
        let mut form = Self::default();
        let mut before = None;
        let mut rest = pattern;
        while let Some(c) = rest.chars().next() {
            let used = form.push_char(before, c, &rest[c.len_utf8()..]);
            before = rest[..used].chars().next_back();
            rest = &rest[used..];
        }
        form.text
    }

    /// Returns the first line without the values in quotes.
    pub(super) fn unquoted_line(&self) -> Cow<'_, str> {
        let end = self.text.find('\n').unwrap_or(self.text.len());
        if !self.is_quoted.contains(&true) {
            return Cow::Borrowed(&self.text[..end]);
        }
        let marks = self.is_quoted.iter();
        self.text[..end]
            .char_indices()
            .zip(0..)
            .filter(|((at, _), _)| marks.as_slice().get(*at) != Some(&true))
            .map(|((_, c), _)| c)
            .collect()
    }

    fn push(&mut self, c: char) {
        self.text.push(c);
        self.is_joint.resize(self.text.len(), false);
    }

    /// Returns true if another space would have no effect.
    fn ends_in_space(&self) -> bool {
        matches!(self.text.as_bytes().last(), None | Some(b' ' | b'\n'))
    }

    fn push_space(&mut self, is_joint: bool) {
        if self.ends_in_space() {
            return;
        }
        self.text.push(' ');
        self.is_joint.resize(self.text.len(), is_joint);
    }

    /// Appends one character, or an escape sequence of two. Returns the number of bytes that it consumed.
    fn push_char(&mut self, before: Option<char>, c: char, after: &str) -> usize {
        let next = after.chars().next();
        match c {
            '\\' if matches!(next, Some('n' | 'r')) => {
                self.push_newline();
                return 2;
            }
            '\\' if matches!(next, Some('"' | '\'' | '\\')) => {}
            '\n' | '\r' => self.push_newline(),
            '*' | '\u{200b}' | '\u{fe0f}' => {}
            '`' | '‘' | '’' => self.push('\''),
            '“' | '”' => self.push('"'),
            '_' => {
                let inside =
                    before.is_some_and(char::is_alphanumeric) && next.is_some_and(char::is_alphanumeric);
                self.push_space(inside);
            }
            '-' | '‑'
                if before.is_some_and(char::is_alphanumeric) && next.is_some_and(char::is_alphabetic) =>
            {
                self.push_space(false);
            }
            _ if c.is_whitespace() => self.push_space(false),
            _ => {
                if is_hump(before, c, next) {
                    self.push_space(true);
                }
                c.to_lowercase().for_each(|lower| self.push(lower));
            }
        }
        c.len_utf8()
    }

    fn push_newline(&mut self) {
        if self.text.ends_with(' ') {
            self.text.pop();
            self.is_joint.truncate(self.text.len());
        }
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.push('\n');
        }
    }

    /// Marks text in single quotes as a value. This applies to a name in a sentence, but not to a whole message.
    fn mark_quotes(&mut self) {
        const MAX_VALUE_BYTES: usize = 80;
        self.is_quoted = vec![false; self.text.len()];
        let bytes = self.text.as_bytes();
        let mut opened: Option<usize> = None;
        for at in memchr::memchr_iter(b'\'', bytes) {
            let is_alphanumeric = |index: Option<usize>| {
                index.and_then(|i| bytes.get(i)).is_some_and(u8::is_ascii_alphanumeric)
            };
            match opened {
                Some(start) if at - start <= MAX_VALUE_BYTES && !is_alphanumeric(Some(at + 1)) => {
                    // The text after a colon or an equals sign is the message itself, not a name in it.
                    let said = self.text[..start].trim_end().ends_with([':', '=', '(', '[', ',']);
                    if !said && start > 0 {
                        self.is_quoted[start..at].fill(true);
                    }
                    opened = None;
                }
                Some(start) if at - start <= MAX_VALUE_BYTES => {}
                _ if !is_alphanumeric(at.checked_sub(1)) => opened = Some(at),
                _ => {}
            }
        }
    }
}

/// Returns true if a new word begins inside an identifier: `timeOut`, `HTTPError`.
fn is_hump(before: Option<char>, c: char, next: Option<char>) -> bool {
    c.is_ascii_uppercase()
        && match before {
            Some(b) if b.is_ascii_lowercase() => true,
            Some(b) if b.is_ascii_uppercase() => next.is_some_and(|n| n.is_ascii_lowercase()),
            _ => false,
        }
}

/// Returns the length of the URL or path that starts here, or zero.
fn value_length(rest: &str, before: Option<char>) -> usize {
    if before.is_some_and(char::is_alphanumeric) {
        return 0;
    }
    let bytes = rest.as_bytes();
    let letters = bytes.iter().take(12).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let is_url = letters > 1 && bytes[letters..].starts_with(b"://");
    let is_path = bytes[0] == b'/' && bytes.get(1).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'.')
        || letters == 1 && bytes[1..].starts_with(b":\\")
        || bytes.starts_with(b"./")
        || bytes.starts_with(b"~/");
    if !is_url && !is_path {
        return 0;
    }
    let ends = |c: char| {
        c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '<' | '>' | ')' | ']' | ',' | ';' | '|')
    };
    let length = rest.find(ends).unwrap_or(rest.len());
    // A full stop or a colon ends the sentence, not the value.
    rest[..length].trim_end_matches(['.', ':']).len().max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_taken_apart_and_values_taken_out() {
        for (text, expected) in [
            ("ExpiredTokenException", "expired token exception"),
            ("field_not_found", "field not found"),
            ("HTTPError: Read-Only  mode", "http error: read only mode"),
            ("at https://a.example/timeout?x=1: gone", "at \u{1}: gone"),
            ("open '/etc/denied.txt'", "open '\u{1}'"),
            ("first\n  second\\nthird", "first\nsecond\nthird"),
            ("can’t", "can't"),
            ("НЕ Найдено", "не найдено"),
            ("", ""),
        ] {
            assert_eq!(Normalized::of_text(text).text, expected, "{text}");
        }
    }

    #[test]
    fn a_quoted_name_is_a_value_and_a_quoted_message_is_not() {
        let quoted = |text: &str| Normalized::of_text(text).is_quoted.iter().any(|quoted| *quoted);
        assert!(quoted("branch 'access denied' is there"));
        assert!(!quoted("error: 'access denied'"));
        assert!(!quoted("it doesn't say and can't"));
    }
}
