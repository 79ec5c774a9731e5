//! Copies the Delta log of a table that another process may be writing.
//!
//! Invariant: the copy is a complete version of the table. Commits and checkpoints get their names only when they are
//! complete (`object_store`), so every copied file is complete. Whether all of them are there is checked afterwards,
//! because a listing of a folder that is being changed may contain a later name and lack an earlier one.

use super::DeltaError;
use super::object_store::UNFINISHED;
use super::recovery::{Listing, POINTER};
use super::table::LOG;
use crate::backup::copy_file;
use crate::disk::Disk;
use std::io;
use std::path::Path;

/// Copies the Delta log of a table. Returns false if the copy is incomplete because the log was changed meanwhile. A
/// table that was never created has no log.
pub(crate) fn copy_log(disk: &dyn Disk, from: &Path, to: &Path) -> Result<bool, DeltaError> {
    let listed = match disk.list(&from.join(LOG)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        other => other?,
    };
    disk.create_dir_all(&to.join(LOG))?;
    // The pointer to the newest checkpoint is optional, and may point to a checkpoint that was written later.
    let is_wanted = |name: &str| !name.starts_with(UNFINISHED) && name != POINTER;
    for file in listed.iter().filter(|file| is_wanted(&file.name)) {
        copy_file(disk, &from.join(LOG).join(&file.name), &to.join(LOG).join(&file.name))?;
    }
    disk.sync_dir(&to.join(LOG))?;
    Ok(is_whole(&Listing::of(disk, to)?))
}

/// Returns true if versions follow each other from the newest checkpoint or from the beginning, and the newest one is a
/// commit.
fn is_whole(listing: &Listing) -> bool {
    let base = listing.checkpoints.last().map(|(version, _)| *version);
    let newest = listing.commits.last().copied();
    let since: Vec<u64> = listing.commits.iter().copied().filter(|version| Some(*version) > base).collect();
    let follows =
        (base.map_or(0, |base| base + 1)..).zip(&since).all(|(expected, version)| expected == *version);
    newest.is_some() && newest >= base && follows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(commits: &[u64], checkpoints: &[u64]) -> Listing {
        let checkpoints = checkpoints.iter().map(|version| (*version, String::new())).collect();
        Listing { commits: commits.to_vec(), checkpoints, ..Listing::default() }
    }

    #[test]
    fn a_log_with_a_hole_is_not_whole() {
        for (commits, checkpoints, expected) in [
            (&[0, 1, 2][..], &[][..], true),
            (&[0, 2], &[], false),
            (&[1, 2], &[], false),
            (&[], &[], false),
            (&[14, 15, 16, 17], &[16], true),
            (&[16], &[16], true),
            (&[15], &[16], false),
            (&[16, 18], &[16], false),
            (&[3, 16, 17], &[8, 16], true),
        ] {
            assert_eq!(is_whole(&listing(commits, checkpoints)), expected, "{commits:?} {checkpoints:?}");
        }
    }
}
