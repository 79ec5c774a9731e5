//! Formats an event as one line for a terminal: time, severity, the mark of a hidden failure, service, operation, code,
//! message.
//!
//! Invariants: nothing in the line can act on a terminal, and the line is not wider than the terminal.

use crate::cli::terminal::{OutputStyle, sanitize};
use clap::builder::styling::AnsiColor;
use serde_json::{Map, Value};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The maximum widths of service, operation and code. The columns grow with their contents up to these.
const MAX_WIDTHS: [usize; 3] = [20, 24, 34];
/// The width of the longest severity.
const SEVERITY_WIDTH: usize = 8;

/// The mark of a hidden failure: one in a reply that said success.
pub(super) const HIDDEN_MARK: &str = "▒";

/// Formats events as lines with aligned columns.
pub(super) struct EventFormatter {
    style: OutputStyle,
    /// The widths of service, operation and code so far.
    widths: [usize; 3],
}

impl EventFormatter {
    pub(super) fn new(style: OutputStyle) -> Self {
        Self { style, widths: [0; 3] }
    }

    /// Returns the line of an event.
    pub(super) fn format_event(&mut self, json: &str) -> String {
        let Ok(event) = serde_json::from_str::<Map<String, Value>>(json) else {
            return sanitize(json).into_owned();
        };
        let text = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or("-");
        let severity = text("severity");
        let colour = colour(severity);
        let [service, operation, code] =
            ["service", "operation", "canonical"].map(|name| sanitize(text(name)).into_owned());
        let is_hidden = event.get("hidden").and_then(Value::as_bool).unwrap_or_default();
        let mark = if is_hidden { HIDDEN_MARK } else { " " };
        let mut parts = vec![
            (format_time(text("time")), Some(AnsiColor::BrightBlack)),
            (format!("{} {mark}", pad(&sanitize(severity), SEVERITY_WIDTH)), colour),
        ];
        for (index, (column, colour)) in
            [(service, None), (operation, None), (code, colour)].into_iter().enumerate()
        {
            let width = &mut self.widths[index];
            *width = (*width).max(column.width()).min(MAX_WIDTHS[index]);
            parts.push((pad(&column, *width), colour));
        }
        parts.push((sanitize(event.get("message").and_then(Value::as_str).unwrap_or("")).into_owned(), None));
        fit_line(self.style, &parts)
    }
}

/// Returns the colour of a severity. Red marks events that a user should look at.
fn colour(severity: &str) -> Option<AnsiColor> {
    match severity {
        "critical" => Some(AnsiColor::BrightRed),
        "error" => Some(AnsiColor::Red),
        "warning" => Some(AnsiColor::Yellow),
        "info" => Some(AnsiColor::Cyan),
        _ => None,
    }
}

/// Shortens `2026-11-16T21:17:41.008453Z` to `11-16 21:17:41`. The time remains in UTC.
fn format_time(time: &str) -> String {
    match (time.get(5..10), time.get(11..19)) {
        (Some(day), Some(time)) => sanitize(&format!("{day} {time}")).into_owned(),
        _ => sanitize(time).into_owned(),
    }
}

fn pad(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// Returns the parts side by side, truncated at the width of the terminal.
fn fit_line(style: OutputStyle, parts: &[(String, Option<AnsiColor>)]) -> String {
    let mut left = style.width().unwrap_or(usize::MAX);
    let mut line = String::new();
    for (index, (text, colour)) in parts.iter().enumerate() {
        let text = if index == 0 { text.clone() } else { format!("  {text}") };
        let shown = truncate(&text, left);
        left = left.saturating_sub(shown.width());
        match colour {
            Some(colour) => line.push_str(&style.paint(&shown, *colour)),
            None => line.push_str(&shown),
        }
        if shown.len() < text.len() {
            break;
        }
    }
    line.truncate(line.trim_end().len());
    line
}

/// Truncates a text to the available width; an ellipsis marks the truncation.
fn truncate(text: &str, width_left: usize) -> String {
    if text.width() <= width_left {
        return text.to_owned();
    }
    let mut shown = String::new();
    let mut width = 1;
    for c in text.chars() {
        width += c.width().unwrap_or(0);
        if width > width_left {
            break;
        }
        shown.push(c);
    }
    if width_left > 0 {
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
        let mut formatter = EventFormatter::new(OutputStyle::default());
        let line = formatter.format_event(EVENT);
        assert_eq!(
            line,
            "11-16 21:17:41  error       orders  pay  RATE_LIMIT_QUOTA_PAUSE  Paused\\u{1b}[2J\\nnow"
        );
        let line = formatter.format_event(r#"{"severity":"info","canonical":"X"}"#);
        assert_eq!(line, "-  info        -       -    X");
        let line = formatter.format_event(r#"{"severity":"error","hidden":true,"canonical":"X"}"#);
        assert_eq!(line, "-  error    ▒  -       -    X");
        assert_eq!(formatter.format_event("\u{1b}no json"), "\\u{1b}no json");
    }

    #[test]
    fn colours_tell_how_bad_it_is() {
        let line = EventFormatter::new(OutputStyle { terminal: false, colour: true }).format_event(EVENT);
        assert!(line.contains("\u{1b}[31m  error     \u{1b}[0m"), "{line:?}");
        assert!(!line.contains("[2J\u{1b}") && line.matches('\u{1b}').count() == 6, "{line:?}");
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        assert_eq!(truncate("日本語", 6), "日本語");
        assert_eq!(truncate("日本語", 5), "日本…");
        assert_eq!(truncate("日本語", 4), "日…");
        assert_eq!((truncate("abc", 1), truncate("abc", 0)), ("…".to_owned(), String::new()));
    }
}
