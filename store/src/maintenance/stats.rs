//! The counters of maintenance.

use super::ClockStats;
use crate::delta::{DeltaTables, Expired, Flushed, MaintenanceResult};
use crate::schema::Table;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The size of one table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableSize {
    /// The version of the table.
    pub version: u64,
    /// The number of files.
    pub files: u64,
    /// The number of rows in them.
    pub rows: u64,
    /// The total length of the files.
    pub bytes: u64,
}

/// Counters and the present state.
#[derive(Debug, Clone, Default)]
pub struct MaintenanceStats {
    /// The number of flushes.
    pub flushes: u64,
    /// The number of WAL records that were flushed.
    pub records: u64,
    /// The results of the flushes.
    pub flushed: Flushed,
    /// The time that flushes took in total.
    pub flush_time: Duration,
    /// The time that the longest flush took.
    pub longest_flush: Duration,
    /// The number of failed flushes.
    pub flush_failures: u64,
    /// True if the last flush failed.
    pub is_flush_failing: bool,
    /// The results of maintenance.
    pub results: MaintenanceResult,
    /// The data that retention removed, by [`Table::ALL`].
    pub expired: [Expired; Table::ALL.len()],
    /// The number of maintenance rounds over all tables.
    pub rounds: u64,
    /// The time that maintenance took in total.
    pub maintenance_time: Duration,
    /// The state of the trusted clock.
    pub clock: ClockStats,
    /// The number of failed maintenance rounds.
    pub maintenance_failures: u64,
    /// The most recent error.
    pub last_error: Option<String>,
    /// The tables, by [`Table::ALL`]; `None` while they cannot be opened.
    pub tables: Option<[TableSize; Table::ALL.len()]>,
    /// The damaged files that were set aside when the tables were opened.
    pub set_aside: Vec<String>,
}

/// The counters while maintenance runs.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<MaintenanceStats>);

impl Counters {
    fn stats(&self) -> MutexGuard<'_, MaintenanceStats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn flushed(&self, records: u64, flushed: Flushed, took: Duration) {
        let mut stats = self.stats();
        stats.flushes += 1;
        stats.is_flush_failing = false;
        stats.records += records;
        stats.flushed += flushed;
        stats.flush_time += took;
        stats.longest_flush = stats.longest_flush.max(took);
    }

    pub(super) fn flushes_work(&self) {
        self.stats().is_flush_failing = false;
    }

    pub(super) fn flush_failed(&self, error: &str) {
        let mut stats = self.stats();
        stats.flush_failures += 1;
        stats.is_flush_failing = true;
        stats.last_error = Some(error.to_owned());
    }

    pub(super) fn maintained(&self, table: Table, result: MaintenanceResult, took: Duration) {
        let mut stats = self.stats();
        stats.expired[table as usize] += result.expired;
        stats.results += result;
        stats.maintenance_time += took;
    }

    pub(super) fn round_ended(&self) {
        self.stats().rounds += 1;
    }

    pub(super) fn maintenance_failed(&self, error: &str) {
        let mut stats = self.stats();
        stats.maintenance_failures += 1;
        stats.last_error = Some(error.to_owned());
    }

    pub(super) fn read(&self, delta: Option<&DeltaTables>) -> MaintenanceStats {
        let size = |delta: &DeltaTables, table| {
            let files = delta.files(table);
            TableSize {
                version: files.version,
                files: files.files.len() as u64,
                rows: files.rows(),
                bytes: files.bytes(),
            }
        };
        MaintenanceStats {
            tables: delta.map(|delta| Table::ALL.map(|table| size(delta, table))),
            set_aside: delta.map(|delta| delta.set_aside().to_vec()).unwrap_or_default(),
            ..self.stats().clone()
        }
    }
}
