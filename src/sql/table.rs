//! Rows laid out for a person: columns that fit the terminal, or record by record where they cannot.
//!
//! Columns without a value in any row are left out first, then long texts are cut; figures and times never are, for half
//! of one would tell something wrong.

use super::cells::{self, Shown};
use crate::terminal::{Look, counted, safe};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use clap::builder::styling::AnsiColor;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A text that is cut keeps at least this much, or it tells nothing.
const LEAST: usize = 12;
/// What stands between two columns.
const GAP: &str = "  ";
/// What is kept of a text that a column cannot show all of anyway.
const CELL: usize = 400;
/// And of one that has the line to itself.
const LINE: usize = 4_000;
/// What a value that is not there looks like.
const NULL: &str = "NULL";
/// The widest rule above a record.
const RULE: usize = 60;

/// A column, ready to be laid out.
struct Column {
    heading: String,
    cells: Vec<Shown>,
    is_figure: bool,
    /// It may not be cut.
    is_whole: bool,
}

impl Column {
    fn is_empty(&self) -> bool {
        !self.cells.is_empty() && self.cells.iter().all(|cell| *cell == Shown::Null)
    }

    fn width(&self) -> usize {
        let cells = self.cells.iter().map(|cell| text_of(cell).width());
        cells.chain([self.heading.width()]).max().unwrap_or(0)
    }

    /// The narrowest it may become.
    fn least(&self) -> usize {
        let width = self.width();
        if self.is_whole { width } else { width.min(LEAST) }
    }
}

fn text_of(cell: &Shown) -> &str {
    match cell {
        Shown::Null => NULL,
        Shown::Text(text) => text,
    }
}

/// Rows, laid out.
pub(super) struct LaidOut {
    pub(super) text: String,
    /// Record by record.
    pub(super) is_vertical: bool,
    /// What was left out, if anything was.
    pub(super) left_out: Option<String>,
}

/// Lays rows out as a table if that fits, and else record by record.
pub(super) fn lay_out(
    schema: &SchemaRef,
    batches: &[RecordBatch],
    look: Look,
    vertical: bool,
) -> Result<LaidOut, ArrowError> {
    if !vertical {
        let columns = columns(schema, batches, CELL)?;
        if let Some(laid_out) = table(&columns, look) {
            return Ok(laid_out);
        }
    }
    Ok(records(&columns(schema, batches, LINE)?, look))
}

fn columns(schema: &SchemaRef, batches: &[RecordBatch], most: usize) -> Result<Vec<Column>, ArrowError> {
    let column = |(index, field): (usize, &std::sync::Arc<arrow::datatypes::Field>)| {
        let mut shown = Vec::new();
        for batch in batches {
            shown.extend(cells::of(batch.column(index), most)?);
        }
        Ok(Column {
            heading: safe(field.name()).into_owned(),
            cells: shown,
            is_figure: cells::is_figure(field.data_type()),
            is_whole: cells::is_whole(field.data_type()),
        })
    };
    schema.fields().iter().enumerate().map(column).collect()
}

/// A table; none when not even the narrowest would fit.
fn table(columns: &[Column], look: Look) -> Option<LaidOut> {
    let mut shown: Vec<&Column> = columns.iter().collect();
    let mut left_out = None;
    let mut widths: Vec<usize> = shown.iter().map(|column| column.width()).collect();
    if let Some(room) = look.width()
        && total(&widths) > room
    {
        shown.retain(|column| !column.is_empty());
        left_out = empty_columns(columns);
        let natural: Vec<usize> = shown.iter().map(|column| column.width()).collect();
        let least: Vec<usize> = shown.iter().map(|column| column.least()).collect();
        widths = fitted(&natural, &least, room)?;
    }
    if shown.is_empty() && !columns.is_empty() {
        return None;
    }
    Some(LaidOut { text: drawn(&shown, &widths, look), is_vertical: false, left_out })
}

fn empty_columns(columns: &[Column]) -> Option<String> {
    let names: Vec<&str> =
        columns.iter().filter(|column| column.is_empty()).map(|column| column.heading.as_str()).collect();
    match names.len() {
        0 => None,
        few @ 1..=5 => {
            Some(format!("{} without a value: {}", counted(few as u64, "column"), names.join(", ")))
        }
        many => Some(format!("{} without a value", counted(many as u64, "column"))),
    }
}

/// The widths of a table, gaps included.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

/// Widths that fit the room: the widest columns are cut first, all to the same width.
fn fitted(natural: &[usize], least: &[usize], room: usize) -> Option<Vec<usize>> {
    let capped = |cap: usize| -> Vec<usize> {
        natural.iter().zip(least).map(|(natural, least)| (*natural).min(cap.max(*least))).collect()
    };
    let widest = natural.iter().copied().max().unwrap_or(0);
    // The more there is room for, the fewer fit: the point between can be found by halving.
    let (mut fits, mut too_wide) = (0, widest + 1);
    if total(&capped(fits)) > room {
        return None;
    }
    while too_wide - fits > 1 {
        let middle = fits + (too_wide - fits) / 2;
        if total(&capped(middle)) <= room { fits = middle } else { too_wide = middle }
    }
    Some(capped(fits))
}

fn drawn(columns: &[&Column], widths: &[usize], look: Look) -> String {
    let mut text = String::new();
    let heading = |(column, width): (&&Column, &usize)| {
        padded(&column.heading, *width, column.is_figure, |text| look.bold(text))
    };
    push_line(&mut text, columns.iter().zip(widths).map(heading));
    if look.terminal {
        text.push_str(&"─".repeat(total(widths)));
        text.push('\n');
    }
    let rows = columns.first().map_or(0, |column| column.cells.len());
    for row in 0..rows {
        let cell = |(column, width): (&&Column, &usize)| {
            let cell = &column.cells[row];
            let paint = |text: &str| painted(text, cell, look);
            padded(text_of(cell), *width, column.is_figure, paint)
        };
        push_line(&mut text, columns.iter().zip(widths).map(cell));
    }
    text
}

fn painted(text: &str, cell: &Shown, look: Look) -> String {
    if *cell == Shown::Null { look.paint(text, AnsiColor::BrightBlack) } else { text.to_owned() }
}

fn push_line(text: &mut String, cells: impl Iterator<Item = String>) {
    let line = cells.collect::<Vec<_>>().join(GAP);
    text.push_str(line.trim_end());
    text.push('\n');
}

/// A text as wide as its column, cut if need be.
fn padded(text: &str, width: usize, is_right: bool, paint: impl Fn(&str) -> String) -> String {
    let text = cut(text, width);
    let room = " ".repeat(width.saturating_sub(text.width()));
    if is_right { room + &paint(&text) } else { paint(&text) + &room }
}

/// A text that is no wider than this.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut room = width.saturating_sub(1);
    for c in text.chars() {
        let Some(left) = room.checked_sub(c.width().unwrap_or(0)) else { break };
        room = left;
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// Record by record, one line a column; columns without any value are left out.
fn records(columns: &[Column], look: Look) -> LaidOut {
    let shown: Vec<&Column> = columns.iter().filter(|column| !column.is_empty()).collect();
    let rows = columns.first().map_or(0, |column| column.cells.len());
    let names = shown.iter().map(|column| column.heading.width()).max().unwrap_or(0);
    let mut text = String::new();
    for row in 0..rows {
        let title = format!("── record {} ", row + 1);
        let rule = "─".repeat(look.width().unwrap_or(RULE).min(RULE).saturating_sub(title.width()));
        text.push_str(&look.paint(&format!("{title}{rule}"), AnsiColor::BrightBlack));
        text.push('\n');
        for column in &shown {
            let name = padded(&column.heading, names, false, |text| look.bold(text));
            push_value(&mut text, &name, names, &column.cells[row], look);
        }
    }
    LaidOut { text, is_vertical: true, left_out: empty_columns(columns) }
}

/// A value beside its name; a long one goes on below itself.
fn push_value(text: &mut String, name: &str, names: usize, cell: &Shown, look: Look) {
    let room = look.width().map_or(usize::MAX, |width| width.saturating_sub(names + GAP.len()).max(LEAST));
    for (index, line) in wrapped(text_of(cell), room).into_iter().enumerate() {
        let margin = if index == 0 { name.to_owned() } else { " ".repeat(names) };
        let line = format!("{margin}{GAP}{}", painted(&line, cell, look));
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// A text in lines that are no wider than this; at least one.
fn wrapped(text: &str, width: usize) -> Vec<String> {
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
