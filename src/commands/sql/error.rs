//! The explanation of a failed query: the problem, its position in the statement, and the remedy.

use super::statements::Statement;
use crate::cli::terminal::sanitize;
use query::{Limit, Position, QueryError, QueryErrorKind};
use unicode_width::UnicodeWidthStr;

/// The maximum length of the displayed part of a line, in characters.
const MAX_LINE_CHARS: usize = 100;
/// The maximum length of that part before the position of the error.
const MAX_CHARS_BEFORE: usize = 60;

/// The reason why a query failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SqlError {
    pub(super) message: String,
    pub(super) position: Option<Position>,
    pub(super) hint: Option<String>,
}

impl SqlError {
    pub(super) fn new(message: String) -> Self {
        Self { message, position: None, hint: None }
    }

    /// Returns the message, the line of the statement with a caret at the position, and the hint.
    pub(super) fn explain(&self, statement: &Statement<'_>, script: Option<&str>) -> String {
        let mut text = indent(&self.message);
        let position = self.position.or_else(|| self.position_at_end(statement.text));
        let line = position.and_then(|position| {
            let line = statement.text.lines().nth(position.line.checked_sub(1)? as usize)?;
            Some((line, position))
        });
        let hint = self.hint.as_deref().map(indent);
        match line {
            Some((line, position)) => {
                let number = statement.line + position.line as usize - 1;
                if let Some(script) = script {
                    text.push_str(&format!(" ({script}, line {number})"));
                }
                let is_long = statement.text.trim_end().contains('\n');
                let margin = if is_long { format!("{number} | ") } else { String::new() };
                text.push_str(&line_with_caret(&margin, line, position.column as usize, hint.as_deref()));
            }
            None => {
                if let Some(script) = script {
                    text.push_str(&format!(" ({script}, the statement at line {})", statement.line));
                }
                text.extend(hint.map(|hint| format!("\n  {hint}")));
            }
        }
        text
    }

    /// Returns the end of the statement if it ended too early, since the parser gives no position then.
    fn position_at_end(&self, statement: &str) -> Option<Position> {
        let last = statement.lines().last().filter(|_| self.message.ends_with("found: EOF"))?;
        Some(Position { line: statement.lines().count() as u64, column: last.chars().count() as u64 + 1 })
    }
}

/// Indents all lines of a message but the first. Tabs are replaced, since they would otherwise be shown escaped.
fn indent(message: &str) -> String {
    message.trim_end().replace('\t', "  ").replace('\n', "\n  ")
}

/// Returns a line with a caret below a column, counted from 1. A long line is truncated on both sides.
fn line_with_caret(margin: &str, line: &str, column: usize, hint: Option<&str>) -> String {
    let before: Vec<char> = line.chars().take(column.saturating_sub(1)).collect();
    let after: String = line.chars().skip(before.len()).take(MAX_LINE_CHARS - MAX_CHARS_BEFORE).collect();
    let is_truncated = line.chars().count() > before.len() + (MAX_LINE_CHARS - MAX_CHARS_BEFORE);
    let start = before.len().saturating_sub(MAX_CHARS_BEFORE);
    let before: String = before[start..].iter().collect();
    let before = format!("{margin}{}{}", if start > 0 { "…" } else { "" }, one_line(&before));
    let gap = " ".repeat(before.width());
    let hint = hint.map(|hint| format!(" {hint}")).unwrap_or_default();
    format!("\n  {before}{}{}\n  {gap}^{hint}", one_line(&after), if is_truncated { "…" } else { "" })
}

/// Returns a line with every tab replaced by one space, so that the caret is at the right column.
fn one_line(text: &str) -> String {
    sanitize(&text.replace('\t', " ")).into_owned()
}

/// Converts an error of the engine in this process. Its limits are set by flags, which the hint names.
impl From<QueryError> for SqlError {
    fn from(error: QueryError) -> Self {
        let QueryError { kind, message, position, hint } = error;
        let flag = match kind {
            QueryErrorKind::Limit(Limit::Time) => Some("--timeout"),
            QueryErrorKind::Limit(Limit::Memory) => Some("--memory"),
            _ => None,
        };
        let hint = match (hint, flag) {
            (Some(hint), Some(flag)) => Some(format!("{hint}; or allow more with {flag}")),
            (hint, _) => hint,
        };
        Self { message, position, hint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(text: &str, line: u64, column: u64) -> String {
        let error = SqlError {
            message: "there is no column 'x'".to_owned(),
            position: Some(Position { line, column }),
            hint: Some("did you mean 'y'?".to_owned()),
        };
        error.explain(&Statement { text, line: 1 }, None)
    }

    #[test]
    fn the_place_is_marked() {
        assert_eq!(
            explained("SELECT x FROM events", 1, 8),
            "there is no column 'x'\n  SELECT x FROM events\n         ^ did you mean 'y'?"
        );
        assert_eq!(
            explained("SELECT\n\t'日本' || x\nFROM events", 2, 10),
            "there is no column 'x'\n  2 |  '日本' || x\n                 ^ did you mean 'y'?"
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = explained(&format!("SELECT {}x{}", "a, ".repeat(100), ", b".repeat(100)), 1, 308);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[1].starts_with("  …") && lines[1].ends_with('…'), "{text}");
        let mark = lines[2].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[1].chars().nth(mark), Some('x'), "{text}");
    }

    #[test]
    fn a_place_outside_of_the_statement_is_no_place() {
        assert_eq!(explained("SELECT x", 7, 1), "there is no column 'x'\n  did you mean 'y'?");
        let end = SqlError::new("Expected: an expression, found: EOF".to_owned());
        let text = end.explain(&Statement { text: "SELECT", line: 4 }, Some("a.sql"));
        assert_eq!(text, "Expected: an expression, found: EOF (a.sql, line 4)\n  SELECT\n        ^");
    }

    #[test]
    fn a_statement_does_nothing_to_a_terminal() {
        let text = explained("SELECT '\u{1b}[31m' || x", 1, 18);
        assert!(!text.contains('\u{1b}') && text.contains("\\u{1b}"), "{text}");
    }
}
