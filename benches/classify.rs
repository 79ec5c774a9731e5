//! Compares classification with plain parsing, over the same bytes in the same run.
//!
//! `cargo bench --bench classify [-- LINES]` makes realistic mixed lines, then takes turns: `serde_json` into `Value`,
//! the whole path of Faultline (decode, find, classify, redact, fingerprint), and Faultline's parser alone. Machines
//! are noisy, so the relevant result is the ratio of the medians of interleaved rounds.
//!
//! Three mixes: everyday traffic of the published dialects, their failures only, and prose: free-text errors, flagged
//! and not, ordinary texts that mention errors, and replies behind the prefix of a log line.

use classifier::{
    Call, Classifier, Event, HashKey, Limits, RecordOrigin, Registry, Rules, Sink, UnrecognizedReason,
};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;

/// Free texts of tools: failures, and two that only mention them.
const TEXTS: [&str; 10] = [
    "Error executing tool move_crate: crate 4711 is locked by another worker",
    "Failed to fetch https://depot.example/v2/crates/4711 - status code 404",
    "Access denied - path outside allowed directories: /srv/other not in /srv/depot",
    "1 validation error for move_crate\nshelf\n  Input should be a valid integer [type=int_parsing]",
    "MCP error -32603: API rate limit exceeded, retry after 30 seconds",
    "ENOENT: no such file or directory, open '/srv/depot/labels/4711.pdf'",
    "connect ECONNREFUSED 10.0.0.12:5432",
    "Fehler beim Lesen: Regal 7 nicht gefunden",
    "2 crates on shelf 7:\n- 4711 (label printed, one failed attempt)\n- 4712 (no errors)\nLast inventory: yesterday.",
    "# Handling errors\n\nEvery tool may fail. `RATE_LIMIT` means wait; `NOT_FOUND` means look again.\n\nSee also: retries.",
];
const PREFIX: &[u8] = b"2026-03-17T21:02:23.123Z [depot] [info] Message from server: ";

/// Counts its input, and keeps it from being optimised away.
#[derive(Default)]
struct Count {
    events: usize,
    calls: u64,
    unrecognized: usize,
}

impl Sink for Count {
    fn event(&mut self, event: &Event<'_>) {
        black_box(event);
        self.events += 1;
    }
    fn call(&mut self, call: &Call<'_>) {
        black_box(call);
        self.calls += call.count;
    }
    fn unrecognized(&mut self, reason: UnrecognizedReason) {
        black_box(reason);
        self.unrecognized += 1;
    }
}

fn main() -> anyhow::Result<()> {
    // Cargo passes flags of its own; a bare number is the argument of this benchmark.
    let count = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(200_000);
    for (name, mix) in [("everyday", demo::Mix::Everyday), ("failures only", demo::Mix::FailuresOnly)] {
        compare(name, &generate(mix, count))?;
    }
    compare("prose", &prose(count))
}

/// Returns lines of prose: three tool results with a free text, then a line of everyday traffic behind a prefix.
fn prose(count: usize) -> Vec<u8> {
    let mut traffic = demo::Traffic::with_mix(7, demo::Mix::Everyday);
    let mut bytes = Vec::new();
    for number in 0..count {
        if number % 4 == 3 {
            bytes.extend_from_slice(PREFIX);
            traffic.next_line(&mut bytes);
            continue;
        }
        let text = TEXTS[number * 7 % TEXTS.len()];
        let is_flagged = number % 4 == 0;
        let result =
            serde_json::json!({ "content": [{ "type": "text", "text": text }], "isError": is_flagged });
        let reply = serde_json::json!({ "jsonrpc": "2.0", "id": number, "result": result });
        bytes.extend_from_slice(reply.to_string().as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

fn generate(mix: demo::Mix, count: usize) -> Vec<u8> {
    let mut traffic = demo::Traffic::with_mix(7, mix);
    let mut bytes = Vec::new();
    (0..count).for_each(|_| traffic.next_line(&mut bytes));
    bytes
}

fn compare(name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    let lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()).collect();
    let rules = Arc::new(Rules::new(Registry::builtin()?, HashKey::FIXED, Limits::default()));
    let mut classifier = Classifier::new(rules);
    let mut total = Count::default();
    let (mut parsing, mut classifying) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        parsing.push(time(|| lines.iter().for_each(|line| drop(black_box(parse(line))))));
        total = Count::default();
        classifying.push(time(|| classify(&mut classifier, &lines, &mut total)));
    }
    report(name, bytes.len(), lines.len(), &total, median(parsing), median(classifying));
    Ok(())
}

/// Parses the JSON of a line, without the text before it.
fn parse(line: &[u8]) -> serde_json::Result<serde_json::Value> {
    let start = line.iter().position(|&byte| byte == b'{').unwrap_or_default();
    serde_json::from_slice(&line[start..])
}

fn classify(classifier: &mut Classifier, lines: &[&[u8]], total: &mut Count) {
    let origin =
        RecordOrigin { arrival: demo::START_MICROS, source: Some("bench"), ..RecordOrigin::default() };
    for (number, line) in (0..).zip(lines) {
        classifier.classify(line, &RecordOrigin { identity: number, ..origin }, total);
    }
}

fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

#[allow(clippy::print_stdout, clippy::cast_precision_loss)]
fn report(name: &str, bytes: usize, lines: usize, total: &Count, parsing: Duration, classifying: Duration) {
    let each = |time: Duration| time.as_secs_f64() * 1e6 / lines as f64;
    println!("{name}: {lines} lines of {:.0} bytes", bytes as f64 / lines as f64);
    println!("  {} events, {} calls, {} unrecognized", total.events, total.calls, total.unrecognized);
    println!("  serde_json into Value  {:.3} us a line", each(parsing));
    println!("  faultline classify     {:.3} us a line", each(classifying));
    println!(
        "  ratio                  {:.3} (target 0.6)",
        classifying.as_secs_f64() / parsing.as_secs_f64()
    );
}
