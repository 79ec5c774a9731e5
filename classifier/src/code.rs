//! Normalized codes: `"-32603"`, `-32603` and `-32603.0` are the same code. Texts are trimmed and never upper-cased.

use crate::json::{Json, exact_integer};

/// The value in the place of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code<'t> {
    /// There is no value.
    Missing,
    /// The value cannot be a code: `null`, an object or a fraction.
    Unusable,
    /// A whole number. `quoted` is true if it was written in quotes.
    Number { value: i64, quoted: bool },
    /// A text.
    Text(&'t str),
    /// A tool result with `isError` and no code at all.
    ToolError,
}

impl<'t> Code<'t> {
    pub(crate) fn read(value: Option<Json<'t>>) -> Self {
        let Some(value) = value else { return Self::Missing };
        if let Some(text) = value.as_str() {
            return Self::from_text(text.trim());
        }
        match value.as_i64() {
            Some(value) => Self::Number { value, quoted: false },
            None => Self::Unusable,
        }
    }

    /// Returns the code that a text spells, trimmed.
    pub(crate) fn from_text(text: &'t str) -> Self {
        match text.as_bytes().first() {
            None => Self::Unusable,
            Some(b'-' | b'0'..=b'9') => match text.parse::<f64>().ok().and_then(exact_integer) {
                Some(value) => Self::Number { value, quoted: true },
                None => Self::Text(text),
            },
            Some(_) => Self::Text(text),
        }
    }

    /// Returns true if the sender gave no code that could be looked up.
    pub(crate) fn is_absent(self) -> bool {
        matches!(self, Self::Missing | Self::Unusable | Self::ToolError)
    }

    /// Returns true if this is the text or the number that `text` spells.
    pub(crate) fn matches_text(self, text: &str) -> bool {
        match self {
            Self::Text(code) => code == text,
            Self::Number { value, .. } => text.parse() == Ok(value),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Parser;

    #[test]
    fn one_code_has_many_spellings() {
        let read = |json: &str, check: &dyn Fn(Code<'_>)| {
            Parser::new(8).parse(json.as_bytes(), |json| check(Code::read(json.items().next()))).expect(json);
        };
        for json in ["[-32603]", "[-32603.0]"] {
            read(json, &|code| assert_eq!(code, Code::Number { value: -32603, quoted: false }, "{json}"));
        }
        for json in ["[\"-32603\"]", "[\" -32603.0 \"]"] {
            read(json, &|code| assert_eq!(code, Code::Number { value: -32603, quoted: true }, "{json}"));
        }
        read("[\" not_found \"]", &|code| assert_eq!(code, Code::Text("not_found")));
        read("[\"4xx\"]", &|code| assert_eq!(code, Code::Text("4xx")));
        for json in ["[null]", "[{}]", "[1.5]", "[true]", "[\"\"]", "[[1]]"] {
            read(json, &|code| assert_eq!(code, Code::Unusable, "{json}"));
        }
        read("[]", &|code| assert_eq!(code, Code::Missing));
    }
}
