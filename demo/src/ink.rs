//! Where the text of a line goes: plainly, or as the inside of a JSON string.
//!
//! Templates are JSON text already, so there is nothing to escape in them. Only an envelope that travels as a string
//! is: `quoted` writes it once, escaped, with no copy in between.

use std::fmt::{self, Write};

/// A pen on one line.
pub(crate) struct Ink<'a> {
    line: &'a mut String,
    quoted: bool,
}

impl<'a> Ink<'a> {
    pub(crate) fn new(line: &'a mut String) -> Self {
        Self { line, quoted: false }
    }

    pub(crate) fn text(&mut self, text: &str) {
        if !self.quoted {
            return self.line.push_str(text);
        }
        let mut rest = text;
        while let Some(at) = rest.find(['"', '\\']) {
            self.line.push_str(&rest[..at]);
            self.line.push('\\');
            self.line.push_str(&rest[at..=at]);
            rest = &rest[at + 1..];
        }
        self.line.push_str(rest);
    }

    /// Numbers and times: nothing that would need an escape.
    pub(crate) fn show(&mut self, value: impl fmt::Display) {
        // Writing to a `String` cannot fail.
        let _ = write!(self.line, "{value}");
    }

    /// What `write` writes becomes the inside of a JSON string.
    pub(crate) fn quoted(&mut self, write: impl FnOnce(&mut Ink<'_>)) {
        write(&mut Ink { line: self.line, quoted: true });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_reads_back_as_it_was() {
        let (mut line, text) = (String::from('"'), r#"{"a":"b \"c\" \\ d"}"#);
        Ink::new(&mut line).quoted(|ink| ink.text(text));
        line.push('"');
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
