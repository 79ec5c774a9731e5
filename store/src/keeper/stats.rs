//! What the keeper has done, as numbers.

use super::ClockStats;
use crate::lake::{Expired, Kept, Lake, Sealed};
use crate::schema::Table;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What one table is made of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableSize {
    /// Its version.
    pub version: u64,
    /// Files.
    pub files: u64,
    /// Their rows.
    pub rows: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What was done so far, and how things stand.
#[derive(Debug, Clone, Default)]
pub struct KeeperStats {
    /// Times that something was sealed.
    pub seals: u64,
    /// Records of the log that were sealed.
    pub records: u64,
    /// What became of them.
    pub sealed: Sealed,
    /// How long that took, together.
    pub seal_time: Duration,
    /// How long the longest took.
    pub longest_seal: Duration,
    /// Times that sealing failed.
    pub seal_failures: u64,
    /// It failed, and has not worked since.
    pub is_seal_failing: bool,
    /// What upkeep did.
    pub kept: Kept,
    /// What retention removed, by [`Table::ALL`].
    pub expired: [Expired; Table::ALL.len()],
    /// Rounds of it over all tables.
    pub rounds: u64,
    /// How long that took, together.
    pub upkeep_time: Duration,
    /// What is known of the clock that it goes by.
    pub clock: ClockStats,
    /// Times that upkeep failed.
    pub upkeep_failures: u64,
    /// Why something failed last.
    pub last_error: Option<String>,
    /// The tables, by [`Table::ALL`]; none while they cannot be opened.
    pub tables: Option<[TableSize; Table::ALL.len()]>,
    /// What was found bad, and set aside, when the tables were opened.
    pub set_aside: Vec<String>,
}

/// The keeper's own account.
#[derive(Debug, Default)]
pub(super) struct Counters(Mutex<KeeperStats>);

impl Counters {
    fn stats(&self) -> MutexGuard<'_, KeeperStats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sealed(&self, records: u64, sealed: Sealed, took: Duration) {
        let mut stats = self.stats();
        stats.seals += 1;
        stats.is_seal_failing = false;
        stats.records += records;
        stats.sealed += sealed;
        stats.seal_time += took;
        stats.longest_seal = stats.longest_seal.max(took);
    }

    pub(super) fn seals_work(&self) {
        self.stats().is_seal_failing = false;
    }

    pub(super) fn seal_failed(&self, error: &str) {
        let mut stats = self.stats();
        stats.seal_failures += 1;
        stats.is_seal_failing = true;
        stats.last_error = Some(error.to_owned());
    }

    pub(super) fn kept(&self, table: Table, kept: Kept, took: Duration) {
        let mut stats = self.stats();
        stats.expired[table as usize] += kept.expired;
        stats.kept += kept;
        stats.upkeep_time += took;
    }

    pub(super) fn round_ended(&self) {
        self.stats().rounds += 1;
    }

    pub(super) fn upkeep_failed(&self, error: &str) {
        let mut stats = self.stats();
        stats.upkeep_failures += 1;
        stats.last_error = Some(error.to_owned());
    }

    pub(super) fn read(&self, lake: Option<&Lake>) -> KeeperStats {
        let size = |lake: &Lake, table| {
            let files = lake.files(table);
            TableSize {
                version: files.version,
                files: files.files.len() as u64,
                rows: files.rows(),
                bytes: files.bytes(),
            }
        };
        KeeperStats {
            tables: lake.map(|lake| Table::ALL.map(|table| size(lake, table))),
            set_aside: lake.map(|lake| lake.set_aside().to_vec()).unwrap_or_default(),
            ..self.stats().clone()
        }
    }
}
