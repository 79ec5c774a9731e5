//! Measures the path from lines to the bytes of a WAL record, without a socket and without a disk.
//!
//! `cargo bench --bench rows [-- LINES]` takes turns over the same lines: `serde_json` into `Value`, classification
//! alone, with rows, and with the record's bytes, in batches of a thousand lines. The relevant result is the ratio of
//! the medians of interleaved rounds, in CPU time, so that a busy machine distorts it little.

use classifier::{
    Call, Classifier, Event, HashKey, Limits, RecordOrigin, Registry, Rules, Sink, UnrecognizedReason,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Duration;
use store::Table;
use store::codec::Encoder;
use store::rows::{EventRow, EventRows, Relation};

const ROUNDS: usize = 11;
const BATCH: usize = 1000;

/// The last stage to run.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Stage {
    Classify,
    Rows,
    Record,
}

struct Path {
    classifier: Classifier,
    encoder: Encoder,
    rows: EventRows,
    stage: Stage,
    bytes: usize,
}

impl Sink for Keep<'_> {
    fn event(&mut self, event: &Event<'_>) {
        black_box(event);
        if self.keep {
            self.rows.push(EventRow { event, ingested_at: demo::START_MICROS, relation: Relation::Primary });
        }
    }
    fn call(&mut self, call: &Call<'_>) {
        black_box(call);
    }
    fn unrecognized(&mut self, reason: UnrecognizedReason) {
        black_box(reason);
    }
}

struct Keep<'k> {
    rows: &'k mut EventRows,
    keep: bool,
}

impl Path {
    fn go(&mut self, lines: &[&[u8]]) -> anyhow::Result<()> {
        self.bytes = 0;
        let origin =
            RecordOrigin { arrival: demo::START_MICROS, source: Some("bench"), ..RecordOrigin::default() };
        for batch in lines.chunks(BATCH) {
            let mut keep = Keep { rows: &mut self.rows, keep: self.stage >= Stage::Rows };
            for (number, line) in (0..).zip(batch) {
                self.classifier.classify(line, &RecordOrigin { identity: number, ..origin }, &mut keep);
            }
            if self.stage >= Stage::Rows {
                let batch = self.rows.finish()?;
                if self.stage == Stage::Record {
                    let mut record = Vec::with_capacity(1 << 20);
                    self.encoder.append(&mut record, Table::Events, batch)?;
                    self.bytes += black_box(&record).len();
                } else {
                    black_box(batch);
                }
            }
        }
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let count = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(200_000);
    for (name, mix) in [("everyday", demo::Mix::Everyday), ("failures only", demo::Mix::FailuresOnly)] {
        let mut traffic = demo::Traffic::with_mix(7, mix);
        let mut bytes = Vec::new();
        (0..count).for_each(|_| traffic.next_line(&mut bytes));
        compare(name, &bytes)?;
    }
    Ok(())
}

#[allow(clippy::print_stdout, clippy::cast_precision_loss)]
fn compare(name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
    let rules = Arc::new(Rules::new(Registry::builtin()?, HashKey::FIXED, Limits::default()));
    let mut path = Path {
        classifier: Classifier::new(rules),
        encoder: Encoder::default(),
        rows: EventRows::default(),
        stage: Stage::Classify,
        bytes: 0,
    };
    let stages = [("classify", Stage::Classify), ("with rows", Stage::Rows), ("with record", Stage::Record)];
    let mut times = [const { Vec::new() }; 4];
    for _ in 0..ROUNDS {
        times[3].push(time(|| {
            lines.iter().for_each(|line| drop(black_box(serde_json::from_slice::<serde_json::Value>(line))));
        }));
        for (place, (_, stage)) in stages.into_iter().enumerate() {
            path.stage = stage;
            let mut result = Ok(());
            times[place].push(time(|| result = path.go(&lines)));
            result?;
        }
    }
    let [classify, rows, record, parse] = times.map(median);
    println!(
        "{name}: {} lines, {:.0} bytes of record a line",
        lines.len(),
        path.bytes as f64 / lines.len() as f64
    );
    for (name, time) in [
        ("serde_json into Value", parse),
        ("classify", classify),
        ("with rows", rows),
        ("with record", record),
    ] {
        let each = time.as_secs_f64() * 1e6 / lines.len() as f64;
        println!("  {name:<22} {each:.3} us a line, ratio {:.3}", time.as_secs_f64() / parse.as_secs_f64());
    }
    Ok(())
}

fn time(work: impl FnOnce()) -> Duration {
    let start = cpu_time();
    work();
    cpu_time().saturating_sub(start)
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
