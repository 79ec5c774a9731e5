//! Counts the allocations of classification, compared with plain parsing of the same lines.
//!
//! Run `cargo bench --bench allocations [-- LINES]`. It is separate from the timing benchmark, because counting costs
//! time.

use classifier::{
    Call, Classifier, Event, HashKey, Limits, RecordOrigin, Registry, Rules, Sink, UnrecognizedReason,
};
use std::sync::Arc;

#[derive(Default)]
struct Count(usize);

impl Sink for Count {
    fn event(&mut self, _: &Event<'_>) {
        self.0 += 1;
    }
    fn call(&mut self, _: &Call<'_>) {}
    fn unrecognized(&mut self, _: UnrecognizedReason) {}
}

fn main() -> anyhow::Result<()> {
    let count = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(50_000);
    let bytes = demo::lines(7, count);
    let lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
    let rules = Arc::new(Rules::new(Registry::builtin()?, HashKey::FIXED, Limits::default()));
    let mut classifier = Classifier::new(rules);
    // Buffers grow to their final size in the first round.
    classify(&mut classifier, &lines);
    let mut events = 0;
    let ours = allocation_counter::measure(|| events = classify(&mut classifier, &lines));
    let theirs = allocation_counter::measure(|| {
        for line in &lines {
            drop(serde_json::from_slice::<serde_json::Value>(line));
        }
    });
    report(lines.len(), events, &ours, &theirs);
    Ok(())
}

fn classify(classifier: &mut Classifier, lines: &[&[u8]]) -> usize {
    let mut events = Count::default();
    for (number, line) in (0..).zip(lines) {
        let origin =
            RecordOrigin { arrival: demo::START_MICROS, identity: number, ..RecordOrigin::default() };
        classifier.classify(line, &origin, &mut events);
    }
    events.0
}

#[allow(clippy::print_stdout, clippy::cast_precision_loss)]
fn report(
    lines: usize,
    events: usize,
    ours: &allocation_counter::AllocationInfo,
    theirs: &allocation_counter::AllocationInfo,
) {
    println!("{lines} lines, {events} events");
    for (name, info) in [("faultline classify", ours), ("serde_json into Value", theirs)] {
        let per_line = info.count_total as f64 / lines as f64;
        println!("  {name:22} {per_line:.3} allocations a line, {} bytes at most at once", info.bytes_max);
    }
    println!("  {:.3} allocations an event", ours.count_total as f64 / events as f64);
}
