//! Runs a dozen queries of analysts and dashboards over 20 million events: Faultline against `DuckDB` and `ClickHouse`
//! (chdb) on the same Parquet files, in one run, and compares the results.
//!
//! `cargo bench --profile quick --bench query [-- EVENTS]` makes the table once (under `target/query-bench`, two weeks
//! of generated traffic, flushed and merged as the server does it), and then starts `compare.py`, which queries all
//! three in turn. The queries are in `queries.toml`. Python and its packages are installed in a virtual environment.

use anyhow::{Context, ensure};
use arrow::buffer::Buffer;
use classifier::{
    Call, Classifier, Event, HashKey, Limits, RecordOrigin, Registry, Rules, Sink, UnrecognizedReason,
};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use store::codec::{Decoder, Encoder};
use store::delta::{DeltaOptions, DeltaTables, MaintenanceMode, Retention};
use store::disk::{Disk, RealDisk};
use store::hot::BufferedRecord;
use store::rows::{EventRow, EventRows, Relation};
use store::{DataDirectory, Table};

const EVENTS: u64 = 20_000_000;
const DAYS: i64 = 14;
const DAY: i64 = 86_400_000_000;
/// The duration of a piece of traffic, in microseconds. Traffic is made in pieces of ten minutes, so that all days are
/// equally full.
const PIECE: i64 = 600_000_000;
/// The number of lines in a WAL record.
const BATCH: usize = 1000;
/// The number of bytes of the WAL that are flushed at once, as in the server.
const CHUNK: usize = 32 << 20;

#[allow(clippy::print_stdout)]
fn main() -> anyhow::Result<()> {
    let events = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(EVENTS);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().context("a target folder")?;
    let folder = target.join("query-bench");
    let data = folder.join(format!("{events}"));
    if !data.join("made").exists() {
        println!("making {events} events");
        make(&data, events)?;
        std::fs::write(data.join("made"), "")?;
    }
    let python = python(&folder)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/query/compare.py");
    let compared =
        Command::new(python).arg(script).arg(env!("CARGO_BIN_EXE_faultline")).arg(&data).status()?;
    ensure!(compared.success(), "compare.py failed");
    Ok(())
}

/// Creates a virtual environment with the other two engines.
fn python(folder: &Path) -> anyhow::Result<PathBuf> {
    let environment = folder.join("python");
    let python = environment.join("bin/python");
    let wanted = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/query/requirements.txt");
    if !python.exists() {
        let run = |command: &mut Command| -> anyhow::Result<()> {
            ensure!(command.status()?.success(), "{command:?} failed");
            Ok(())
        };
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
        run(Command::new(&python).args(["-m", "pip", "install", "-q", "-r"]).arg(wanted))?;
    }
    Ok(python)
}

/// Makes two weeks of traffic in chronological order, and flushes and merges it on the way, as a server does that
/// receives it when it happens.
fn make(data: &Path, events: u64) -> anyhow::Result<()> {
    let (directory, _lock) = DataDirectory::claim(data)?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let delta = DeltaTables::open(&disk, directory.path(), options())?;
    let mut maker = Maker::new()?;
    let pieces = DAYS * DAY / PIECE;
    for piece in 0..pieces {
        let wanted = events * (piece.unsigned_abs() + 1) / pieces.unsigned_abs();
        let start = demo::START_MICROS + piece * PIECE;
        let traffic = demo::Traffic::with_mix(piece.unsigned_abs() + 7, demo::Mix::Everyday).at(start);
        maker.piece(traffic, wanted)?;
        if maker.bytes > CHUNK || piece + 1 == pieces {
            let records = maker.take();
            let now = start + PIECE;
            delta.flush(&records, records[records.len() - 1].sequence, now)?;
            for table in [Table::Events, Table::EventCounts] {
                while delta.maintain(table, MaintenanceMode::Full, now)?.merged > 0 {}
            }
        }
    }
    Ok(())
}

fn options() -> DeltaOptions {
    DeltaOptions { retention: [Retention::default(); Table::ALL.len()], grace: Duration::ZERO, clock: now_us }
}

/// Builds records of the WAL from lines.
struct Maker {
    classifier: Classifier,
    decoder: Arc<Decoder>,
    encoder: Encoder,
    rows: EventRows,
    records: Vec<Arc<BufferedRecord>>,
    bytes: usize,
    sequence: u64,
    events: u64,
    identity: u128,
}

impl Maker {
    fn new() -> anyhow::Result<Self> {
        let rules = Rules::new(Registry::builtin()?, HashKey::FIXED, Limits::default());
        Ok(Self {
            classifier: Classifier::new(Arc::new(rules)),
            decoder: Arc::new(Decoder::current()?),
            encoder: Encoder::default(),
            rows: EventRows::default(),
            records: Vec::new(),
            bytes: 0,
            sequence: 0,
            events: 0,
            identity: 0,
        })
    }

    /// Adds lines until there are `events` events in total.
    fn piece(&mut self, mut traffic: demo::Traffic, events: u64) -> anyhow::Result<()> {
        let mut line = Vec::new();
        while self.events < events {
            for _ in 0..BATCH {
                line.clear();
                traffic.next_line(&mut line);
                self.identity += 1;
                let identity = self.identity.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
                let origin = RecordOrigin {
                    arrival: i64::MAX / 2,
                    source: Some("bench"),
                    identity,
                    ..RecordOrigin::default()
                };
                let mut keep = Keep { rows: &mut self.rows, events: &mut self.events };
                self.classifier.classify(line.trim_ascii_end(), &origin, &mut keep);
            }
            let mut record = Vec::new();
            self.encoder.append(&mut record, Table::Events, self.rows.finish()?)?;
            self.sequence += 1;
            self.bytes += record.len();
            let record =
                BufferedRecord::new(self.sequence, Buffer::from_vec(record), Arc::clone(&self.decoder))?;
            self.records.push(Arc::new(record));
        }
        Ok(())
    }

    fn take(&mut self) -> Vec<Arc<BufferedRecord>> {
        self.bytes = 0;
        std::mem::take(&mut self.records)
    }
}

struct Keep<'k> {
    rows: &'k mut EventRows,
    events: &'k mut u64,
}

impl Sink for Keep<'_> {
    fn event(&mut self, event: &Event<'_>) {
        *self.events += 1;
        self.rows.push(EventRow {
            event,
            ingested_at: event.context.time + 1_500,
            relation: Relation::Primary,
        });
    }
    fn call(&mut self, _: &Call<'_>) {}
    fn unrecognized(&mut self, _: UnrecognizedReason) {}
}

fn now_us() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}
