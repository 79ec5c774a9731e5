//! One round of looking after a table.

use super::table::{Change, SealedTable};
use super::vacuum::{self, Vacuumed};
use super::{LakeError, Retention, checkpoint, compact, retain};
use std::time::Duration;

/// What one round of upkeep did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kept {
    /// Files that were merged.
    pub merged: u64,
    /// Files that became of them.
    pub merged_into: u64,
    /// Their bytes.
    pub merged_bytes: u64,
    /// Files that expired.
    pub expired: u64,
    /// Checkpoints that were written.
    pub checkpoints: u64,
    /// Files of the tables' logs that were removed.
    pub log_files: u64,
    /// Files that left the disk.
    pub vacuumed: Vacuumed,
}

impl std::ops::AddAssign for Kept {
    fn add_assign(&mut self, other: Self) {
        self.merged += other.merged;
        self.merged_into += other.merged_into;
        self.merged_bytes += other.merged_bytes;
        self.expired += other.expired;
        self.checkpoints += other.checkpoints;
        self.log_files += other.log_files;
        self.vacuumed.files += other.vacuumed.files;
        self.vacuumed.bytes += other.vacuumed.bytes;
    }
}

/// One round: what is expired leaves, at most one group of files is merged, a checkpoint is written when it is due, and
/// what may go leaves the disk. Each step is whole or not at all, and the next round goes on from there.
pub(super) fn round(
    table: &SealedTable,
    retention: Retention,
    grace: Duration,
    now_us: i64,
) -> Result<Kept, LakeError> {
    table.settle()?;
    let now_ms = now_us / 1000;
    let grace_ms = i64::try_from(grace.as_millis()).unwrap_or(i64::MAX);
    let mut kept = Kept::default();
    let expired = retain::expired(&table.files(), retention, now_us);
    if !expired.is_empty() {
        kept.expired = expired.len() as u64;
        table.commit(&Change { removed: expired, ..Change::default() }, now_ms)?;
    }
    if let Some(files) = compact::plan(&table.files(), now_ms) {
        kept.merged = files.len() as u64;
        kept.merged_bytes = compact::compact(table, files, now_ms)?.bytes;
        kept.merged_into = 1;
    }
    let leavers = vacuum::leavers(table, grace_ms, now_ms);
    if table.since_checkpoint() >= checkpoint::EVERY || leavers == Some(false) {
        checkpoint::write(table)?;
        kept.checkpoints = 1;
        kept.log_files = checkpoint::clean(table, grace_ms, now_ms)?;
    }
    if leavers.is_some() || table.sweep_is_due(now_ms) {
        kept.vacuumed = vacuum::vacuum(table, grace_ms, now_ms)?;
    }
    Ok(kept)
}
