//! The layout of rows on a terminal: as a table if the columns fit, and otherwise record by record.
//!
//! Columns without a value in any row are left out first, then long texts are truncated. Numbers and times are never
//! truncated, since a part of one would be misleading.

use super::cells::{self, Cell};
use crate::cli::terminal::{OutputStyle, format_count, sanitize};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use clap::builder::styling::AnsiColor;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The minimum width of a truncated text.
const MIN_WIDTH: usize = 12;
/// The gap between two columns.
const COLUMN_GAP: &str = "  ";
/// The maximum length of a text in a table cell.
const MAX_CELL_CHARS: usize = 400;
/// The maximum length of a text in a record, which has its line to itself.
const MAX_LINE_CHARS: usize = 4_000;
/// The text of a null value.
const NULL: &str = "NULL";
/// The maximum width of the line above a record.
const MAX_RULE_WIDTH: usize = 60;

/// A formatted column.
struct Column {
    heading: String,
    cells: Vec<Cell>,
    is_right_aligned: bool,
    /// True if the values must not be truncated.
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

    /// Returns the minimum width of the column.
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

/// The layout of rows.
pub(super) struct Layout {
    pub(super) text: String,
    /// True if the rows are laid out record by record.
    pub(super) is_vertical: bool,
    /// A note about the columns that were left out, if any.
    pub(super) left_out: Option<String>,
}

/// Lays out rows as a table if that fits, and otherwise record by record.
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

/// Returns a table, or `None` if it does not fit even with the narrowest columns.
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

/// Returns the width of a table, including gaps.
fn total_width(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + COLUMN_GAP.len() * widths.len().saturating_sub(1)
}

/// Returns widths that fit the available space: the widest columns are truncated first, all to the same width.
fn fit_widths(natural: &[usize], min_width: &[usize], available: usize) -> Option<Vec<usize>> {
    let capped = |cap: usize| -> Vec<usize> {
        natural
            .iter()
            .zip(min_width)
            .map(|(natural, min_width)| (*natural).min(cap.max(*min_width)))
            .collect()
    };
    let widest = natural.iter().copied().max().unwrap_or(0);
    // The total width grows with the cap, so binary search finds the largest cap that fits.
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

/// Pads a text to the width of its column, and truncates it if necessary.
fn pad(text: &str, width: usize, is_right: bool, paint: impl Fn(&str) -> String) -> String {
    let text = truncate(text, width);
    let available = " ".repeat(width.saturating_sub(text.width()));
    if is_right { available + &paint(&text) } else { paint(&text) + &available }
}

/// Truncates a text to a width.
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

/// Lays out rows record by record, with one line per column; columns without any value are left out.
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

/// Appends a value beside its name; a long one continues on the next lines.
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

/// Splits a text into lines of at most this width. There is at least one line.
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
