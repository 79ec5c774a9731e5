//! Checks the newest commit of a table, and the files that it needs, before the table is opened.
//!
//! A commit is written so that a crash leaves it complete or not at all. A disk, a restored backup or a careless person
//! can still leave one that is empty, torn, or names files that do not exist. `deltalake` would read an empty one as a
//! commit without changes, and its rows would be lost silently.
//!
//! Invariant: nothing is deleted. Damaged files are moved to the folder `set-aside` of the data directory. Their rows
//! come back from the WAL, or a checkpoint has them: the WAL is not released before one of the two is certain.

use super::object_store::UNFINISHED;
use super::parquet_file::{OpenFile, Texts};
use super::table::LOG;
use super::{DeltaError, checkpoint};
use crate::disk::Disk;
use crate::schema::Table;
use serde_json::{Value, json};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

/// The file that points to the newest checkpoint.
pub(super) const POINTER: &str = "_last_checkpoint";

/// The remedy for a file that exists only in a backup.
const PUT_BACK: &str = "`faultline check` says more; put that file back from a backup";
/// The remedy for several damaged commits.
const PUT_BACK_OR_MOVE: &str = "put these files back from a backup; or, to go on without the rows that they added, move \
    them out of that folder: what is still in the log of their rows comes back by itself";
/// The remedy for a damaged newest commit.
const START: &str = "start the server once: it sets that file aside, and its rows come back from the log";

/// A table whose log is checked, and the folder for damaged files.
pub(super) struct Examined<'e> {
    pub(super) disk: &'e dyn Disk,
    pub(super) table: Table,
    pub(super) root: &'e Path,
    pub(super) set_aside: &'e Path,
    pub(super) now_ms: i64,
}

/// The files of a Delta log, by their names.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// The versions with a commit, ascending.
    pub(super) commits: Vec<u64>,
    /// The versions with a checkpoint, and its file name, ascending.
    pub(super) checkpoints: Vec<(u64, String)>,
    pub(super) has_pointer: bool,
    pub(super) unfinished: Vec<String>,
}

impl Listing {
    pub(super) fn of(disk: &dyn Disk, root: &Path) -> io::Result<Self> {
        let mut listing = Self::default();
        for file in disk.list(&root.join(LOG))? {
            if file.name.starts_with(UNFINISHED) {
                listing.unfinished.push(file.name);
            } else if file.name == POINTER {
                listing.has_pointer = true;
            } else if let Some(version) = checkpoint::version(&file.name) {
                listing.checkpoints.push((version, file.name));
            } else if let Some(version) = version_of(&file.name) {
                listing.commits.push(version);
            }
        }
        listing.commits.sort_unstable();
        listing.checkpoints.sort_unstable();
        Ok(listing)
    }
}

/// The part of a commit that recovery looks at.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Commit {
    /// Paths and lengths of the files that it adds.
    pub(super) added: Vec<(String, u64)>,
    /// Paths of the files that it removes.
    pub(super) removed: Vec<String>,
}

impl Commit {
    /// Parses a commit. The error says why the bytes are not a valid commit.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
        let mut commit = Self::default();
        let mut actions = 0;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let action: Value =
                serde_json::from_str(line).map_err(|error| format!("a line is torn: {error}"))?;
            actions += 1;
            if let Some(add) = action.get("add") {
                let path = add["path"].as_str().ok_or("an added file has no path")?;
                commit.added.push((path.to_owned(), add["size"].as_u64().unwrap_or_default()));
            }
            if let Some(path) = action["remove"]["path"].as_str() {
                commit.removed.push(path.to_owned());
            }
        }
        if actions == 0 { Err("it is empty".to_owned()) } else { Ok(commit) }
    }
}

impl Examined<'_> {
    /// Checks the table's log, and sets its newest version aside if that is damaged. Returns the damage that was found.
    pub(super) fn look_through(&self) -> Result<Vec<String>, DeltaError> {
        self.disk.create_dir_all(&self.root.join(LOG))?;
        let listing = Listing::of(self.disk, self.root)?;
        for name in &listing.unfinished {
            self.disk.remove(&self.log_file(name))?;
        }
        let mut found = Vec::new();
        let base = self.newest_checkpoint(&listing, &mut found)?;
        self.versions_follow(&listing, base)?;
        let newer: Vec<u64> =
            listing.commits.iter().copied().filter(|version| Some(*version) > base).collect();
        match (newer.split_last(), base) {
            (Some((newest, earlier)), _) => {
                if let Some(damage) = self.bad_commits(&newer).filter(|_| self.has_bad(earlier)) {
                    return Err(damage);
                }
                if let Err(why) = self.newest_commit(*newest) {
                    self.aside(&commit_name(*newest), &why, &mut found)?;
                }
            }
            (None, Some(base)) => self.newest_is_checkpoint(&listing, base, &mut found)?,
            (None, None) => {}
        }
        Ok(found)
    }

    /// Sets the whole log of a derived table aside, which is then made again.
    pub(super) fn set_all_aside(&self, why: &str) -> Result<Vec<String>, DeltaError> {
        let mut found = Vec::new();
        let why = format!("{why}; the table is made again");
        for file in self.disk.list(&self.root.join(LOG))? {
            self.aside(&file.name, &why, &mut found)?;
        }
        Ok(found)
    }

    fn has_bad(&self, versions: &[u64]) -> bool {
        versions.iter().any(|version| self.commit(*version).is_err())
    }

    /// Returns all damage of these commits with its remedy, if there is any. A damaged newest commit could be set
    /// aside; this is for older ones, whose rows are no longer in the WAL.
    fn bad_commits(&self, versions: &[u64]) -> Option<DeltaError> {
        let bad: Vec<(u64, String)> =
            versions.iter().filter_map(|version| Some((*version, self.commit(*version).err()?))).collect();
        let ((first, why), others) = bad.split_first()?;
        let mut why = why.clone();
        for (version, of_other) in others {
            why.push_str(&format!(", and {}: {of_other}", commit_name(*version)));
        }
        let are_newest =
            versions.iter().rev().zip(bad.iter().rev()).all(|(version, (bad, _))| version == bad);
        let remedy = if !others.is_empty() && are_newest { PUT_BACK_OR_MOVE } else { PUT_BACK };
        Some(DeltaError::Damaged { table: self.table, path: self.commit_path(*first), why, remedy })
    }

    /// Returns true if a commit other than the newest is empty. (The WAL still has the rows of the newest.)
    pub(super) fn has_hollow_commits(&self) -> bool {
        let Ok(files) = self.disk.list(&self.root.join(LOG)) else { return false };
        let base = files.iter().filter_map(|file| checkpoint::version(&file.name)).max();
        let mut commits: Vec<(u64, u64)> =
            files.iter().filter_map(|file| Some((version_of(&file.name)?, file.bytes))).collect();
        commits.sort_unstable();
        commits.pop();
        commits.iter().any(|(version, bytes)| Some(*version) > base && *bytes == 0)
    }

    /// Returns the damage of the table's log, if there is any. It changes nothing.
    pub(super) fn damage(&self) -> Option<DeltaError> {
        let listing = Listing::of(self.disk, self.root).ok()?;
        let is_good = |(_, name): &&(u64, String)| self.checkpoint(name).is_ok();
        let base = listing.checkpoints.iter().rev().find(is_good).map(|(version, _)| *version);
        if let Err(gap) = self.versions_follow(&listing, base) {
            return Some(gap);
        }
        let newer: Vec<u64> =
            listing.commits.iter().copied().filter(|version| Some(*version) > base).collect();
        let damage = self.bad_commits(&newer)?;
        match (damage, newer.split_last()) {
            // The server repairs that by itself when it starts.
            (DeltaError::Damaged { table, path, why, .. }, Some((_, earlier))) if !self.has_bad(earlier) => {
                Some(DeltaError::Damaged { table, path, why, remedy: START })
            }
            (damage, _) => Some(damage),
        }
    }

    /// Checks a newest version that has a checkpoint, which includes the changes of its commit. If the commit is
    /// damaged or missing, an empty one replaces it, because only its number is needed. If its data files are damaged,
    /// the table goes back one version, if that version is complete.
    fn newest_is_checkpoint(
        &self,
        listing: &Listing,
        version: u64,
        found: &mut Vec<String>,
    ) -> Result<(), DeltaError> {
        let name = commit_name(version);
        let commit = match self.commit(version) {
            Ok(commit) => commit,
            Err(why) => {
                self.aside(&name, &why, found)?;
                return self.replace(version);
            }
        };
        let Err(why) = self.added_files(&commit) else { return Ok(()) };
        if !self.can_go_back(listing, version, &commit) {
            tracing::error!(
                table = self.table.name(),
                "{why}; put it back from a backup: `faultline check` says more"
            );
            found.push(format!("{}: {why}; put it back from a backup", self.table.name()));
            return Ok(());
        }
        self.aside(&name, &why, found)?;
        for (_, checkpoint) in listing.checkpoints.iter().filter(|(of, _)| *of == version) {
            self.aside(checkpoint, &format!("it includes version {version}"), found)?;
        }
        self.aside(POINTER, "it points there", found)
    }

    /// Returns true if the version before a checkpoint can be read: its log exists, and so do the files that the commit
    /// removed.
    fn can_go_back(&self, listing: &Listing, version: u64, commit: &Commit) -> bool {
        let earlier = listing.checkpoints.iter().rev().map(|(of, _)| *of).find(|of| *of < version);
        let first = earlier.map_or(0, |of| of + 1);
        let has_log = (first..version).all(|version| self.commit(version).is_ok());
        has_log && commit.removed.iter().all(|path| self.disk.open(&self.root.join(path)).is_ok())
    }

    /// Writes a commit without changes, in place of a commit whose changes a checkpoint includes.
    fn replace(&self, version: u64) -> Result<(), DeltaError> {
        let info = json!({"commitInfo": {
            "timestamp": self.now_ms,
            "operation": "REPAIR",
            "operationParameters": {},
            "engineInfo": "faultline",
        }});
        let mut file = self.disk.create(&self.commit_path(version), 0)?;
        file.append(&mut [IoSlice::new(info.to_string().as_bytes())])?;
        file.sync()?;
        Ok(self.disk.sync_dir(&self.root.join(LOG))?)
    }

    /// Returns the newest checkpoint that can be read, and sets aside newer ones that cannot.
    fn newest_checkpoint(
        &self,
        listing: &Listing,
        found: &mut Vec<String>,
    ) -> Result<Option<u64>, DeltaError> {
        let mut pointer_is_good = self.pointer(listing);
        let mut base = None;
        for (version, name) in listing.checkpoints.iter().rev() {
            match self.checkpoint(name) {
                Ok(()) => {
                    base = Some(*version);
                    break;
                }
                Err(why) => {
                    self.aside(name, &why, found)?;
                    pointer_is_good = false;
                }
            }
        }
        if listing.has_pointer && !pointer_is_good {
            self.aside(POINTER, "it does not point to a checkpoint that can be read", found)?;
        }
        Ok(base)
    }

    /// Returns true if the pointer names a checkpoint that exists.
    fn pointer(&self, listing: &Listing) -> bool {
        let bytes = self.disk.read(&self.log_file(POINTER), 1 << 20);
        let value = bytes.ok().and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        let version = value.and_then(|value| value["version"].as_u64());
        version.is_some_and(|version| listing.checkpoints.iter().any(|(known, _)| *known == version))
    }

    pub(super) fn checkpoint(&self, name: &str) -> Result<(), String> {
        let file = OpenFile::new(self.disk, &self.log_file(name), self.table, Texts::Plain);
        let rows =
            file.map_err(|error| format!("it cannot be read: {error}"))?.footer().file_metadata().num_rows();
        if rows > 0 { Ok(()) } else { Err("it is empty".to_owned()) }
    }

    /// Checks that versions have no gap since the checkpoint, or since the beginning.
    fn versions_follow(&self, listing: &Listing, base: Option<u64>) -> Result<(), DeltaError> {
        let since = listing.commits.iter().copied().filter(|version| Some(*version) > base);
        match (base.map_or(0, |base| base + 1)..).zip(since).find(|(expected, version)| expected != version) {
            Some((missing, _)) => {
                Err(self.damaged(&self.commit_path(missing), "it is missing, and later ones are there"))
            }
            None => Ok(()),
        }
    }

    pub(super) fn commit(&self, version: u64) -> Result<Commit, String> {
        let bytes = self.disk.read(&self.commit_path(version), u64::MAX);
        Commit::parse(&bytes.map_err(|error| format!("it cannot be read: {error}"))?)
    }

    /// Checks the newest commit, and the files that it adds.
    fn newest_commit(&self, version: u64) -> Result<(), String> {
        self.added_files(&self.commit(version)?)
    }

    fn added_files(&self, commit: &Commit) -> Result<(), String> {
        commit.added.iter().try_for_each(|(path, bytes)| self.data_file(path, *bytes).map(drop))
    }

    /// Checks the length and the footer of a file that a commit adds, and returns it.
    pub(super) fn data_file(&self, path: &str, bytes: u64) -> Result<OpenFile, String> {
        let whole = self.root.join(path);
        let length = self
            .disk
            .open(&whole)
            .map_err(|error| format!("the file {path} cannot be opened: {error}"))?
            .bytes();
        if length != bytes {
            return Err(format!("the file {path} has {length} bytes instead of {bytes}"));
        }
        OpenFile::new(self.disk, &whole, self.table, Texts::Plain)
            .map_err(|error| format!("the file {path} cannot be read: {error}"))
    }

    /// Moves a file of the log to the set-aside folder, durably. It does nothing if the file does not exist.
    fn aside(&self, name: &str, why: &str, found: &mut Vec<String>) -> Result<(), DeltaError> {
        let from = self.log_file(name);
        if self.disk.open(&from).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Ok(());
        }
        self.disk.create_dir_all(self.set_aside)?;
        let to = self.set_aside.join(format!("{}-{}-{name}", self.table.name(), self.now_ms));
        self.disk.rename(&from, &to)?;
        self.disk.sync_dir(self.set_aside)?;
        self.disk.sync_dir(&self.root.join(LOG))?;
        tracing::error!(
            table = self.table.name(),
            file = name,
            moved_to = %to.display(),
            "set aside: {why}; its rows are read again from the log"
        );
        found.push(format!("{}: {name}: {why}", self.table.name()));
        Ok(())
    }

    fn damaged(&self, path: &Path, why: &str) -> DeltaError {
        let (path, why) = (path.to_owned(), why.to_owned());
        DeltaError::Damaged { table: self.table, path, why, remedy: PUT_BACK }
    }

    fn log_file(&self, name: &str) -> PathBuf {
        self.root.join(LOG).join(name)
    }

    fn commit_path(&self, version: u64) -> PathBuf {
        self.log_file(&commit_name(version))
    }
}

/// Returns the version that a commit file creates.
fn version_of(name: &str) -> Option<u64> {
    name.strip_suffix(".json").and_then(|name| name.parse().ok())
}

fn commit_name(version: u64) -> String {
    format!("{version:020}.json")
}
