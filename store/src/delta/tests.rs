//! Tests of one table as a whole, on a disk that can lose its power, fail and be tampered with.
//!
//! `Bench` is a table with a WAL behind it: records are numbered and kept, as the WAL keeps them, so that after a crash
//! the rest can be flushed again.

use super::aggregate::order_of;
use super::files::Files;
use super::maintenance::{self, MaintenanceResult};
use super::parquet_file::OpenFile;
use super::recovery::Examined;
use super::table::StoredTable;
use super::{DeltaError, MaintenanceMode, Retention, flush, layout, runtime};
use crate::codec::{Decoder, Encoder};
use crate::disk::sim::SimDisk;
use crate::disk::{Disk, DiskRead};
use crate::hot::BufferedRecord;
use crate::rows::{Reject, RejectRows, TrafficRow, TrafficRows};
use crate::schema::Table;
use arrow::array::{AsArray, RecordBatch};
use arrow::buffer::Buffer;
use arrow::datatypes::Int64Type;
use classifier::{Dialect, Outcome};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use tokio::runtime::Runtime;

mod crash;
mod damage;
mod event_counts;
mod merging;
mod readers;

/// The runtime that all tests share, so that they do not start more threads than needed.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| runtime().unwrap());
const ROOT: &str = "/data/tables/t";
const SET_ASIDE: &str = "/data/set-aside";
/// 2026-11-16T00:00:00Z.
const NOW: i64 = 1_794_787_200_000_000;
const DAY: i64 = 86_400_000_000;

/// Returns a record with rows of one table. Rows are identified by `line` or by `minute`.
fn record(table: Table, sequence: u64, rows: &[(i64, i64)]) -> Arc<BufferedRecord> {
    let mut bytes = Vec::new();
    let batch = match table {
        Table::Traffic => traffic(rows),
        _ => rejects(rows),
    };
    Encoder::default().append(&mut bytes, table, batch).unwrap();
    let decoder = Arc::new(Decoder::current().unwrap());
    Arc::new(BufferedRecord::new(sequence, Buffer::from_vec(bytes), decoder).unwrap())
}

fn rejects(rows: &[(i64, i64)]) -> RecordBatch {
    let mut into = RejectRows::default();
    for (time, line) in rows {
        into.push(Reject {
            time: *time,
            source: if line % 2 == 0 { "envelopes" } else { "otlp_logs" },
            service: (line % 3 != 0).then_some("téléphone"),
            reason: "not_json",
            detail: "not JSON",
            line: *line,
            bytes: 3,
            sample: "永",
        });
    }
    into.finish().unwrap()
}

fn traffic(rows: &[(i64, i64)]) -> RecordBatch {
    let mut into = TrafficRows::default();
    for (minute, calls) in rows {
        into.push(TrafficRow {
            minute: minute - minute.rem_euclid(60_000_000),
            service: (calls % 2 == 0).then_some("tickets"),
            environment: None,
            operation: Some(["create", "delete"][usize::try_from(calls % 2).unwrap()]),
            dialect: Dialect::McpAql,
            outcome: Outcome::Failed,
            span_kind: None,
            source: "envelopes",
            calls: *calls,
            late_failures: 0,
            unverified: 0,
            timed: 1,
            duration_sum_us: 7,
            buckets: [1; 14],
        });
    }
    into.finish().unwrap()
}

/// A table on a disk, with the state that its maintenance needs.
struct Bench {
    table: StoredTable,
    grace: Duration,
    retention: Retention,
    now: i64,
    set_aside: Vec<String>,
}

impl Bench {
    fn open(disk: &SimDisk, table: Table) -> Result<Self, DeltaError> {
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        let (root, set_aside) = (Path::new(ROOT), Path::new(SET_ASIDE));
        let examined = Examined { disk: &*disk, table, root, set_aside, now_ms: NOW / 1000 };
        let set_aside = examined.look_through()?;
        let table = StoredTable::open(table, disk, root, RUNTIME.handle().clone())?;
        Ok(Self { table, grace: Duration::ZERO, retention: Retention::default(), now: NOW, set_aside })
    }

    fn flush(&self, records: &[Arc<BufferedRecord>]) -> Result<(), DeltaError> {
        let up_to = records.last().unwrap().sequence;
        let missing = flush::missing(&self.table, records, up_to)?;
        flush::flush(&self.table, records, &missing, up_to, self.now / 1000).map(drop)
    }

    fn maintenance(&self) -> Result<MaintenanceResult, DeltaError> {
        self.maintain(MaintenanceMode::Full)
    }

    fn maintain(&self, mode: MaintenanceMode) -> Result<MaintenanceResult, DeltaError> {
        maintenance::round(&self.table, mode, self.retention, self.grace, self.now)
    }

    fn files(&self) -> Arc<Files> {
        self.table.files()
    }

    /// Returns how often each number occurs in the files of the table.
    fn rows(&self) -> BTreeMap<i64, i64> {
        rows_of(&*self.table.disk, &self.files())
    }
}

/// Returns the number of rows by `line`, or the sum of `calls` by minute.
fn rows_of(disk: &dyn Disk, files: &Files) -> BTreeMap<i64, i64> {
    let mut found = BTreeMap::new();
    for file in &files.files {
        let opened = OpenFile::open(disk, &Path::new(ROOT).join(&file.path), files.table).unwrap();
        for batch in opened.rows(None).unwrap() {
            let batch = batch.unwrap();
            let whole = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().clone();
            if files.table == Table::Traffic {
                whole("calls").values().iter().for_each(|calls| *found.entry(0).or_default() += calls);
                whole("timed_calls").values().iter().for_each(|timed| *found.entry(1).or_default() += timed);
            } else {
                whole("line").values().iter().for_each(|line| *found.entry(*line).or_default() += 1);
            }
        }
    }
    found
}

/// Checks that all rows of a table's files are in the declared order, in their day, and within the statistics.
fn is_in_order(disk: &dyn Disk, root: &Path, files: &Files) {
    let layout = layout::of(files.table);
    for file in &files.files {
        let opened = OpenFile::open(disk, &root.join(&file.path), files.table).unwrap();
        assert!(opened.footer().row_groups()[0].sorting_columns().is_some());
        assert_eq!(opened.footer().file_metadata().num_rows().unsigned_abs(), file.statistics.num_records);
        let (low, high) = file.statistics.times(layout.time).unwrap();
        let mut last: Option<Vec<u8>> = None;
        for batch in opened.rows(None).unwrap() {
            let batch = batch.unwrap();
            let rows = order_of(layout, &batch).unwrap();
            for row in &rows {
                assert!(last.as_deref().is_none_or(|last| last <= row.as_ref()));
                last = Some(row.as_ref().to_vec());
            }
            let times = batch.column_by_name(layout.time).unwrap();
            for time in times.as_primitive::<arrow::datatypes::TimestampMicrosecondType>().values() {
                assert_eq!(time.div_euclid(DAY), i64::from(file.day));
                assert!((low..=high).contains(time), "{low} {time} {high}");
            }
        }
    }
}

/// Returns the rows that a table must have after these rows were flushed.
fn expected(table: Table, rows: impl Iterator<Item = i64>) -> BTreeMap<i64, i64> {
    if table == Table::Traffic {
        let rows: Vec<i64> = rows.collect();
        if rows.is_empty() {
            return BTreeMap::new();
        }
        return BTreeMap::from([(0, rows.iter().sum()), (1, rows.len() as i64)]);
    }
    rows.map(|line| (line, 1)).collect()
}
