//! Files that no table names any more leave the disk, when nobody can be reading them.
//!
//! What always holds: a file goes only when no snapshot in this process holds it; when it was taken out of the table
//! so long ago that other processes have ended their reading; and when a checkpoint says that it is out, so that a
//! newest commit that turns out to be damaged does not bring back a file that is gone. A file that no commit ever
//! named goes when it is so old that nobody can be about to commit it.

use super::table::{Removed, StoredTable};
use super::{DeltaError, layout};
use std::io::ErrorKind;

/// The age at which a file that no commit names is deleted: a day, longer than any commit takes.
const ORPHANS_MS: i64 = 24 * 60 * 60 * 1000;

/// The deleted files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vacuumed {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Returns none if no removed file may leave the disk yet, and else whether all that may are in a checkpoint.
pub(super) fn leavers(table: &StoredTable, grace_ms: i64, now_ms: i64) -> Option<bool> {
    let removed = table.removed();
    let mut leavers = removed.values().filter(|removed| removed.at_ms + grace_ms <= now_ms).peekable();
    leavers.peek()?;
    Some(leavers.all(|removed| removed.is_checkpointed))
}

/// Removes what may go.
pub(super) fn vacuum(table: &StoredTable, grace_ms: i64, now_ms: i64) -> Result<Vacuumed, DeltaError> {
    let (removed, held) = (table.removed(), table.held_paths());
    let has_left = |removed: &Removed| removed.is_checkpointed && removed.at_ms + grace_ms <= now_ms;
    let mut vacuumed = Vacuumed::default();
    for folder in table.disk.folders(&table.root)? {
        if !folder.starts_with(layout::PARTITION) {
            continue;
        }
        let mut left = 0;
        for file in table.disk.list(&table.root.join(&folder))? {
            let path = format!("{folder}/{}", file.name);
            let may_go = match removed.get(&path) {
                Some(removed) => has_left(removed),
                None => file.modified / 1000 + ORPHANS_MS <= now_ms,
            };
            if held.contains(&path) || !may_go {
                left += 1;
                continue;
            }
            table.disk.remove(&table.root.join(&path))?;
            vacuumed.files += 1;
            vacuumed.bytes += file.bytes;
        }
        if left == 0 {
            remove_folder(table, &folder)?;
        }
    }
    // Also those that were gone before.
    table.forget_removed(|path, removed| has_left(removed) && !held.contains(path));
    Ok(vacuumed)
}

/// A file may be on its way into it: then it stays.
fn remove_folder(table: &StoredTable, folder: &str) -> Result<(), DeltaError> {
    match table.disk.remove_folder(&table.root.join(folder)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
