//! XML elements such as `<password>...</password>`, also if the angle brackets are written as entities.

use super::keys::KeyKind;
use super::scan::{Found, Mark};
use super::values::is_harmless;
use super::{Redactor, Rule};

/// The maximum length of the rest of a tag after its name, and of the content.
const LONGEST_TAG: usize = 256;
const LONGEST_CONTENT: usize = 16 << 10;

impl Redactor {
    /// Returns the content of an element with a secret name. `start` is the position of its opening bracket.
    pub(super) fn element(&self, bytes: &[u8], start: usize) -> Option<Found> {
        let is_entity = bytes[start] == b'&';
        let (open, close, end): (usize, &[u8], &[u8]) =
            if is_entity { (4, b"&gt;", b"&lt;") } else { (1, b">", b"<") };
        let rest = &bytes[start + open..];
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
        let length = rest.iter().take(64).take_while(|byte| is_name(byte)).count();
        let name = rest[..length].rsplit(|&byte| byte == b':').next()?;
        if !matches!(self.keys.kind(name), KeyKind::Secret | KeyKind::Token) || !self.is_on(Rule::Assignment)
        {
            return None;
        }
        let tag = &rest[length..rest.len().min(length + LONGEST_TAG)];
        let closed = memchr::memmem::find(tag, close)?;
        if tag[..closed].ends_with(b"/") {
            return None;
        }
        let mut at = start + open + length + closed + close.len();
        let content = &bytes[at..bytes.len().min(at + LONGEST_CONTENT)];
        let (skip, end): (usize, &[u8]) = match content.strip_prefix(b"<![CDATA[") {
            Some(_) => (9, b"]]>"),
            None => (0, end),
        };
        at += skip;
        let found = memchr::memmem::find(&content[skip..], end);
        let length = found.unwrap_or(content.len() - skip);
        let value = &bytes[at..at + length];
        // The content of an element that was cut off extends to the end, unless it has spaces: prose mentions
        // elements, too.
        let is_content = found.is_some() || !value.contains(&b' ');
        (is_content && !value.trim_ascii().is_empty() && !is_harmless(value))
            .then_some((at..at + length, Mark::Redacted))
    }
}
