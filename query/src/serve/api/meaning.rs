//! The registry's description of a code.

use super::request::{Row, text};
use super::shape::{NULLABLE_FLAG, NULLABLE_TEXT, NULLABLE_WHOLE, Shape};
use classifier::Registry;
use classifier::registry::{CategoryInfo, Entry};
use serde_json::{Value, json};

/// The members of a description.
pub(super) const MEMBERS: &[super::shape::Member] = &[
    ("description", Shape::Text),
    ("severity", Shape::Text),
    ("retryable", NULLABLE_FLAG),
    ("recovery", Shape::Text),
    ("http_status", NULLABLE_WHOLE),
    ("runbook", NULLABLE_TEXT),
];

/// The shape of a description, or null if there is none.
pub(super) const NULLABLE: Shape = Shape::Nullable(&Shape::Object(&[MEMBERS]));

/// Returns the description for an event: that of its dialect's code, else of its canonical code, else of its category.
pub(super) fn of_event(registry: &Registry, event: &Row) -> Value {
    let is_of_dialect = |entry: &&Entry| Some(entry.dialect.as_str()) == text(event, "dialect");
    let sent = text(event, "code");
    let entries = registry.entries();
    let by_code = entries.iter().filter(is_of_dialect).find(|entry| Some(entry.code.as_str()) == sent);
    let has_canonical = |entry: &&Entry| Some(entry.canonical.as_str()) == text(event, "canonical");
    let by_canonical = || {
        let in_dialect = entries.iter().filter(is_of_dialect).find(has_canonical);
        in_dialect.or_else(|| entries.iter().find(has_canonical))
    };
    match by_code.or_else(by_canonical) {
        Some(entry) => of_entry(entry),
        None => {
            let category = text(event, "category");
            let info =
                registry.categories().iter().find(|info| Some(info.meaning.category.as_str()) == category);
            info.map_or(Value::Null, of_category)
        }
    }
}

fn of_entry(entry: &Entry) -> Value {
    json!({
        "description": entry.description,
        "severity": entry.meaning.severity.as_str(),
        "retryable": entry.meaning.retryable,
        "recovery": entry.meaning.recovery.as_str(),
        "http_status": entry.http_status,
        "runbook": entry.runbook,
    })
}

fn of_category(info: &CategoryInfo) -> Value {
    json!({
        "description": info.description,
        "severity": info.meaning.severity.as_str(),
        "retryable": info.meaning.retryable,
        "recovery": info.meaning.recovery.as_str(),
        "http_status": null,
        "runbook": info.runbook,
    })
}
