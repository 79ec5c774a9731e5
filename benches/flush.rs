//! Measures flushing alone: records of the WAL into files of the tables, on a real disk, without sockets.
//!
//! `cargo bench --bench flush [-- LINES]` makes lines of every dialect, classifies them into records of a thousand
//! lines, and flushes those in chunks, as the server does under load. It prints the CPU time of a million events and
//! how much smaller the files are than the lines, and then the same after compaction. Then it makes a thousand commits
//! and prints how long it takes to open the tables, with maintenance between them as in the server, and without any.

use anyhow::Context;
use arrow::buffer::Buffer;
use classifier::{
    Call, Classifier, Event, HashKey, Limits, RecordOrigin, Registry, Rules, Sink, UnrecognizedReason,
};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};
use store::Table;
use store::codec::{Decoder, Encoder};
use store::delta::{DeltaOptions, DeltaTables, MaintenanceMode, Retention};
use store::disk::{Disk, RealDisk};
use store::hot::BufferedRecord;
use store::rows::{EventRow, EventRows, Relation};

struct Keep<'k> {
    rows: &'k mut EventRows,
}

impl Sink for Keep<'_> {
    fn event(&mut self, event: &Event<'_>) {
        self.rows.push(EventRow {
            event,
            ingested_at: event.context.time + 1_500,
            relation: Relation::Primary,
        });
    }
    fn call(&mut self, _: &Call<'_>) {}
    fn unrecognized(&mut self, _: UnrecognizedReason) {}
}

/// The number of bytes of the WAL that are flushed at once.
const CHUNK: usize = 32 << 20;
const BATCH: usize = 1000;
const COMMITS: u64 = 1000;

#[allow(clippy::print_stdout, clippy::cast_precision_loss)]
fn main() -> anyhow::Result<()> {
    let count = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(2_000_000);
    let (payloads, lines) = payloads(count)?;
    let records = (1..).zip(&payloads).map(record).collect::<Result<Vec<_>, _>>()?;
    let folder = tempfile::tempdir()?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let delta = DeltaTables::open(&disk, folder.path(), options())?;
    let (begin, mut rest) = (cpu_time(), &records[..]);
    while !rest.is_empty() {
        let mut bytes = 0;
        let mut fits = |record: &Arc<BufferedRecord>| {
            bytes += record.bytes();
            bytes <= CHUNK
        };
        let (chunk, left) = rest.split_at(rest.iter().take_while(|record| fits(record)).count().max(1));
        delta.flush(chunk, chunk[chunk.len() - 1].sequence, now_us())?;
        rest = left;
    }
    let flushed = cpu_time() - begin;
    let files = delta.files(Table::Events);
    let events = files.rows() as f64;
    println!(
        "flushed: {events} events of {count} lines into {} files, {:.2} CPU s a million events, {:.1} bytes an event, \
         {:.1} times smaller than the lines",
        files.files.len(),
        flushed.as_secs_f64() * 1e6 / events,
        files.bytes() as f64 / events,
        lines as f64 / files.bytes() as f64,
    );
    let begin = cpu_time();
    while delta.maintain(Table::Events, MaintenanceMode::Full, now_us())?.merged > 0 {}
    let compacted = cpu_time() - begin;
    let files = delta.files(Table::Events);
    println!(
        "compacted: {} files, {:.2} CPU s a million events, {:.1} bytes an event, {:.1} times smaller than the lines",
        files.files.len(),
        compacted.as_secs_f64() * 1e6 / events,
        files.bytes() as f64 / events,
        lines as f64 / files.bytes() as f64,
    );
    columns(&delta, folder.path(), events)?;
    for maintenance in [true, false] {
        start(&payloads, maintenance)?;
    }
    Ok(())
}

/// Measures how long it takes to open tables with a thousand commits.
#[allow(clippy::print_stdout, clippy::cast_precision_loss)]
fn start(payloads: &[Buffer], with_maintenance: bool) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let delta = DeltaTables::open(&disk, folder.path(), options())?;
    let (mut first, mut last) = (Duration::ZERO, Duration::ZERO);
    for commit in 1..=COMMITS {
        // The same rows are stored again and again, under new numbers.
        let record = record((commit, &payloads[commit as usize % payloads.len()]))?;
        let begun = Instant::now();
        delta.flush(&[record], commit, now_us())?;
        *(if commit <= COMMITS / 10 { &mut first } else { &mut last }) += begun.elapsed();
        if with_maintenance {
            delta.maintain(Table::Events, MaintenanceMode::Full, now_us())?;
        }
    }
    drop(delta);
    let begun = Instant::now();
    let delta = DeltaTables::open(&disk, folder.path(), options())?;
    let each = |total: Duration, count: u64| total.as_secs_f64() * 1e3 / count as f64;
    println!(
        "{COMMITS} commits {}: opened in {:.0} ms, {} files; a flush took {:.1} ms in the first tenth, {:.1} ms after it",
        if with_maintenance { "with maintenance" } else { "without maintenance" },
        begun.elapsed().as_secs_f64() * 1e3,
        delta.files(Table::Events).files.len(),
        each(first, COMMITS / 10),
        each(last, COMMITS - COMMITS / 10),
    );
    Ok(())
}

fn options() -> DeltaOptions {
    DeltaOptions { retention: [Retention::default(); Table::ALL.len()], grace: Duration::ZERO, clock: now_us }
}

/// Prints the sizes of the columns.
#[allow(clippy::print_stdout, clippy::cast_precision_loss)]
fn columns(delta: &DeltaTables, folder: &std::path::Path, events: f64) -> anyhow::Result<()> {
    let mut sizes = std::collections::BTreeMap::<String, i64>::new();
    for file in &delta.files(Table::Events).files {
        let path = folder.join("tables/events").join(&file.path);
        let file = store::delta::parquet_file::OpenFile::open(&RealDisk, &path, Table::Events)?;
        for group in file.footer().row_groups() {
            for column in group.columns() {
                *sizes.entry(column.column_path().string()).or_default() += column.compressed_size();
            }
        }
    }
    let mut sizes: Vec<_> = sizes.into_iter().collect();
    sizes.sort_by_key(|(_, size)| -size);
    for (name, size) in sizes.iter().take(16) {
        println!("  {name:<16} {:6.2} bytes an event", *size as f64 / events);
    }
    Ok(())
}

/// Returns a record of the WAL.
fn record((sequence, payload): (u64, &Buffer)) -> anyhow::Result<Arc<BufferedRecord>> {
    static DECODER: LazyLock<Option<Arc<Decoder>>> = LazyLock::new(|| Decoder::current().ok().map(Arc::new));
    let decoder = DECODER.clone().context("our own schemas")?;
    Ok(Arc::new(BufferedRecord::new(sequence, payload.clone(), decoder)?))
}

/// Returns the bytes of WAL records, and the length of the lines that they come from.
fn payloads(count: usize) -> anyhow::Result<(Vec<Buffer>, usize)> {
    let rules = Arc::new(Rules::new(Registry::builtin()?, HashKey::FIXED, Limits::default()));
    let (mut classifier, mut rows) = (Classifier::new(rules), EventRows::default());
    let mut encoder = Encoder::default();
    let mut traffic = demo::Traffic::with_mix(7, demo::Mix::Everyday);
    let (mut payloads, mut bytes, mut line, mut number) = (Vec::new(), 0, Vec::new(), 0_u128);
    while number < count as u128 {
        for _ in 0..BATCH {
            line.clear();
            traffic.next_line(&mut line);
            bytes += line.len();
            number += 1;
            let identity = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
            let origin = RecordOrigin {
                arrival: i64::MAX / 2,
                source: Some("bench"),
                identity,
                ..RecordOrigin::default()
            };
            classifier.classify(line.trim_ascii_end(), &origin, &mut Keep { rows: &mut rows });
        }
        let mut record = Vec::new();
        encoder.append(&mut record, Table::Events, rows.finish()?)?;
        payloads.push(Buffer::from_vec(record));
    }
    Ok((payloads, bytes))
}

/// Returns the CPU time of the whole process, because the tables have threads of their own.
fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

fn now_us() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}
