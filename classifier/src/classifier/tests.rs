//! Classifies records of every shape, wrapper and correction, and compares a short summary of the result.
//!
//! An event reads `kind dialect code canonical`, followed by `hidden`, `inferred` and `#index` where they apply. A
//! call that succeeded reads `ok dialect`. A record that could not be used reads `? reason`.

use super::*;
use crate::{Call, Event, Outcome};
use std::sync::LazyLock;

mod agent_events;
mod api_shapes;
mod envelope_shapes;
mod event_fields;
mod framing;
mod hostile_input;
mod instrumented_spans;
mod log_records;
mod pairing;
mod spans;
mod telemetry;
mod transcripts;

/// A sink that writes a summary line for each thing it receives.
#[derive(Default)]
struct SummarySink(Vec<String>);

impl Sink for SummarySink {
    fn event(&mut self, event: &Event<'_>) {
        let code = event.code.as_deref().unwrap_or("-");
        let mut summary = format!("{} {} {code} {}", event.kind, event.dialect, event.canonical);
        summary.push_str(if event.hidden { " hidden" } else { "" });
        summary.push_str(if event.inferred { " inferred" } else { "" });
        if let Some(index) = event.batch_index {
            summary.push_str(&format!(" #{index}"));
        }
        self.0.push(summary);
    }

    fn call(&mut self, call: &Call<'_>) {
        if matches!(call.outcome, Outcome::Ok | Outcome::InputRequired) {
            let times = if call.count > 1 { format!(" x{}", call.count) } else { String::new() };
            self.0.push(format!("{} {}{times}", call.outcome, call.dialect));
        }
    }

    fn unrecognized(&mut self, reason: UnrecognizedReason) {
        self.0.push(format!("? {}", reason.as_str()));
    }
}

/// A sink that keeps the JSON of the events.
#[derive(Default)]
struct JsonSink(Vec<serde_json::Value>);

impl Sink for JsonSink {
    fn event(&mut self, event: &Event<'_>) {
        let mut json = String::new();
        event.write_json(&mut json, None);
        self.0.push(serde_json::from_str(&json).expect(&json));
    }
    fn call(&mut self, _: &Call<'_>) {}
    fn unrecognized(&mut self, _: UnrecognizedReason) {}
}

/// Returns rules with an operator's file. The rules without one are created once and shared.
fn rules(operator: &str) -> Arc<Rules> {
    static PLAIN: LazyLock<Arc<Rules>> = LazyLock::new(|| make_rules(""));
    if operator.is_empty() { PLAIN.clone() } else { make_rules(operator) }
}

fn make_rules(operator: &str) -> Arc<Rules> {
    let registry = Registry::with_operator_file("test.toml", operator).expect(operator);
    Arc::new(Rules::new(registry, HashKey::FIXED, Limits::default()))
}

/// A time of arrival that is later than every time in these tests.
const ARRIVAL: i64 = 1_900_000_000_000_000;

fn origin() -> RecordOrigin<'static> {
    RecordOrigin { arrival: ARRIVAL, ..RecordOrigin::default() }
}

fn summarize_with(operator: &str, record: impl AsRef<[u8]>) -> Vec<String> {
    let mut sink = SummarySink::default();
    Classifier::new(rules(operator)).classify(record.as_ref(), &origin(), &mut sink);
    sink.0
}

/// Checks the summary of a record.
#[track_caller]
fn check(record: &str, expected: &[&str]) {
    assert_eq!(summarize_with("", record), expected, "{record}");
}

/// Checks the summary of a record when an operator's file is in use.
#[track_caller]
fn check_with(operator: &str, record: &str, expected: &[&str]) {
    assert_eq!(summarize_with(operator, record), expected, "{record}");
}

/// Returns the only event of a record as JSON.
#[track_caller]
fn event(record: &str) -> serde_json::Value {
    let mut sink = JsonSink::default();
    Classifier::new(rules("")).classify(record.as_bytes(), &origin(), &mut sink);
    assert_eq!(sink.0.len(), 1, "{record}");
    sink.0.remove(0)
}

/// Returns an envelope as JSON text inside a tool result.
fn in_tool_result(envelope: &str, is_error: Option<bool>) -> String {
    let text = serde_json::to_string(envelope).expect("text");
    let flag = is_error.map(|flag| format!(",\"isError\":{flag}")).unwrap_or_default();
    format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[{{"type":"text","text":{text}}}]{flag}}}}}"#)
}

/// A sink that keeps only the category of each error and the outcome of each call that did not fail.
#[derive(Default)]
struct OutcomeSink(Vec<String>);

impl Sink for OutcomeSink {
    fn event(&mut self, event: &Event<'_>) {
        self.0.push(format!("{}{}", event.category, if event.hidden { " hidden" } else { "" }));
    }

    fn call(&mut self, call: &Call<'_>) {
        if !matches!(call.outcome, Outcome::Failed | Outcome::Hidden) {
            self.0.push(call.outcome.to_string());
        }
    }

    fn unrecognized(&mut self, reason: UnrecognizedReason) {
        self.0.push(format!("? {}", reason.as_str()));
    }
}

fn outcomes(record: &str) -> Vec<String> {
    let mut sink = OutcomeSink::default();
    Classifier::new(rules("")).classify(record.as_bytes(), &origin(), &mut sink);
    sink.0
}

/// Checks the outcome of each record. Several outcomes are separated by `, `.
#[track_caller]
fn check_outcomes(cases: &[(&str, &str)]) {
    let wrong: Vec<String> = cases
        .iter()
        .filter(|(record, expected)| outcomes(record).join(", ") != *expected)
        .map(|(record, expected)| format!("{record}\n  is {:?}, expected {expected}", outcomes(record)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
