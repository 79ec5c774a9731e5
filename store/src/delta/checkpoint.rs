//! Writes checkpoints of a Delta log, and removes the log files that they make superfluous.
//!
//! Invariants: a checkpoint is durable before anything points to it (`object_store`), and nothing is removed that the
//! second newest checkpoint needs, so that damage to the newest one costs nothing.

use super::DeltaError;
use super::table::{LOG, StoredTable};
use deltalake_core::checkpoints::{cleanup_expired_logs_for, create_checkpoint};

/// The number of commits after which a checkpoint is due.
pub(super) const EVERY: u64 = 16;

/// Writes a checkpoint of the current version of the table.
pub(super) fn write(table: &StoredTable) -> Result<(), DeltaError> {
    table.with_log(async |delta| create_checkpoint(delta, None).await)?;
    table.is_checkpointed();
    Ok(())
}

/// Removes log entries that are older than the second newest checkpoint and than the grace period for other readers.
pub(super) fn clean(table: &StoredTable, grace_ms: i64, now_ms: i64) -> Result<u64, DeltaError> {
    let mut versions: Vec<u64> =
        table.disk.list(&table.root.join(LOG))?.iter().filter_map(|file| version(&file.name)).collect();
    versions.sort_unstable();
    versions.dedup();
    let Some(keep) = versions.len().checked_sub(2).map(|place| versions[place]) else { return Ok(0) };
    let removed = table.with_log(async |delta| {
        cleanup_expired_logs_for(keep, &*delta.log_store(), now_ms - grace_ms, None).await
    })?;
    Ok(removed as u64)
}

/// Returns the version of a checkpoint.
pub(super) fn version(name: &str) -> Option<u64> {
    let (version, rest) = name.split_once('.')?;
    (rest.starts_with("checkpoint") && rest.ends_with("parquet")).then(|| version.parse().ok()).flatten()
}
