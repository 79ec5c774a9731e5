//! A writer for the text of a line, which is written either verbatim or escaped as the content of a JSON string.
//!
//! Templates are JSON text already, so they need no escaping. Only an envelope inside a JSON string does:
//! `write_escaped` writes it with escapes and without an intermediate copy.

use std::fmt::{self, Write};

/// A writer that appends to one line.
pub(crate) struct JsonWriter<'a> {
    line: &'a mut String,
    /// True if quotes and backslashes are escaped.
    escapes: bool,
}

impl<'a> JsonWriter<'a> {
    pub(crate) fn new(line: &'a mut String) -> Self {
        Self { line, escapes: false }
    }

    pub(crate) fn write_text(&mut self, text: &str) {
        if !self.escapes {
            return self.line.push_str(text);
        }
        let mut rest = text;
        while let Some(index) = rest.find(['"', '\\']) {
            self.line.push_str(&rest[..index]);
            self.line.push('\\');
            self.line.push_str(&rest[index..=index]);
            rest = &rest[index + 1..];
        }
        self.line.push_str(rest);
    }

    /// Writes a number or a time, which never needs an escape.
    pub(crate) fn write_display(&mut self, value: impl fmt::Display) {
        // Writing to a `String` cannot fail.
        let _ = write!(self.line, "{value}");
    }

    /// Writes the output of `write`, escaped as the content of a JSON string.
    pub(crate) fn write_escaped(&mut self, write: impl FnOnce(&mut JsonWriter<'_>)) {
        write(&mut JsonWriter { line: self.line, escapes: true });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_parses_to_the_original() {
        let (mut line, text) = (String::from('"'), r#"{"a":"b \"c\" \\ d"}"#);
        JsonWriter::new(&mut line).write_escaped(|writer| writer.write_text(text));
        line.push('"');
        assert_eq!(serde_json::from_str::<String>(&line).unwrap(), text);
    }
}
