//! The table `codes`, which holds the registry, for joins.

use arrow::array::{
    ArrayRef, BooleanArray, Int32Array, ListBuilder, RecordBatch, StringArray, StringBuilder,
};
use classifier::Registry;
use classifier::registry::{Entry, EntryOrigin};
use datafusion::common::Result;
use datafusion::datasource::MemTable;
use std::sync::Arc;

pub(super) const NAME: &str = "codes";
pub(super) const ABOUT: &str = "Every known code of every dialect, with its meaning";

/// The columns, each with its description.
pub(super) const COLUMNS: [(&str, &str); 13] = [
    ("dialect", "The error model that the code belongs to"),
    ("code", "The code as servers send it"),
    ("name", "The name of the code in its dialect; the code itself unless it is a number"),
    ("canonical", "The code in the cross-dialect taxonomy"),
    ("category", "The category of the canonical code: one of ten"),
    ("severity", "The severity: critical, error, warning or info"),
    ("retryable", "Whether a retry can help; null when only the payload can tell"),
    ("recovery", "What the caller can do about it"),
    ("http_status", "The HTTP status that the dialect assigns to the code"),
    ("description", "The situation in which a server sends the code"),
    ("required_details", "The fields that the details of an error with this code must have"),
    ("origin", "The origin of the entry: specification, field or operator"),
    ("runbook", "The word for the runbook section about the code"),
];

/// Returns the registry as a table.
pub(super) fn table(registry: &Registry) -> Result<MemTable> {
    let entries: Vec<&Entry> = registry.entries().iter().collect();
    let columns = COLUMNS.map(|(name, _)| (name, column(name, &entries)));
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true)))?;
    MemTable::try_new(batch.schema(), vec![vec![batch]])
}

fn column(name: &str, entries: &[&Entry]) -> ArrayRef {
    let text = |of: fn(&Entry) -> &str| -> ArrayRef {
        Arc::new(entries.iter().map(|entry| Some(of(entry))).collect::<StringArray>())
    };
    match name {
        "dialect" => text(|entry| entry.dialect.as_str()),
        "code" => text(|entry| &entry.code),
        "name" => text(|entry| &entry.name),
        "canonical" => text(|entry| &entry.canonical),
        "category" => text(|entry| entry.meaning.category.as_str()),
        "severity" => text(|entry| entry.meaning.severity.as_str()),
        "recovery" => text(|entry| entry.meaning.recovery.as_str()),
        "description" => text(|entry| &entry.description),
        "runbook" => text(|entry| &entry.runbook),
        "origin" => text(|entry| match entry.origin {
            EntryOrigin::Specification => "specification",
            EntryOrigin::Field => "field",
            EntryOrigin::Operator => "operator",
        }),
        "retryable" => {
            Arc::new(entries.iter().map(|entry| entry.meaning.retryable).collect::<BooleanArray>())
        }
        "http_status" => {
            Arc::new(entries.iter().map(|entry| entry.http_status.map(i32::from)).collect::<Int32Array>())
        }
        _ => required_details(entries),
    }
}

fn required_details(entries: &[&Entry]) -> ArrayRef {
    let mut lists = ListBuilder::new(StringBuilder::new());
    for entry in entries {
        for name in entry.required_details() {
            lists.values().append_value(name);
        }
        lists.append(true);
    }
    Arc::new(lists.finish())
}
