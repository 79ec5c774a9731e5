//! Records in, and in a few words what came out: every shape, every wrapper, every correction.
//!
//! An event reads `kind dialect code canonical`, then `hidden`, `inferred` and `#index` where they hold; a
//! call that worked reads `ok dialect`; what could not be used reads `? reason`.

use super::*;
use crate::{Call, Event, Outcome};
use std::sync::LazyLock;

mod fields;
mod hostile;
mod logs;
mod shapes;
mod signals;
mod spans;

/// Writes down what it is given.
#[derive(Default)]
struct Notes(Vec<String>);

impl Sink for Notes {
    fn event(&mut self, event: &Event<'_>) {
        let code = event.code.as_deref().unwrap_or("-");
        let mut note = format!("{} {} {code} {}", event.kind, event.dialect, event.canonical);
        note.push_str(if event.hidden { " hidden" } else { "" });
        note.push_str(if event.inferred { " inferred" } else { "" });
        if let Some(index) = event.batch_index {
            note.push_str(&format!(" #{index}"));
        }
        self.0.push(note);
    }

    fn call(&mut self, call: &Call<'_>) {
        if matches!(call.outcome, Outcome::Ok | Outcome::InputRequired) {
            let times = if call.count > 1 { format!(" x{}", call.count) } else { String::new() };
            self.0.push(format!("{} {}{times}", call.outcome, call.dialect));
        }
    }

    fn unrecognized(&mut self, reason: Reason) {
        self.0.push(format!("? {}", reason.as_str()));
    }
}

/// Keeps the JSON of the events.
#[derive(Default)]
struct Lines(Vec<serde_json::Value>);

impl Sink for Lines {
    fn event(&mut self, event: &Event<'_>) {
        let mut json = String::new();
        event.write_json(&mut json, None);
        self.0.push(serde_json::from_str(&json).expect(&json));
    }
    fn call(&mut self, _: &Call<'_>) {}
    fn unrecognized(&mut self, _: Reason) {}
}

/// Rules with an operator's file; those without are made once.
fn rules(operator: &str) -> Arc<Rules> {
    static PLAIN: LazyLock<Arc<Rules>> = LazyLock::new(|| make_rules(""));
    if operator.is_empty() { PLAIN.clone() } else { make_rules(operator) }
}

fn make_rules(operator: &str) -> Arc<Rules> {
    let registry = Registry::with_operator_file("test.toml", operator).expect(operator);
    Arc::new(Rules::new(registry, HashKey::FIXED, Limits::default()))
}

/// Long after every time in these tests.
const ARRIVAL: i64 = 1_900_000_000_000_000;

fn origin() -> Origin<'static> {
    Origin { arrival: ARRIVAL, ..Origin::default() }
}

fn notes_with(operator: &str, record: impl AsRef<[u8]>) -> Vec<String> {
    let mut notes = Notes::default();
    Classifier::new(rules(operator)).classify(record.as_ref(), &origin(), &mut notes);
    notes.0
}

/// Checks what a record says in a few words.
#[track_caller]
fn check(record: &str, expected: &[&str]) {
    assert_eq!(notes_with("", record), expected, "{record}");
}

/// Checks what a record says when an operator's file is in use.
#[track_caller]
fn check_with(operator: &str, record: &str, expected: &[&str]) {
    assert_eq!(notes_with(operator, record), expected, "{record}");
}

/// The only event of a record, as JSON.
#[track_caller]
fn event(record: &str) -> serde_json::Value {
    let mut lines = Lines::default();
    Classifier::new(rules("")).classify(record.as_bytes(), &origin(), &mut lines);
    assert_eq!(lines.0.len(), 1, "{record}");
    lines.0.remove(0)
}

/// An envelope as JSON text in a tool result.
fn in_tool_result(envelope: &str, is_error: Option<bool>) -> String {
    let text = serde_json::to_string(envelope).expect("text");
    let flag = is_error.map(|flag| format!(",\"isError\":{flag}")).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[{{"type":"text","text":{text}}}]{flag}}}}}"#)
}
