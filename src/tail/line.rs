//! An event as one line for a person: time, severity, service, operation, code, message.
//!
//! What always holds: nothing in it can act on a terminal, and it is no wider than the terminal.

use crate::terminal::{Look, safe};
use clap::builder::styling::AnsiColor;
use serde_json::{Map, Value};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns grow with what they hold, up to this.
const WIDEST: [usize; 3] = [20, 24, 34];
/// As wide as the longest severity.
const SEVERITY: usize = 8;

/// Makes lines whose columns stand below each other.
pub(super) struct Lines {
    look: Look,
    /// The widths of service, operation and code so far.
    widths: [usize; 3],
}

impl Lines {
    pub(super) fn new(look: Look) -> Self {
        Self { look, widths: [0; 3] }
    }

    /// The line of an event.
    pub(super) fn of(&mut self, json: &str) -> String {
        let Ok(event) = serde_json::from_str::<Map<String, Value>>(json) else {
            return safe(json).into_owned();
        };
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or("-");
        let severity = text("severity");
        let colour = colour(severity);
        let [service, operation, code] =
            ["service", "operation", "canonical"].map(|name| safe(text(name)).into_owned());
        let mut parts = vec![
            (moment(text("time")), Some(AnsiColor::BrightBlack)),
            (padded(&safe(severity), SEVERITY), colour),
        ];
        for (place, (column, colour)) in
            [(service, None), (operation, None), (code, colour)].into_iter().enumerate()
        {
            let width = &mut self.widths[place];
            *width = (*width).max(column.width()).min(WIDEST[place]);
            parts.push((padded(&column, *width), colour));
        }
        parts.push((safe(event.get("message").and_then(Value::as_str).unwrap_or("")).into_owned(), None));
        fitted(self.look, &parts)
    }
}

/// Red is what a person should look at.
fn colour(severity: &str) -> Option<AnsiColor> {
    match severity {
        "critical" => Some(AnsiColor::BrightRed),
        "error" => Some(AnsiColor::Red),
        "warning" => Some(AnsiColor::Yellow),
        "info" => Some(AnsiColor::Cyan),
        _ => None,
    }
}

/// `2026-11-16T21:17:41.008453Z` as `11-16 21:17:41`, in UTC as everything is.
fn moment(time: &str) -> String {
    match (time.get(5..10), time.get(11..19)) {
        (Some(day), Some(time)) => safe(&format!("{day} {time}")).into_owned(),
        _ => safe(time).into_owned(),
    }
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// The parts beside each other, cut where the terminal ends.
fn fitted(look: Look, parts: &[(String, Option<AnsiColor>)]) -> String {
    let mut left = look.width().unwrap_or(usize::MAX);
    let mut line = String::new();
    for (place, (text, colour)) in parts.iter().enumerate() {
        let text = if place == 0 { text.clone() } else { format!("  {text}") };
        let shown = cut(&text, left);
        left = left.saturating_sub(shown.width());
        match colour {
            Some(colour) => line.push_str(&look.paint(&shown, *colour)),
            None => line.push_str(&shown),
        }
        if shown.len() < text.len() {
            break;
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// As much of a text as there is room for; a mark says that there is more.
fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut width = 1;
    for c in text.chars() {
        width += c.width().unwrap_or(0);
        if width > room {
            break;
        }
        shown.push(c);
    }
    if room > 0 {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVENT: &str = r#"{"time":"2026-11-16T21:17:41.008Z","severity":"error","service":"orders","operation":"pay","canonical":"RATE_LIMIT_QUOTA_PAUSE","message":"Paused\u001b[2J\nnow"}"#;

    #[test]
    fn a_line_tells_what_happened() {
        let mut lines = Lines::new(Look::default());
        let line = lines.of(EVENT);
        assert_eq!(
            line,
            "11-16 21:17:41  error     orders  pay  RATE_LIMIT_QUOTA_PAUSE  Paused\\u{1b}[2J\\nnow"
        );
        let line = lines.of(r#"{"severity":"info","canonical":"X"}"#);
        assert_eq!(line, "-  info      -       -    X");
        assert_eq!(lines.of("\u{1b}no json"), "\\u{1b}no json");
    }

    #[test]
    fn colours_tell_how_bad_it_is() {
        let line = Lines::new(Look { terminal: false, colour: true }).of(EVENT);
        assert!(line.contains("\u{1b}[31m  error   \u{1b}[0m"), "{line:?}");
        assert!(!line.contains("[2J\u{1b}") && line.matches('\u{1b}').count() == 6, "{line:?}");
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        assert_eq!(cut("日本語", 6), "日本語");
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 4), "日…");
        assert_eq!((cut("abc", 1), cut("abc", 0)), ("…".to_owned(), String::new()));
    }
}
