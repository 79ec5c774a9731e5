//! The explanation of one code, with its meanings in all dialects side by side.

use super::{Code, formats};
use crate::cli::terminal::{self, OutputStyle, cell};
use classifier::registry::{DetailField, MessageTemplate, OperatorEntry};
use comfy_table::{ContentArrangement, Row};

/// The width of the table if stdout is not a terminal.
const DEFAULT_WIDTH: u16 = 120;
/// The number of meanings next to each other. With more, their sentences would wrap after every word.
const CODES_PER_TABLE: usize = 4;

/// Returns a table with a column for each meaning, or several tables if there are too many meanings for one.
pub(super) fn side_by_side(codes: &[Code<'_>], style: OutputStyle) -> String {
    let tables: Vec<String> = codes.chunks(CODES_PER_TABLE).map(|codes| columns(codes, style)).collect();
    tables.join("\n")
}

fn columns(codes: &[Code<'_>], style: OutputStyle) -> String {
    let headings: Vec<&str> = std::iter::once("").chain(codes.iter().map(|code| code.dialect)).collect();
    let mut table = style.table(&headings);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    if !style.terminal {
        table.set_width(DEFAULT_WIDTH);
    }
    let has_own = codes.iter().any(|code| code.operator.is_some());
    for (label, value) in ROWS.into_iter().chain(has_own.then_some(MAPS_FROM_ROW)) {
        let values: Vec<String> = codes.iter().map(value).collect();
        let mut row = Row::from(vec![style.bold_cell(label)]);
        for value in &values {
            row.add_cell(cell(if value.is_empty() { "-" } else { value }));
        }
        table.add_row(row);
    }
    terminal::render_table(&table)
}

type Value = fn(&Code<'_>) -> String;

/// The rows that explain a code, from top to bottom.
const ROWS: [(&str, Value); 12] = [
    ("code", |code| code.entry.code.clone()),
    ("name", |code| code.entry.name.clone()),
    ("canonical", |code| code.entry.canonical.clone()),
    ("category", |code| code.entry.meaning.category.to_string()),
    ("severity", |code| code.entry.meaning.severity.to_string()),
    ("retryable", |code| match code.entry.meaning.retryable {
        None => "as the payload says".to_owned(),
        known => formats::retry(known).to_owned(),
    }),
    ("recovery", |code| code.entry.meaning.recovery.to_string()),
    ("http status", formats::status),
    ("message", |code| code.entry.message.as_ref().map(MessageTemplate::text).unwrap_or_default().to_owned()),
    ("details", |code| code.entry.details.iter().map(field).collect::<Vec<_>>().join(", ")),
    ("description", |code| code.entry.description.clone()),
    ("runbook", |code| code.entry.runbook.clone()),
];

/// The row that is added if one of the codes is an operator's.
const MAPS_FROM_ROW: (&str, Value) = ("stands for", |code| code.operator.map(mapping).unwrap_or_default());

fn field(field: &DetailField) -> String {
    format!("{}{}", field.name, if field.optional { "?" } else { "" })
}

/// Describes the codes that an operator's entry replaces, and its condition.
fn mapping(own: &OperatorEntry) -> String {
    let statuses = own.maps_from_http.iter().map(|status| format!("HTTP {status}"));
    let mut parts: Vec<String> = own.maps_from.iter().cloned().chain(statuses).collect();
    if parts.is_empty() {
        parts.push("itself".to_owned());
    }
    let mut text = parts.join(", ");
    if let Some(service) = &own.service {
        text.push_str(&format!(" of service '{service}'"));
    }
    if own.condition.is_some() {
        text.push_str(" when its condition holds");
    }
    format!("{text} (line {})", own.line)
}
