//! Splits SQL into tokens and statements, with just enough grammar to find the ends of texts, comments and statements.
//!
//! Invariant: every byte of a text belongs to exactly one token, whatever the text is.

/// The kind of a token of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A keyword or a name.
    Word,
    /// A name in double quotes.
    Name,
    /// A text in single quotes or dollar quotes.
    Text,
    Number,
    Comment,
    Space,
    /// The semicolon.
    End,
    Other,
}

/// A token of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token<'t> {
    pub(super) kind: TokenKind,
    pub(super) text: &'t str,
    /// The start of the token, in bytes.
    pub(super) start: usize,
    /// True if a quote or a comment is not closed.
    pub(super) is_open: bool,
}

/// Returns the tokens of a text, in order.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Token<'_>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = &text[start..];
        let (kind, length, is_open) = first_token(rest)?;
        let token = Token { kind, text: &rest[..length], start, is_open };
        start += length;
        Some(token)
    })
}

/// Returns the kind and length of the first token of a text, and true if the token is open.
fn first_token(text: &str) -> Option<(TokenKind, usize, bool)> {
    let c = text.chars().next()?;
    let closed = |kind, length| Some((kind, length, false));
    match c {
        ';' => closed(TokenKind::End, 1),
        '\'' => Some(quoted(text, 0, '\'', false, TokenKind::Text)),
        '"' => Some(quoted(text, 0, '"', false, TokenKind::Name)),
        'e' | 'E' if text[1..].starts_with('\'') => Some(quoted(text, 1, '\'', true, TokenKind::Text)),
        '$' => Some(dollar(text)),
        '-' if text.starts_with("--") => closed(TokenKind::Comment, text.find('\n').unwrap_or(text.len())),
        '/' if text.starts_with("/*") => Some(comment(text)),
        _ if c.is_whitespace() => closed(TokenKind::Space, prefix_length(text, char::is_whitespace)),
        _ if c.is_ascii_digit() => {
            closed(TokenKind::Number, prefix_length(text, |c| c.is_ascii_alphanumeric() || c == '.'))
        }
        _ if is_word(c) => closed(TokenKind::Word, prefix_length(text, is_word)),
        _ => closed(TokenKind::Other, c.len_utf8()),
    }
}

/// Returns true when a character can be part of a name.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn prefix_length(text: &str, matches: fn(char) -> bool) -> usize {
    text.find(|c| !matches(c)).unwrap_or(text.len())
}

/// Returns the quoted token whose quote is at `at`. A doubled quote does not end it, and neither does a quote after a
/// backslash if `backslash` is true.
fn quoted(text: &str, at: usize, quote: char, backslash: bool, kind: TokenKind) -> (TokenKind, usize, bool) {
    let mut chars = text[at + 1..].char_indices().peekable();
    while let Some((index, c)) = chars.next() {
        if backslash && c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return (kind, at + 1 + index + 1, false);
        }
    }
    (kind, text.len(), true)
}

/// Returns the token that begins with a dollar: `$1`, `$$text$$` or `$tag$text$tag$`.
fn dollar(text: &str) -> (TokenKind, usize, bool) {
    let name = prefix_length(&text[1..], is_word);
    let starts_with_digit = text[1..].starts_with(|c: char| c.is_ascii_digit());
    if starts_with_digit || !text[1 + name..].starts_with('$') {
        return (TokenKind::Other, 1 + name, false);
    }
    let tag = &text[..name + 2];
    match text[tag.len()..].find(tag) {
        Some(end) => (TokenKind::Text, end + 2 * tag.len(), false),
        None => (TokenKind::Text, text.len(), true),
    }
}

/// Returns a comment, which may contain nested ones.
fn comment(text: &str) -> (TokenKind, usize, bool) {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(found) = text[at..].find(['/', '*']) {
        at += found;
        if text[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if text[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return (TokenKind::Comment, at, false);
            }
        } else {
            at += 1;
        }
    }
    (TokenKind::Comment, text.len(), true)
}

/// Statements that are run one after the other.
#[derive(Debug)]
pub(super) struct Script {
    /// The origin of the statements, if error messages should name it.
    pub(super) name: Option<String>,
    text: String,
}

/// One statement of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Statement<'t> {
    /// The text of the statement, without surrounding spaces and comments.
    pub(super) text: &'t str,
    /// The line of the script on which it begins, from 1.
    pub(super) line: usize,
}

impl Script {
    pub(super) fn new(name: Option<String>, text: String) -> Self {
        // An editor may have added a byte-order mark.
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        Self { name, text }
    }

    pub(super) fn statements(&self) -> Vec<Statement<'_>> {
        split(&self.text)
    }
}

/// Returns the statements of a text, without empty ones.
fn split(text: &str) -> Vec<Statement<'_>> {
    let mut statements = Vec::new();
    let mut open_statement: Option<(usize, usize)> = None;
    for token in tokens(text) {
        match token.kind {
            TokenKind::End => statements.extend(open_statement.take().map(|bounds| statement(text, bounds))),
            TokenKind::Space | TokenKind::Comment => {}
            _ => {
                let start = open_statement.map_or(token.start, |(start, _)| start);
                open_statement = Some((start, token.start + token.text.len()));
            }
        }
    }
    statements.extend(open_statement.map(|bounds| statement(text, bounds)));
    statements
}

fn statement(text: &str, (start, end): (usize, usize)) -> Statement<'_> {
    Statement { text: &text[start..end], line: 1 + text[..start].matches('\n').count() }
}

/// Returns true when the input is complete: the last statement has its semicolon, or there is none.
pub(super) fn is_complete(text: &str) -> bool {
    let mut has_open_statement = false;
    for token in tokens(text) {
        match token.kind {
            _ if token.is_open => return false,
            TokenKind::End => has_open_statement = false,
            TokenKind::Space | TokenKind::Comment => {}
            _ => has_open_statement = true,
        }
    }
    !has_open_statement
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        split(text).into_iter().map(|statement| statement.text).collect()
    }

    #[test]
    fn semicolons_end_statements_but_not_inside_of_texts_names_and_comments() {
        for (text, statements) in [
            ("", &[][..]),
            (" ; ;; -- nothing\n", &[]),
            ("SELECT 1", &["SELECT 1"]),
            ("SELECT 1; SELECT 2 ;", &["SELECT 1", "SELECT 2"]),
            ("SELECT ';' ; SELECT 'it''s;'", &["SELECT ';'", "SELECT 'it''s;'"]),
            (r"SELECT E'\';'; SELECT 'a\'", &[r"SELECT E'\';'", r"SELECT 'a\'"]),
            ("SELECT \"a;b\"; x", &["SELECT \"a;b\"", "x"]),
            ("-- a;b\nSELECT 1 -- c;d\n;", &["SELECT 1"]),
            ("/* a; /* b; */ c; */ SELECT 1", &["SELECT 1"]),
            ("SELECT $$a;b$$; SELECT $x$;$$;$x$", &["SELECT $$a;b$$", "SELECT $x$;$$;$x$"]),
            ("SELECT $1;SELECT $2", &["SELECT $1", "SELECT $2"]),
            ("SELECT 'ü☃';SELECT ünïcode", &["SELECT 'ü☃'", "SELECT ünïcode"]),
        ] {
            assert_eq!(texts(text), statements, "{text}");
        }
    }

    #[test]
    fn statements_know_their_line() {
        let lines: Vec<usize> = split("SELECT 1;\n\n-- two\nSELECT\n2;\nSELECT 3")
            .iter()
            .map(|statement| statement.line)
            .collect();
        assert_eq!(lines, [1, 4, 6]);
    }

    #[test]
    fn a_statement_is_complete_with_its_semicolon() {
        for complete in ["", "  ", "SELECT 1;", "SELECT 1; -- done", "SELECT ';' ;\n", "-- nothing"] {
            assert!(is_complete(complete), "{complete}");
        }
        for open in ["SELECT 1", "SELECT 'a;", "SELECT 1; SELECT 2", "SELECT 1 /* ;", "SELECT $$;", "\"a;"] {
            assert!(!is_complete(open), "{open}");
        }
    }

    #[test]
    fn every_byte_belongs_to_one_token() {
        for text in
            ["", "e", "E'", "$", "$$", "$a", "/", "/*", "*/", "-", "--", "é'ü\"☃/*/", "1.5e3x'", "\u{1b};"]
        {
            let whole: String = tokens(text).map(|token| token.text).collect();
            assert_eq!(whole, text);
        }
    }
}
