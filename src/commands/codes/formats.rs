//! A list of codes as a table, as CSV and as JSON.

use super::Code;
use crate::cli::terminal::{self, OutputStyle, cell, sanitize};
use classifier::registry::{EntryOrigin, MessageTemplate};
use serde_json::{Value, json};

/// The columns of the CSV format. Their order must never change, since scripts depend on it.
const CSV_HEADER: &str =
    "dialect,code,name,canonical,category,severity,retryable,recovery,http_status,description";

/// The columns that are hidden on a narrow terminal, the first to hide first; CSV and JSON have them all.
const HIDE_ORDER: [usize; 5] = [7, 6, 4, 5, 2];

/// Returns a table for a terminal. It has no category, which is the first word of the canonical code, and no name that
/// equals the code, since both would only take up space.
pub(super) fn table(codes: &[Code<'_>], style: OutputStyle) -> String {
    let headings = ["DIALECT", "CODE", "NAME", "CANONICAL", "SEVERITY", "RETRY", "RECOVERY", "HTTP"];
    let mut table = style.table(&headings);
    for code in codes {
        let entry = code.entry;
        let name = if entry.name == entry.code { "" } else { &entry.name };
        let status = status(code);
        table.add_row(
            [
                code.dialect,
                &entry.code,
                name,
                &entry.canonical,
                entry.meaning.severity.as_str(),
                retry(entry.meaning.retryable),
                entry.meaning.recovery.as_str(),
                &status,
            ]
            .map(cell),
        );
    }
    if style.fit(&mut table, &HIDE_ORDER) {
        return terminal::render_table(&table)
            + "Some columns are left out for want of room; --format csv has them.\n";
    }
    terminal::render_table(&table)
}

/// Returns a word that says if a retry can help.
pub(super) fn retry(retryable: Option<bool>) -> &'static str {
    match retryable {
        Some(true) => "yes",
        Some(false) => "no",
        None => "-",
    }
}

pub(super) fn status(code: &Code<'_>) -> String {
    code.entry.http_status.map(|status| status.to_string()).unwrap_or_default()
}

/// Formats codes as comma-separated values.
pub(super) fn csv(codes: &[Code<'_>]) -> String {
    let mut text = format!("{CSV_HEADER}\n");
    for code in codes {
        let entry = code.entry;
        let meaning = entry.meaning;
        let retryable = meaning.retryable.map(|retryable| retryable.to_string()).unwrap_or_default();
        let status = status(code);
        let fields = [
            code.dialect,
            &entry.code,
            &entry.name,
            &entry.canonical,
            meaning.category.as_str(),
            meaning.severity.as_str(),
            &retryable,
            meaning.recovery.as_str(),
            &status,
            &entry.description,
        ];
        text.push_str(&fields.map(quote_csv).join(","));
        text.push('\n');
    }
    text
}

/// Returns a CSV field, in quotes where RFC 4180 requires them.
fn quote_csv(field: &str) -> String {
    let field = sanitize(field);
    if field.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.into_owned()
    }
}

/// Formats codes as a JSON list with one code per line. The fields are in the order of the CSV columns, followed by the
/// rest.
pub(super) fn json(codes: &[Code<'_>]) -> String {
    let objects: Vec<String> = codes.iter().map(|code| format!("\n  {}", object(code))).collect();
    let mut text =
        if objects.is_empty() { "[]\n".to_owned() } else { format!("[{}\n]\n", objects.join(",")) };
    terminal::sanitize_json(&mut text);
    text
}

fn object(code: &Code<'_>) -> String {
    let entry = code.entry;
    let details = entry.details.iter().map(|field| json!({"name": field.name, "optional": field.optional}));
    let mut fields = vec![
        ("dialect", json!(code.dialect)),
        ("code", json!(entry.code)),
        ("name", json!(entry.name)),
        ("canonical", json!(entry.canonical)),
        ("category", json!(entry.meaning.category.as_str())),
        ("severity", json!(entry.meaning.severity.as_str())),
        ("retryable", json!(entry.meaning.retryable)),
        ("recovery", json!(entry.meaning.recovery.as_str())),
        ("http_status", json!(entry.http_status)),
        ("description", json!(entry.description)),
        ("message", json!(entry.message.as_ref().map(MessageTemplate::text))),
        ("details", details.collect()),
        ("origin", json!(origin(entry.origin))),
        ("runbook", json!(entry.runbook)),
    ];
    if let Some(own) = code.operator {
        fields.extend([
            ("maps_from", json!(own.maps_from)),
            ("maps_from_http", json!(own.maps_from_http)),
            ("service", json!(own.service)),
            ("line", json!(own.line)),
        ]);
    }
    // The keys are constants that need no escaping. The object is written by hand, since a map would sort the keys.
    let fields: Vec<String> =
        fields.iter().map(|(key, value): &(_, Value)| format!("\"{key}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn origin(origin: EntryOrigin) -> &'static str {
    match origin {
        EntryOrigin::Specification => "specification",
        EntryOrigin::Field => "field",
        EntryOrigin::Operator => super::OPERATOR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_fields_are_quoted_where_they_must_be() {
        for (field, written) in [
            ("plain", "plain"),
            ("", ""),
            ("a, b", "\"a, b\""),
            ("say \"no\"", "\"say \"\"no\"\"\""),
            ("\u{1b}[31m", "\\u{1b}[31m"),
        ] {
            assert_eq!(quote_csv(field), written);
        }
    }
}
