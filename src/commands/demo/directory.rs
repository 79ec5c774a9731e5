//! The data directory of the demo. `demo.json` in it marks its data as invented, and records the end of the history.

use crate::cli::exit_code::ExitError;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::Path;
use store::{DataDirectory, DirectoryError};

/// The file that marks a directory as the demo's.
const FILE: &str = "demo.json";
/// The entries that every data directory has from the start: a lock, and an empty folder.
const LOCK: &str = "LOCK";
const WAL: &str = "wal";

/// The contents of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DemoState {
    /// The seed of the world.
    pub(super) seed: u64,
    /// The time up to which traffic was generated, in microseconds since 1970.
    pub(super) loaded_until: i64,
}

impl DemoState {
    /// Reads the state. Returns `None` if there is none, or none that can be read.
    pub(super) fn read(directory: &DataDirectory) -> Option<Self> {
        serde_json::from_slice(&fs::read(directory.path().join(FILE)).ok()?).ok()
    }

    /// Writes the state atomically.
    pub(super) fn write(self, directory: &DataDirectory) -> Result<(), ExitError> {
        let text = serde_json::to_vec(&self).map_err(ExitError::data_directory)?;
        let written: Result<(), DirectoryError> = directory.write(&directory.path().join(FILE), &text);
        written.map_err(ExitError::data_directory)
    }
}

/// Rejects a directory that holds data of something other than the demo.
pub(super) fn check(path: &Path) -> Result<(), ExitError> {
    // A missing directory is fine, and any other error is reported when the directory is opened.
    let Ok(entries) = fs::read_dir(path) else { return Ok(()) };
    let mut foreign = None;
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name == FILE {
            return Ok(());
        }
        let is_begun = name == LOCK || (name == WAL && is_empty(&entry.path()).unwrap_or_default());
        foreign = foreign.or_else(|| (!is_begun).then(|| name.to_string_lossy().into_owned()));
    }
    let Some(name) = foreign else { return Ok(()) };
    Err(ExitError::data_directory(format!(
        "{} holds data that is not the demo's ({name}), and demo data does not belong beside it; name an empty directory \
         with --data-dir, or use `faultline serve` to see what is in this one",
        path.display()
    )))
}

fn is_empty(folder: &Path) -> io::Result<bool> {
    Ok(fs::read_dir(folder)?.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_empty_directories_and_those_of_the_demo_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        assert!(check(&path).is_ok());
        let (directory, _lock) = DataDirectory::claim(&path).unwrap();
        assert!(check(&path).is_ok(), "just begun");
        fs::write(path.join("hash.key"), "00").unwrap();
        let message = check(&path).unwrap_err().to_string();
        assert!(message.contains("hash.key") && message.contains("--data-dir"), "{message}");
        let state = DemoState { seed: 3, loaded_until: 5 };
        state.write(&directory).unwrap();
        assert!(check(&path).is_ok());
        assert_eq!(DemoState::read(&directory), Some(state));
    }
}
