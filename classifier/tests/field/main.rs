//! The accuracy of the classifier on real payloads and on test cases of this repository.
//!
//! The payloads themselves are not part of the repository. The environment variable `FAULTLINE_FIELD_CORPUS` names a
//! file of JSON lines, one payload with its label per line. If it is unset, only the test cases of this repository
//! run, and a note says so. A labelled failure is classified correctly if it yields exactly one error event in its
//! category or an acceptable one; any other payload if it yields no error event.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may expect, and this one reports what it read"
)]

mod otlp;

use classifier::{
    Call, Classifier, Event, EventKind, HashKey, Limits, RecordOrigin, Registry, Rules, Sink,
    UnrecognizedReason,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

const CORPUS: &str = "FAULTLINE_FIELD_CORPUS";
/// The environment variable that makes the test print every wrong payload instead of only its id.
const VERBOSE: &str = "FAULTLINE_FIELD_VERBOSE";

/// Forms that arrive over OTLP, and are taken apart before they are classified.
const OTLP_FORMS: [&str; 2] = ["otlp_span", "otlp_log"];

/// A sink that keeps the errors of a payload.
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

/// Returns the errors of a payload: of an OTLP request, or of lines as `faultline classify` would read them from a log.
fn errors(classifier: &mut Classifier, form: &str, payload: &Value) -> Errors {
    let mut errors = Errors::default();
    if OTLP_FORMS.contains(&form) {
        otlp::classify(classifier, payload, &mut errors);
        return errors;
    }
    let text = payload.as_str().map_or_else(|| payload.to_string(), str::to_owned);
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

/// The number of correct results and the total.
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
    /// Expected and actual results of the wrong cases, with their ids.
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
    let mut report = Report::default();
    for case in text.lines().filter(|line| !line.trim().is_empty()).map(Case::read) {
        // Each case has its own classifier, because earlier payloads must not help.
        let errors = errors(&mut Classifier::new(Arc::clone(&rules)), &case.form, &case.payload);
        report.add(&case, &errors);
    }
    report.print("Lines as `faultline classify` reads them, and OTLP requests:");
    assert!(report.all.right * 100 >= report.all.all * 95, "fewer than 95 % are right");
    let false_alarms = report.others.all - report.others.right;
    assert!(false_alarms * 100 <= report.others.all * 2, "more than 2 % false alarms");
}
