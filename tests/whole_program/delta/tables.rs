//! Lists the files in the folder of a table: commits, checkpoints, files of rows.

use serde_json::Value;
use std::path::{Path, PathBuf};

/// The tables that are on disk.
pub(super) const TABLES: [&str; 5] = ["events", "traffic", "rejects", "requests", "event_counts"];

/// The folder of one table.
pub(super) struct Folder {
    root: PathBuf,
}

impl Folder {
    pub(super) fn of(data_dir: &Path, table: &str) -> Self {
        Self { root: data_dir.join("tables").join(table) }
    }

    /// Returns the files of the table's log, sorted by name, and so by version.
    pub(super) fn log(&self) -> Vec<PathBuf> {
        let mut files = entries(&self.root.join("_delta_log"));
        files.sort();
        files
    }

    /// Returns the commits, by version.
    pub(super) fn commits(&self) -> Vec<PathBuf> {
        self.log().into_iter().filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
    }

    #[track_caller]
    pub(super) fn newest_commit(&self) -> PathBuf {
        self.commits().pop().expect("a commit")
    }

    /// Returns the checkpoints, by version.
    pub(super) fn checkpoints(&self) -> Vec<PathBuf> {
        self.log().into_iter().filter(|path| path.extension().is_some_and(|end| end == "parquet")).collect()
    }

    pub(super) fn pointer(&self) -> PathBuf {
        self.root.join("_delta_log/_last_checkpoint")
    }

    /// Returns the file of rows that the newest commit adds.
    #[track_caller]
    pub(super) fn newest_rows(&self) -> PathBuf {
        let commit = std::fs::read_to_string(self.newest_commit()).expect("a commit");
        let actions = commit.lines().map(|line| serde_json::from_str::<Value>(line).expect("an action"));
        let added = actions.filter_map(|action| Some(action["add"]["path"].as_str()?.to_owned())).next_back();
        self.root.join(added.unwrap_or_else(|| panic!("it adds nothing: {commit}")))
    }

    /// Returns the days that have a folder.
    pub(super) fn days(&self) -> Vec<PathBuf> {
        entries(&self.root).into_iter().filter(|path| name(path).starts_with("date=")).collect()
    }

    /// Returns the files of rows that no commit names, and unfinished files.
    pub(super) fn orphans(&self) -> Vec<PathBuf> {
        let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        let commits: String = self.commits().iter().map(read).collect();
        let is_unfinished = |path: &PathBuf| name(path).starts_with(".unfinished");
        let rows = self.rows().into_iter().filter(|path| !commits.contains(name(path)));
        rows.chain(self.log().into_iter().filter(is_unfinished)).collect()
    }

    /// All files of rows on the disk, whether the table names them or not.
    pub(super) fn rows(&self) -> Vec<PathBuf> {
        self.days().iter().flat_map(|day| entries(day)).collect()
    }
}

/// Returns the name of a file.
pub(super) fn name(path: &Path) -> &str {
    path.file_name().and_then(|name| name.to_str()).expect("a name")
}

/// Returns the entries of a folder; none if it does not exist.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

/// All files below a folder.
pub(super) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let (folders, mut files): (Vec<_>, Vec<_>) = entries(folder).into_iter().partition(|path| path.is_dir());
    files.extend(folders.iter().flat_map(|folder| files_below(folder)));
    files
}
