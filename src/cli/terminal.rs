//! Output to a terminal: the style of stdout, and protection against escape sequences in the data.
//!
//! Records come from other systems. A message can contain escape sequences that recolour, retitle or rewrite a
//! terminal, or marks that reverse the direction of text; so all text from the data is printed through [`sanitize`].
//!
//! Invariants: lines and colours are drawn on a terminal only, and no colours if `NO_COLOR` is set; nothing here fails
//! because stderr is closed.

use clap::builder::styling::{AnsiColor, Style};
use comfy_table::{Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement};
use comfy_table::{LineStyle, Table, TableStyle};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

/// The style of output on stdout.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OutputStyle {
    /// True if stdout is a terminal rather than a pipe or a file.
    pub(crate) terminal: bool,
    /// True if colours may be used.
    pub(crate) colour: bool,
}

impl OutputStyle {
    /// Returns the style for the current stdout.
    pub(crate) fn for_stdout() -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let terminal = io::stdout().is_terminal();
        Self { terminal, colour: terminal && !set("NO_COLOR") && !is_dumb }
    }

    /// Returns a table with these headings: ruled and as wide as the terminal, or plain columns when piped.
    pub(crate) fn table(self, headings: &[&str]) -> Table {
        let mut table = Table::new();
        table.set_header(headings.iter().map(|heading| self.bold_cell(heading)));
        if self.terminal {
            table.load_style(RULED).set_content_arrangement(ContentArrangement::Dynamic);
            if table.width().is_none_or(|width| width < NARROWEST) {
                table.set_width(USUAL);
            }
        } else {
            table.force_no_tty().load_style(TableStyle::new());
        }
        for column in table.column_iter_mut() {
            column.set_padding((0, 2));
        }
        table
    }

    /// Hides the `dispensable` columns, in this order, until the table fits the terminal. Returns true if any were
    /// hidden.
    pub(crate) fn fit(self, table: &mut Table, dispensable: &[usize]) -> bool {
        let Some(width) = table.width().filter(|_| self.terminal) else { return false };
        // Each column has two spaces of padding, and one space for a separator that is not drawn.
        let needed: Vec<u16> =
            table.column_max_content_widths().iter().map(|width| width.saturating_add(3)).collect();
        let mut total = needed.iter().fold(0_u16, |sum, width| sum.saturating_add(*width));
        let mut hidden = false;
        for &index in dispensable {
            if total > width
                && let Some(column) = table.column_mut(index)
            {
                column.set_constraint(ColumnConstraint::Hidden);
                total = total.saturating_sub(needed[index]);
                hidden = true;
            }
        }
        hidden
    }

    /// Returns the maximum width of a line, or `None` if stdout is not a terminal.
    pub(crate) fn width(self) -> Option<usize> {
        let known = Table::new().width().filter(|width| *width >= NARROWEST);
        self.terminal.then(|| known.unwrap_or(USUAL).into())
    }

    /// Returns a text of the program, not of the data, in bold if colours are used.
    pub(crate) fn bold(self, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let style = Style::new().bold();
        format!("{}{text}{}", style.render(), style.render_reset())
    }

    /// Returns a cell in bold, such as a heading.
    pub(crate) fn bold_cell(self, text: &str) -> Cell {
        let cell = Cell::new(sanitize(text));
        if self.colour { cell.add_attribute(Attribute::Bold) } else { cell }
    }

    /// Returns a highlighted cell.
    pub(crate) fn marked(self, text: &str) -> Cell {
        let cell = Cell::new(sanitize(text));
        if self.colour { cell.fg(Color::Yellow) } else { cell }
    }

    /// Returns a bar for a number, of which `hidden` are drawn in a pattern of their own. A bar for the number `most`
    /// has the maximum length; shorter bars are padded with spaces.
    pub(crate) fn bar(self, number: u64, hidden: u64, most: u64) -> String {
        let length = |number: u64| number.saturating_mul(BAR).div_ceil(most.max(1)) as usize;
        let whole = length(number);
        let hidden = length(hidden).min(whole);
        format!(
            "{}{}{:fill$}",
            self.paint(&"█".repeat(whole - hidden), AnsiColor::Cyan),
            self.paint(&"▒".repeat(hidden), AnsiColor::Yellow),
            "",
            fill = (BAR as usize).saturating_sub(whole),
        )
    }

    /// Returns a text of the program, not of the data, in a colour if colours are used.
    pub(crate) fn paint(self, text: &str, colour: AnsiColor) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let style = Style::new().fg_color(Some(colour.into()));
        format!("{}{text}{}", style.render(), style.render_reset())
    }
}

/// The length of the longest bar, in characters.
const BAR: u64 = 36;

/// The minimum plausible width of a terminal. Terminals that report less do not know their width, such as those of
/// `script` and of some containers.
const NARROWEST: u16 = 40;
/// The assumed width of a terminal that does not know its width.
const USUAL: u16 = 80;

/// A style with one line below the headings, and no others.
const RULED: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Returns a cell for text from the data.
pub(crate) fn cell(text: &str) -> Cell {
    Cell::new(sanitize(text))
}

/// Returns a right-aligned cell for a number.
pub(crate) fn number_cell(text: &str) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Renders a table as text, without trailing spaces.
pub(crate) fn render_table(table: &Table) -> String {
    let mut text = table.trim_fmt();
    text.push('\n');
    text
}

/// Returns the text with every character escaped that a terminal could act on, such as `\u{1b}[31m`.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    escaped(text, is_active)
}

fn escaped(text: &str, is_active: fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(is_active) {
        return Cow::Borrowed(text);
    }
    let mut sanitize = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_active(c) { sanitize.extend(c.escape_default()) } else { sanitize.push(c) }
    }
    Cow::Owned(sanitize)
}

/// Returns true for control characters, line separators, and characters that are invisible or change the text
/// direction.
fn is_active(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Escapes the characters that JSON may contain unescaped and a terminal may act on: DEL, and the C1 control characters
/// above it. The JSON value stays the same.
pub(crate) fn sanitize_json(json: &mut String) {
    let is_raw = |c: char| matches!(c, '\u{7f}'..='\u{9f}');
    // Their UTF-8 encoding starts with one of two bytes, and neither is common.
    if memchr::memchr2(0x7f, 0xc2, json.as_bytes()).is_none() || !json.contains(is_raw) {
        return;
    }
    let mut harmless = String::with_capacity(json.len() + 8);
    for c in json.chars() {
        if is_raw(c) {
            // Writing to a string cannot fail.
            let _ = write!(harmless, "\\u{:04x}", u32::from(c));
        } else {
            harmless.push(c);
        }
    }
    *json = harmless;
}

/// Writes a result to stdout.
pub(crate) fn write_stdout(bytes: &[u8]) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(bytes).and_then(|()| stdout.flush());
    written.map_err(|error| io::Error::new(error.kind(), format!("cannot write to stdout: {error}")))
}

/// Prints a note to stderr. A closed stderr is ignored.
pub(crate) fn print_note(text: &str) {
    let text = escaped(text, |c| c != '\n' && is_active(c));
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints an error to stderr.
pub(crate) fn print_error(text: &str) {
    print_note(&format!("error: {text}"));
}

/// Returns true when an error says that the reader of stdout closed it, which is not a failure of the program.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_pipe))
}

/// Formats a count with its noun: `1 line`, `1,200 lines`.
pub(crate) fn format_count(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", indicatif::HumanCount(count))
}

/// Formats a share as a percentage. If the whole is zero, so is the percentage.
pub(crate) fn format_percent(part: u64, whole: u64) -> String {
    let share = if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_could_act_on_is_shown_instead() {
        for (text, shown) in [
            ("plain ☃ 🦀", "plain ☃ 🦀"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\r\nb\tc\u{7f}", "a\\r\\nb\\tc\\u{7f}"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("abc\u{202e}fdp.exe", "abc\\u{202e}fdp.exe"),
        ] {
            assert_eq!(sanitize(text), shown);
        }
    }

    #[test]
    fn harmless_json_is_the_same_document() {
        let mut json = "{\"a\":\"\u{7f}\u{80}\u{9b}2J é\"}".to_owned();
        let before: serde_json::Value = serde_json::from_str(&json).unwrap();
        sanitize_json(&mut json);
        assert_eq!(json, "{\"a\":\"\\u007f\\u0080\\u009b2J é\"}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap(), before);
    }

    #[test]
    fn shares_and_counts_read_well() {
        assert_eq!(format_percent(1, 3), "33.3 %");
        assert_eq!(format_percent(0, 0), "0.0 %");
        assert_eq!(format_count(1, "line"), "1 line");
        assert_eq!(format_count(1200, "line"), "1,200 lines");
    }
}
