//! Deletes files that no table names any more, when nobody can be reading them.
//!
//! Invariants: a removed file is deleted only when no snapshot in this process holds it, when it was removed so long
//! ago that other processes have finished reading, and when a checkpoint includes the removal, so that a damaged newest
//! commit cannot bring back a file that is gone. A file that no commit ever named is deleted when it is so old that no
//! commit can be about to name it.

use super::table::{Removed, StoredTable};
use super::{DeltaError, layout};
use std::io::ErrorKind;

/// The age at which a file that no commit names is deleted: a day, longer than any commit takes.
const ORPHANS_MS: i64 = 24 * 60 * 60 * 1000;

/// The deleted files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Vacuumed {
    /// The number of deleted files.
    pub files: u64,
    /// The number of deleted bytes.
    pub bytes: u64,
}

/// Returns `None` if no removed file may be deleted yet, and else whether a checkpoint includes all removals that are
/// due.
pub(super) fn leavers(table: &StoredTable, grace_ms: i64, now_ms: i64) -> Option<bool> {
    let removed = table.removed();
    let mut leavers = removed.values().filter(|removed| removed.at_ms + grace_ms <= now_ms).peekable();
    leavers.peek()?;
    Some(leavers.all(|removed| removed.is_checkpointed))
}

/// Deletes the files that may be deleted.
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
    // This includes files that were already gone.
    table.forget_removed(|path, removed| has_left(removed) && !held.contains(path));
    Ok(vacuumed)
}

/// Removes a folder, unless a new file is in it.
fn remove_folder(table: &StoredTable, folder: &str) -> Result<(), DeltaError> {
    match table.disk.remove_folder(&table.root.join(folder)) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}
