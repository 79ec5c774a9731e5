//! Prints the results as a table.
#![allow(clippy::print_stdout)]

use crate::Round;
use crate::cases::{Case, total_of};
use crate::sender::load::Loaded;
use crate::sender::process::Resident;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const HEAD: &str = "case               answered/s   flushed/s   server   sender   ratio   top p50    p99   half p50    p99   peak";
const UNIT: &str = "                                         CPU s/M  CPU s/M             ms     ms         ms     ms    MiB";

pub(crate) fn head(program: &Path) {
    println!("\n{}\n{HEAD}\n{UNIT}", program.display());
}

/// The medians of a case's rounds.
pub(crate) struct Row {
    name: &'static str,
    /// The number of records per second, counted until they were acknowledged.
    answered: f64,
    /// The number of records per second, counted until they were flushed.
    records: f64,
    server: f64,
    sender: f64,
    ratio: Option<f64>,
    /// p50 and p99 at the top rate, then at half of it.
    times: [f64; 4],
    peak: f64,
}

impl Row {
    pub(crate) fn of(name: &'static str, rounds: &[Round]) -> Self {
        let of = |figure: &dyn Fn(&Round) -> f64| median(rounds.iter().map(figure).collect());
        let millis = |loaded: &Loaded, share| loaded.time(share).as_secs_f64() * 1e3;
        let ratios =
            rounds.iter().filter_map(|round| Some(round.server / round.parsing?)).collect::<Vec<_>>();
        Self {
            name,
            answered: of(&|round| round.top.records() / round.top.elapsed().as_secs_f64()),
            records: of(&|round| round.top.records() / (round.top.elapsed() + round.flushing).as_secs_f64()),
            server: of(&|round| round.server * 1e6),
            sender: of(&|round| round.sender * 1e6),
            ratio: (!ratios.is_empty()).then(|| median(ratios)),
            times: [
                of(&|round| millis(&round.top, 0.5)),
                of(&|round| millis(&round.top, 0.99)),
                of(&|round| millis(&round.half, 0.5)),
                of(&|round| millis(&round.half, 0.99)),
            ],
            peak: of(&|round| round.peak as f64 / MIB),
        }
    }
}

const MIB: f64 = (1 << 20) as f64;

pub(crate) fn case(row: &Row) {
    let Row { name, answered, records, server, sender, ratio, times: [a, b, c, d], peak } = row;
    let ratio = ratio.map_or_else(|| "    -".to_owned(), |ratio| format!("{ratio:>5.2}"));
    println!(
        "{name:<18} {answered:>10.0} {records:>10.0} {server:>8.2} {sender:>8.2}   {ratio}   {a:>7.1} {b:>6.1}   {c:>8.1} {d:>6.1} {peak:>6.0}"
    );
}

pub(crate) fn server(starts: &[Duration], before: Resident, after: Resident, status: &Value) {
    let starts = median(starts.iter().map(Duration::as_secs_f64).collect());
    let mib = |bytes: u64| bytes as f64 / MIB;
    println!("\nready with an empty log in {:.0} ms (target 1000)", starts * 1e3);
    println!(
        "resident: {:.0} MiB idle before, {:.0} after (targets 100 and 512)",
        mib(before.now),
        mib(after.now)
    );
    let records = total_of(status, "accepted_records") + total_of(status, "rejected_records");
    let number = |path: &str| status.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let commits = number("/wal/fsync_seconds/count");
    println!(
        "{records} records, {} events; log: {:.0} bytes a record; {:.0} commits, fsync {:.2} ms on average, {:.0} at most",
        total_of(status, "received_events"),
        number("/wal/written_bytes") / records as f64,
        commits,
        number("/wal/fsync_seconds/sum") / commits * 1e3,
        number("/wal/fsync_max_seconds") * 1e3,
    );
}

/// Prints the size of the tables, compared with that of the lines that were sent.
pub(crate) fn tables(status: &Value, cases: &[Case]) {
    let number = |path: &str| status.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    let bytes: f64 =
        ["events", "traffic", "rejects"].map(|table| number(&format!("/tables/{table}/bytes"))).iter().sum();
    println!(
        "flushed: {:.0} rows in {:.0} flushes, {:.0} ms each, {:.0} at most; {} files of events; merged {:.0} files into {:.0}",
        number("/flush/flushed_rows"),
        number("/flush/flushes"),
        number("/flush/seconds") / number("/flush/flushes") * 1e3,
        number("/flush/max_seconds") * 1e3,
        number("/tables/events/files"),
        number("/maintenance/compacted_files"),
        number("/maintenance/compaction_written_files"),
    );
    if cases.iter().all(|case| case.source() == "envelopes") {
        let came = number("/sources/envelopes/decompressed_bytes");
        println!("disk: {:.1} times smaller than the NDJSON that came in (target 15)", came / bytes);
    }
}

pub(crate) fn again(took: Duration) {
    println!("ready again on that in {:.0} ms", took.as_secs_f64() * 1e3);
}

pub(crate) fn replay(events: u64, took: Duration) {
    let rate = events as f64 / took.as_secs_f64() / 1e6;
    println!("replay: {events} events in {:.2} s, {rate:.2} M a second (target 1)", took.as_secs_f64());
}

/// Prints the server's CPU time compared with that of another program, round by round, because a disturbance mostly
/// affects both.
pub(crate) fn compared(ours: &Case, other: &Case) {
    let rounds = ours.rounds.iter().zip(&other.rounds);
    let mut ratios: Vec<f64> = rounds.map(|(ours, other)| ours.server / other.server).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let at = |share: usize| ratios.get(ratios.len() * share / 4).copied().unwrap_or(f64::NAN);
    println!("{:<18} CPU against the other: {:.3} (quartiles {:.3}, {:.3})", ours.name, at(2), at(1), at(3));
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}
