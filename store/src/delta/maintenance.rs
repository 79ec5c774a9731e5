//! One round of maintenance of a table.

use super::table::{Change, StoredTable};
use super::vacuum::{self, Vacuumed};
use super::{DeltaError, Expired, Retention, checkpoint, compact, retention};
use std::time::Duration;

/// The result of one round of maintenance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MaintenanceResult {
    /// The number of files that were merged.
    pub merged: u64,
    /// The number of files that merging created.
    pub merged_into: u64,
    /// The total length of the files that merging created.
    pub merged_bytes: u64,
    /// The data that retention removed.
    pub expired: Expired,
    /// The number of checkpoints that were written.
    pub checkpoints: u64,
    /// The number of Delta log files that were removed.
    pub log_files: u64,
    /// The files that were deleted from disk.
    pub vacuumed: Vacuumed,
}

impl std::ops::AddAssign for MaintenanceResult {
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

/// The changes that maintenance may make to the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaintenanceMode {
    /// All tasks: retention, merging, checkpoints and vacuum.
    Full,
    /// Merging and checkpoints. Neither rows nor files are removed, because the time is not certain.
    WithoutRemoval,
    /// Only checkpoints, for a command that stores something and ends. Such a command removes no old data.
    CheckpointsOnly,
}

/// Runs one round: removes expired rows, merges at most one group of files, writes a checkpoint when it is due, and
/// deletes files that are no longer needed. Each step happens completely or not at all, and the next round continues
/// from there.
pub(super) fn round(
    table: &StoredTable,
    mode: MaintenanceMode,
    retention: Retention,
    grace: Duration,
    now_us: i64,
) -> Result<MaintenanceResult, DeltaError> {
    table.settle()?;
    let now_ms = now_us / 1000;
    let grace_ms = i64::try_from(grace.as_millis()).unwrap_or(i64::MAX);
    let may_remove = mode == MaintenanceMode::Full;
    let mut result = MaintenanceResult::default();
    if may_remove {
        result.expired = expire(table, retention, now_us)?;
    }
    if mode != MaintenanceMode::CheckpointsOnly
        && let Some(plan) = compact::plan(&table.files(), now_ms)
    {
        result.merged = plan.files.len() as u64;
        result.merged_bytes = compact::compact(table, plan, now_ms)?.bytes;
        result.merged_into = 1;
    }
    let leavers = if may_remove { vacuum::leavers(table, grace_ms, now_ms) } else { None };
    if table.since_checkpoint() >= checkpoint::EVERY || leavers == Some(false) {
        checkpoint::write(table)?;
        result.checkpoints = 1;
        if may_remove {
            result.log_files = checkpoint::clean(table, grace_ms, now_ms)?;
        }
    }
    if may_remove && (leavers.is_some() || table.sweep_is_due(now_ms)) {
        result.vacuumed = vacuum::vacuum(table, grace_ms, now_ms)?;
    }
    Ok(result)
}

/// Removes the rows of a table that are past their retention.
fn expire(table: &StoredTable, retention: Retention, now_us: i64) -> Result<Expired, DeltaError> {
    let leaving = retention::leaving(&table.files(), retention, now_us);
    if leaving.files.is_empty() {
        return Ok(Expired::default());
    }
    let expired = leaving.told(table.table.name());
    table.commit(&Change { removed: leaving.files, ..Change::default() }, now_us / 1000)?;
    Ok(expired)
}
