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
use crate::rows::CALLS;
use crate::schema::Table;
use arrow::array::AsArray;
use arrow::datatypes::TimestampMicrosecondType;
use std::fmt::Write;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;

/// The time for which files are kept, which is longer than any dedup window.
const KEPT_US: i64 = 5 * 60 * 1_000_000;
/// The maximum length of a file. A file is never longer than one flush.
const LONGEST: u64 = 256 << 20;
const EXTENSION: &str = ".calls";

/// Identities that were counted together, with their time and the text that encodes them in the WAL.
pub type TimedIdentities = (i64, String);

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
    let mut text = String::new();
    for record in records.iter().filter(|record| record.rows[Table::Requests as usize] > 0) {
        append(record, &mut text);
    }
    if text.is_empty() {
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
    file.append(&mut [IoSlice::new(text.as_bytes())])?;
    file.sync()?;
    disk.sync_dir(folder)
}

/// Appends a line for each row of identities: the time, and the encoded row.
fn append(record: &BufferedRecord, text: &mut String) {
    let Ok(Some(requests)) = record.batch(Table::Requests) else { return };
    let answers = requests.column_by_name("answer").and_then(|column| column.as_string_opt::<i32>());
    let times = requests
        .column_by_name("time")
        .and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>());
    let (Some(answers), Some(times)) = (answers, times) else { return };
    for (answer, time) in answers.iter().zip(times) {
        if let (Some(answer), Some(time)) = (answer.filter(|answer| answer.starts_with(CALLS)), time) {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "{time} {answer}");
        }
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
            // A line without a line break is torn.
            Ok(bytes) => counted.extend(
                bytes
                    .as_slice()
                    .split_inclusive(|byte| *byte == b'\n')
                    .filter_map(line)
                    .filter(|(time, _)| *time >= since),
            ),
            Err(error) => warn(&error),
        }
    }
    counted
}

fn line(line: &[u8]) -> Option<TimedIdentities> {
    let (time, answer) = std::str::from_utf8(line).ok()?.strip_suffix('\n')?.split_once(' ')?;
    Some((time.parse().ok()?, answer.to_owned()))
}

fn warn(error: &io::Error) {
    tracing::warn!(%error, "calls that were counted in the last minutes may be counted again if they are resent");
}
