//! Reads log lines from standard input, and prints each failure with its category, code and group.
//!
//! Run it with:
//!
//! ```sh
//! cargo run --no-default-features --features classify --example classify_lines < examples/app.ndjson
//! ```
//!
//! It uses the crate `classifier` as a library. The classifier takes bytes only: it does no IO and reads no clock.

use classifier::{
    Call, Classifier, Event, HashKey, Limits, RecordOrigin, Registry, RegistryError, Rules, Sink,
    UnrecognizedReason,
};
use std::io::{self, BufRead, Write};
use std::sync::Arc;

/// Prints each event, and counts calls and lines without a response envelope.
struct Printer<W> {
    output: W,
    /// The first error of the output. Later events are still printed, but their errors are dropped.
    error: Option<io::Error>,
    calls: u64,
    unrecognized: u64,
}

impl<W: Write> Sink for Printer<W> {
    /// Prints the event. It borrows from the record, so it is printed at once instead of being kept.
    fn event(&mut self, event: &Event<'_>) {
        let result = writeln!(
            self.output,
            "{} {} {} service={} operation={} hidden={} group={:016x}",
            event.kind,
            event.category,
            event.canonical,
            event.context.service.as_deref().unwrap_or("-"),
            event.context.operation.as_deref().unwrap_or("-"),
            event.hidden,
            event.fingerprint,
        );
        if let Err(error) = result {
            self.error.get_or_insert(error);
        }
    }

    /// Counts the call. Every call is reported here, failed or not, so that you can compute error rates.
    fn call(&mut self, _: &Call<'_>) {
        self.calls += 1;
    }

    fn unrecognized(&mut self, _: UnrecognizedReason) {
        self.unrecognized += 1;
    }
}

/// Builds a classifier with the built-in registry and the default limits.
fn build_classifier() -> Result<Classifier, RegistryError> {
    // Confirmation tokens are hashed with this key. A program that stores hashes should use a secret key of its own.
    let rules = Rules::new(Registry::builtin()?, HashKey::FIXED, Limits::default());
    Ok(Classifier::new(Arc::new(rules)))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut classifier = build_classifier()?;
    let mut printer = Printer { output: io::stdout().lock(), error: None, calls: 0, unrecognized: 0 };
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        classifier.classify(&line, &RecordOrigin::default(), &mut printer);
        line.clear();
    }
    let Printer { error, calls, unrecognized, mut output } = printer;
    if let Some(error) = error {
        return Err(error.into());
    }
    writeln!(output, "{calls} calls, {unrecognized} lines without a response envelope")?;
    Ok(())
}
