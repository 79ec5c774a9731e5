//! The accuracy of the classifier on real payloads, and on cases of our own.
//!
//! The payloads themselves are no part of the repository. The environment variable
//! `FAULTLINE_FIELD_CORPUS` names a file of JSON lines, one payload a line with its label; when it is unset,
//! only our own cases run, and a note says so. A failure is right when it yields exactly one error event
//! in its category or an acceptable one; anything else is right when it yields no error event.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may expect, and this one reports what it read"
)]

use classifier::{
    Call, Classifier, Event, EventKind, HashKey, Limits, RecordOrigin, Registry, Rules, Sink,
    UnrecognizedReason,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

const CORPUS: &str = "FAULTLINE_FIELD_CORPUS";
/// Prints every payload that is wrong, not only its id.
const VERBOSE: &str = "FAULTLINE_FIELD_VERBOSE";

/// Forms that come in over OTLP: the collector takes them apart, so that a line of text is not their form.
const OTLP_FORMS: [&str; 2] = ["otlp_span", "otlp_log"];

/// Keeps what the errors of a payload are.
#[derive(Default)]
struct Errors(Vec<(String, Option<String>, Option<String>, String)>);

impl Sink for Errors {
    fn event(&mut self, event: &Event<'_>) {
        if event.kind == EventKind::Error {
            self.0.push((
                event.category.to_string(),
                event.fault.map(|fault| fault.to_string()),
                event.context.operation.as_deref().map(str::to_owned),
                event.canonical.to_string(),
            ));
        }
    }
    fn call(&mut self, _: &Call<'_>) {}
    fn unrecognized(&mut self, _: UnrecognizedReason) {}
}

/// The errors of a payload, as `faultline classify` would read them from a log.
fn errors(classifier: &mut Classifier, payload: &Value) -> Errors {
    let text = payload.as_str().map_or_else(|| payload.to_string(), str::to_owned);
    let mut errors = Errors::default();
    for line in text.lines() {
        classifier.classify(line.as_bytes(), &RecordOrigin::default(), &mut errors);
    }
    errors
}

fn rules() -> Arc<Rules> {
    Arc::new(Rules::new(Registry::builtin().expect("the registry"), HashKey::FIXED, Limits::default()))
}

/// One labelled payload.
struct Case {
    id: String,
    form: String,
    payload: Value,
    truth: Value,
}

impl Case {
    fn read(line: &str) -> Self {
        let case: Value = serde_json::from_str(line).expect(line);
        let text = |key: &str| case[key].as_str().map_or_else(|| case[key].to_string(), str::to_owned);
        Self {
            id: text("id"),
            form: text("form"),
            payload: case["payload"].clone(),
            truth: case["truth"].clone(),
        }
    }

    fn failed(&self) -> bool {
        self.truth["outcome"] == "failed"
    }

    fn is_right(&self, errors: &Errors) -> bool {
        let is_accepted = |category: &str| {
            self.truth["category"] == category
                || self.truth["acceptable"]
                    .as_array()
                    .is_some_and(|all| all.iter().any(|one| one == category))
        };
        match errors.0.as_slice() {
            [] => !self.failed(),
            [(category, ..)] => self.failed() && is_accepted(category),
            _ => false,
        }
    }
}

/// How many were right, of how many.
#[derive(Default, Clone, Copy)]
struct Tally {
    right: usize,
    all: usize,
}

impl Tally {
    fn add(&mut self, right: bool) {
        self.right += usize::from(right);
        self.all += 1;
    }
}

#[derive(Default)]
struct Report {
    all: Tally,
    failures: Tally,
    others: Tally,
    by_form: BTreeMap<String, Tally>,
    by_category: BTreeMap<String, Tally>,
    /// Truth and verdict of what is wrong, with the ids.
    wrong: BTreeMap<(String, String), Vec<String>>,
    faults: Tally,
    operations: Tally,
}

impl Report {
    fn add(&mut self, case: &Case, errors: &Errors) {
        let right = case.is_right(errors);
        let category = case.truth["category"].as_str().unwrap_or_default();
        let truth = if case.failed() { category.to_owned() } else { "no failure".to_owned() };
        self.all.add(right);
        if case.failed() { &mut self.failures } else { &mut self.others }.add(right);
        self.by_form.entry(case.form.clone()).or_default().add(right);
        self.by_category.entry(truth.clone()).or_default().add(right);
        if let ([(_, fault, operation, _)], true) = (errors.0.as_slice(), case.failed()) {
            let is_same = case.truth["fault"].as_str() == fault.as_deref();
            self.faults.add(is_same);
            if !is_same && std::env::var_os(VERBOSE).is_some() {
                println!("{} fault {} <- {fault:?}", case.id, case.truth["fault"]);
            }
            if let Some(wanted) = case.truth["operation"].as_str() {
                self.operations.add(operation.as_deref() == Some(wanted));
            }
        }
        if right {
            return;
        }
        let verdict = match errors.0.as_slice() {
            [] => "missed".to_owned(),
            [(category, _, _, canonical)] => format!("{category} ({canonical})"),
            many => format!("{} events", many.len()),
        };
        if std::env::var_os(VERBOSE).is_some() {
            let text = case.payload.as_str().map_or_else(|| case.payload.to_string(), str::to_owned);
            println!("{} {truth} <- {verdict}: {}", case.id, text.chars().take(400).collect::<String>());
        }
        self.wrong.entry((truth, verdict)).or_default().push(case.id.clone());
    }

    fn print(&self, title: &str) {
        let line = |name: &str, tally: Tally| println!("  {name:<24} {:>4} of {:>4}", tally.right, tally.all);
        println!("{title}");
        line("all", self.all);
        line("failures", self.failures);
        line("no failures", self.others);
        self.by_form.iter().for_each(|(form, tally)| line(form, *tally));
        self.by_category.iter().for_each(|(category, tally)| line(category, *tally));
        line("fault", self.faults);
        line("operation", self.operations);
        for ((truth, verdict), ids) in &self.wrong {
            println!("  {truth} <- {verdict}: {}", ids.join(" "));
        }
    }
}

#[test]
fn real_payloads_are_read_right() {
    let Some(path) = std::env::var_os(CORPUS) else {
        println!("NOTE: {CORPUS} is unset, so the accuracy on real payloads was not measured.");
        return;
    };
    let text = std::fs::read_to_string(&path).expect("the file that the environment variable names");
    let rules = rules();
    let (mut report, mut otlp) = (Report::default(), Report::default());
    for case in text.lines().filter(|line| !line.trim().is_empty()).map(Case::read) {
        // A classifier of its own: earlier payloads must not help.
        let errors = errors(&mut Classifier::new(Arc::clone(&rules)), &case.payload);
        let is_otlp = OTLP_FORMS.contains(&case.form.as_str());
        if is_otlp { &mut otlp } else { &mut report }.add(&case, &errors);
    }
    report.print("Lines, as `faultline classify` reads them:");
    otlp.print("OTLP requests, which the collector would take apart first (not asserted):");
    assert!(report.all.right * 100 >= report.all.all * 95, "fewer than 95 % are right");
    let false_alarms = report.others.all - report.others.right;
    assert!(false_alarms * 100 <= report.others.all * 2, "more than 2 % false alarms");
}
