//! A copy of a table's log that another process may be writing.
//!
//! What always holds: the copy is a version of the table, whole. Commits and checkpoints have their names only when they
//! are whole (`object_store`), so what is copied is; whether all of them are there is looked at afterwards, as a folder that is
//! being changed may be listed with a later name and without an earlier one.

use super::DeltaError;
use super::object_store::UNFINISHED;
use super::recovery::{Listing, POINTER};
use super::table::LOG;
use crate::backup::copy_file;
use crate::disk::Disk;
use std::io;
use std::path::Path;

/// Copies the log of a table, and says whether it is whole: when not, it was changed meanwhile. A table that was never made
/// has none.
pub(crate) fn copy_log(disk: &dyn Disk, from: &Path, to: &Path) -> Result<bool, DeltaError> {
    let listed = match disk.list(&from.join(LOG)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        other => other?,
    };
    disk.create_dir_all(&to.join(LOG))?;
    // What points to the newest checkpoint is a help that nobody needs, and may point to one that came later.
    let is_wanted = |name: &str| !name.starts_with(UNFINISHED) && name != POINTER;
    for file in listed.iter().filter(|file| is_wanted(&file.name)) {
        copy_file(disk, &from.join(LOG).join(&file.name), &to.join(LOG).join(&file.name))?;
    }
    disk.sync_dir(&to.join(LOG))?;
    Ok(is_whole(&Listing::of(disk, to)?))
}

/// Versions follow each other from the newest checkpoint or from the beginning, and the newest one is a commit.
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
