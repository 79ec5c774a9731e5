//! Rows laid out for a person: columns that fit the terminal, or record by record where they cannot.
//!
//! Columns without a value in any row are left out first, then long texts are cut; figures and times never are, for half
//! of one would tell something wrong.

use super::cells::{self, Cell};
use crate::cli::terminal::{OutputStyle, format_count, sanitize};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use clap::builder::styling::AnsiColor;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A text that is cut keeps at least this much, or it tells nothing.
const MIN_WIDTH: usize = 12;
/// The gap between two columns.
const COLUMN_GAP: &str = "  ";
/// The part of a text that is kept if a column cannot show all of it.
const MAX_CELL_CHARS: usize = 400;
/// And of one that has the line to itself.
const MAX_LINE_CHARS: usize = 4_000;
/// The text for a null.
const NULL: &str = "NULL";
/// The widest rule above a record.
const MAX_RULE_WIDTH: usize = 60;

/// A column, ready to be laid out.
struct Column {
    heading: String,
    cells: Vec<Cell>,
    is_right_aligned: bool,
    /// It may not be cut.
    is_never_truncated: bool,
}

impl Column {
    fn is_empty(&self) -> bool {
        !self.cells.is_empty() && self.cells.iter().all(|cell| *cell == Cell::Null)
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell_text(cell).width());
        cells.chain([self.heading.width()]).max().unwrap_or(0)
    }

    /// The narrowest it may become.
    fn min_width(&self) -> usize {
        let width = self.width();
        if self.is_never_truncated { width } else { width.min(MIN_WIDTH) }
    }
}

fn cell_text(cell: &Cell) -> &str {
    match cell {
        Cell::Null => NULL,
        Cell::Text(text) => text,
    }
}

/// Rows, laid out.
pub(super) struct Layout {
    pub(super) text: String,
    /// Record by record.
    pub(super) is_vertical: bool,
    /// A note about what was left out, if anything was.
    pub(super) left_out: Option<String>,
}

/// Lays rows out as a table if that fits, and else record by record.
pub(super) fn render(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    style: OutputStyle,
    vertical: bool,
) -> Result<Layout, ArrowError> {
    if !vertical {
        let columns = columns(schema, batches, MAX_CELL_CHARS)?;
        if let Some(layout) = table(&columns, style) {
            return Ok(layout);
        }
    }
    Ok(records(&columns(schema, batches, MAX_LINE_CHARS)?, style))
}

fn columns(schema: &SchemaRef, batches: &[RecordBatch], max_chars: usize) -> Result<Vec<Column>, ArrowError> {
    let column = |(index, field): (usize, &std::sync::Arc<arrow::datatypes::Field>)| {
        let mut visible = Vec::new();
        for batch in batches {
            visible.extend(cells::format_column(batch.column(index), max_chars)?);
        }
        Ok(Column {
            heading: sanitize(field.name()).into_owned(),
            cells: visible,
            is_right_aligned: cells::is_right_aligned(field.data_type()),
            is_never_truncated: cells::is_never_truncated(field.data_type()),
        })
    };
    schema.fields().iter().enumerate().map(column).collect()
}

/// A table; none when not even the narrowest would fit.
fn table(columns: &[Column], style: OutputStyle) -> Option<Layout> {
    let mut visible: Vec<&Column> = columns.iter().collect();
    let mut left_out = None;
    let mut widths: Vec<usize> = visible.iter().map(|column| column.width()).collect();
    if let Some(available) = style.width()
        && total_width(&widths) > available
    {
        visible.retain(|column| !column.is_empty());
        left_out = empty_columns(columns);
        let natural: Vec<usize> = visible.iter().map(|column| column.width()).collect();
        let min_width: Vec<usize> = visible.iter().map(|column| column.min_width()).collect();
        widths = fit_widths(&natural, &min_width, available)?;
    }
    if visible.is_empty() && !columns.is_empty() {
        return None;
    }
    Some(Layout { text: draw_table(&visible, &widths, style), is_vertical: false, left_out })
}

fn empty_columns(columns: &[Column]) -> Option<String> {
    let names: Vec<&str> =
        columns.iter().filter(|column| column.is_empty()).map(|column| column.heading.as_str()).collect();
    match names.len() {
        0 => None,
        few @ 1..=5 => {
            Some(format!("{} without a value: {}", format_count(few as u64, "column"), names.join(", ")))
        }
        many => Some(format!("{} without a value", format_count(many as u64, "column"))),
    }
}

/// The widths of a table, gaps included.
fn total_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + COLUMN_GAP.len() * widths.len().saturating_sub(1)
}

/// Widths that fit the room: the widest columns are cut first, all to the same width.
fn fit_widths(natural: &[usize], min_width: &[usize], available: usize) -> Option<Vec<usize>> {
    let capped = |cap: usize| -> Vec<usize> {
        natural
            .iter()
            .zip(min_width)
            .map(|(natural, min_width)| (*natural).min(cap.max(*min_width)))
            .collect()
    };
    let widest = natural.iter().copied().max().unwrap_or(0);
    // The more there is room for, the fewer fit: the point between can be found by halving.
    let (mut fits, mut too_wide) = (0, widest + 1);
    if total_width(&capped(fits)) > available {
        return None;
    }
    while too_wide - fits > 1 {
        let middle = fits + (too_wide - fits) / 2;
        if total_width(&capped(middle)) <= available { fits = middle } else { too_wide = middle }
    }
    Some(capped(fits))
}

fn draw_table(columns: &[&Column], widths: &[usize], style: OutputStyle) -> String {
    let mut text = String::new();
    let heading = |(column, width): (&&Column, &usize)| {
        pad(&column.heading, *width, column.is_right_aligned, |text| style.bold(text))
    };
    push_line(&mut text, columns.iter().zip(widths).map(heading));
    if style.terminal {
        text.push_str(&"─".repeat(total_width(widths)));
        text.push('\n');
    }
    let rows = columns.first().map_or(0, |column| column.cells.len());
    for row in 0..rows {
        let cell = |(column, width): (&&Column, &usize)| {
            let cell = &column.cells[row];
            let paint = |text: &str| paint_cell(text, cell, style);
            pad(cell_text(cell), *width, column.is_right_aligned, paint)
        };
        push_line(&mut text, columns.iter().zip(widths).map(cell));
    }
    text
}

fn paint_cell(text: &str, cell: &Cell, style: OutputStyle) -> String {
    if *cell == Cell::Null { style.paint(text, AnsiColor::BrightBlack) } else { text.to_owned() }
}

fn push_line(text: &mut String, cells: impl Iterator<Item = String>) {
    let line = cells.collect::<Vec<_>>().join(COLUMN_GAP);
    text.push_str(line.trim_end());
    text.push('\n');
}

/// A text as wide as its column, cut if need be.
fn pad(text: &str, width: usize, is_right: bool, paint: impl Fn(&str) -> String) -> String {
    let text = truncate(text, width);
    let available = " ".repeat(width.saturating_sub(text.width()));
    if is_right { available + &paint(&text) } else { paint(&text) + &available }
}

/// A text that is no wider than this.
fn truncate(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut available = width.saturating_sub(1);
    for c in text.chars() {
        let Some(left) = available.checked_sub(c.width().unwrap_or(0)) else { break };
        available = left;
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// Record by record, one line a column; columns without any value are left out.
fn records(columns: &[Column], style: OutputStyle) -> Layout {
    let visible: Vec<&Column> = columns.iter().filter(|column| !column.is_empty()).collect();
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let names = visible.iter().map(|column| column.heading.width()).max().unwrap_or(0);
    let mut text = String::new();
    for row in 0..rows {
        let title = format!("── record {} ", row + 1);
        let rule = "─".repeat(
            style.width().unwrap_or(MAX_RULE_WIDTH).min(MAX_RULE_WIDTH).saturating_sub(title.width()),
        );
        text.push_str(&style.paint(&format!("{title}{rule}"), AnsiColor::BrightBlack));
        text.push('\n');
        for column in &visible {
            let name = pad(&column.heading, names, false, |text| style.bold(text));
            push_value(&mut text, &name, names, &column.cells[row], style);
        }
    }
    Layout { text, is_vertical: true, left_out: empty_columns(columns) }
}

/// A value beside its name; a long one goes on below itself.
fn push_value(text: &mut String, name: &str, names: usize, cell: &Cell, style: OutputStyle) {
    let available = style
        .width()
        .map_or(usize::MAX, |width| width.saturating_sub(names + COLUMN_GAP.len()).max(MIN_WIDTH));
    for (index, line) in wrap(cell_text(cell), available).into_iter().enumerate() {
        let margin = if index == 0 { name.to_owned() } else { " ".repeat(names) };
        let line = format!("{margin}{COLUMN_GAP}{}", paint_cell(&line, cell, style));
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// A text in lines that are no wider than this; at least one.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide > width {
            lines.push(String::new());
            used = 0;
        }
        used += wide;
        if let Some(line) = lines.last_mut() {
            line.push(c);
        }
    }
    lines
}

#[cfg(test)]
mod tests;
