//! The identities of calls that were counted in the last minutes, after the WAL has released them.
//!
//! A call that succeeded leaves no row of its own, only a sum. So that a sender's retry is not counted twice after a
//! restart, the call's identity is stored in the WAL beside the sum. Identities are only needed for a few minutes, so
//! they do not go into a table: each flush writes those of its records into a small file, before anything is released,
//! and removes files that are too old.
//!
//! Invariants: a file holds only identities of durable records; a file that is unreadable or torn loses nothing but its
//! identities.

use crate::disk::Disk;
use crate::hot::BufferedRecord;
use crate::rows::{Entry, RequestColumns};
use crate::schema::Table;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

/// The time for which files are kept, which is longer than any dedup window.
const KEPT_US: i64 = 5 * 60 * 1_000_000;
/// The maximum length of a file. A file is never longer than one flush.
const LONGEST: u64 = 256 << 20;
const EXTENSION: &str = ".calls";

/// Identities that were counted together, with their time.
pub type TimedIdentities = (i64, Vec<u64>);

/// Writes the identities of records, and removes files that are too old.
///
/// # Errors
/// Fails when the disk fails.
pub(super) fn keep(
    disk: &dyn Disk,
    folder: &Path,
    records: &[Arc<BufferedRecord>],
    up_to: u64,
    now: i64,
) -> io::Result<()> {
    let mut blocks = Vec::new();
    for record in records.iter().filter(|record| record.rows[Table::Requests as usize] > 0) {
        append(record, &mut blocks);
    }
    if blocks.is_empty() {
        return Ok(());
    }
    disk.create_dir_all(folder)?;
    let path = folder.join(format!("{up_to:020}{EXTENSION}"));
    let files = disk.list(folder)?;
    for file in &files {
        // A flush that failed is tried again under the same name.
        let is_old = file.modified < now - KEPT_US || path.ends_with(&file.name);
        if is_old && file.name.ends_with(EXTENSION) {
            disk.remove(&folder.join(&file.name))?;
        }
    }
    let mut file = disk.create(&path, 0)?;
    file.append(&mut [IoSlice::new(&blocks)])?;
    file.sync()?;
    disk.sync_dir(folder)
}

/// Appends a block for each row of identities: its time, the number of identities, and the identities.
fn append(record: &BufferedRecord, blocks: &mut Vec<u8>) {
    let Ok(Some(requests)) = record.batch(Table::Requests) else { return };
    let Some(columns) = RequestColumns::of(&requests) else { return };
    for row in columns.rows() {
        let Entry::CallIdentities(identities) = row.entry else { continue };
        blocks.extend_from_slice(&row.time.to_le_bytes());
        blocks.extend_from_slice(&(identities.len() as u64).to_le_bytes());
        blocks.extend(identities.iter().flat_map(|identity| identity.to_le_bytes()));
    }
}

/// Reads the identities that were counted since a time, in no particular order.
#[must_use]
pub fn read(disk: &dyn Disk, folder: &Path, since: i64) -> Vec<TimedIdentities> {
    let files = match disk.list(folder) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(error) => {
            warn(&error);
            return Vec::new();
        }
    };
    let mut counted = Vec::new();
    for file in files.iter().filter(|file| file.name.ends_with(EXTENSION) && file.modified >= since) {
        match disk.read(&folder.join(&file.name), LONGEST) {
            Ok(bytes) => counted.extend(Blocks(bytes.as_slice()).filter(|(time, _)| *time >= since)),
            Err(error) => warn(&error),
        }
    }
    counted
}

/// The blocks of a file; a torn block ends them.
struct Blocks<'f>(&'f [u8]);

impl Iterator for Blocks<'_> {
    type Item = TimedIdentities;

    fn next(&mut self) -> Option<TimedIdentities> {
        let (time, rest) = self.0.split_first_chunk()?;
        let (count, rest) = rest.split_first_chunk()?;
        let length = usize::try_from(u64::from_le_bytes(*count)).ok()?.checked_mul(size_of::<u64>())?;
        let (identities, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        let identities = identities.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect();
        Some((i64::from_le_bytes(*time), identities))
    }
}

fn warn(error: &io::Error) {
    tracing::warn!(%error, "calls that were counted in the last minutes may be counted again if they are resent");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_block_ends_the_blocks_before_it() {
        let mut file = Vec::new();
        for (time, identities) in [(1_i64, vec![7_u64, u64::MAX]), (2, vec![9])] {
            file.extend_from_slice(&time.to_le_bytes());
            file.extend_from_slice(&(identities.len() as u64).to_le_bytes());
            file.extend(identities.iter().flat_map(|identity| identity.to_le_bytes()));
        }
        assert_eq!(Blocks(&file).collect::<Vec<_>>(), [(1, vec![7, u64::MAX]), (2, vec![9])]);
        for torn in 33..file.len() {
            assert_eq!(Blocks(&file[..torn]).collect::<Vec<_>>(), [(1, vec![7, u64::MAX])], "{torn}");
        }
        let huge = [[0; 8], [255; 8]].concat();
        assert_eq!(Blocks(&huge).count(), 0);
    }
}
