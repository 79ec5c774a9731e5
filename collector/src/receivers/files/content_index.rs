//! The index of all known contents: those that are being read, and those that were read before.
//!
//! It is restored from two sources. The WAL has the position of a content beside the rows that were read up to it, so
//! that both are durable or neither is; but rows are flushed, and positions are forgotten after a day or two. So the
//! index is also written to `files.json` in the data directory from time to time, and at startup the larger offset
//! wins.
//!
//! Invariant: `files.json` never claims more than is durable; it is replaced atomically, and synced.

use super::file_content::FileContent;
use super::rotation;
use crate::pipeline::Position;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use store::write_whole;

/// The most contents that are kept. Beyond this, those that no file has any more are removed first, and of these the
/// least recently read.
const MAX_CONTENTS: usize = 10_000;

/// All known contents, and the path of `files.json`.
pub(super) struct ContentIndex {
    texts: BTreeMap<u64, FileContent>,
    file: PathBuf,
    is_changed: bool,
}

impl ContentIndex {
    /// Loads `files.json` and merges the positions from the WAL into it.
    ///
    /// # Errors
    /// Returns an error if the file exists and cannot be read or parsed.
    pub(super) fn open(file: PathBuf, positions: &[Position]) -> io::Result<Self> {
        let texts: Vec<FileContent> = match std::fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::from)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let mut known =
            Self { texts: texts.into_iter().map(|text| (text.id, text)).collect(), file, is_changed: false };
        for stored in positions.iter().filter_map(FileContent::from_position) {
            known.merge(stored);
        }
        Ok(known)
    }

    fn merge(&mut self, mut stored: FileContent) {
        if let Some(before) = self.texts.get(&stored.id) {
            if before.state.offset >= stored.state.offset {
                return;
            }
            stored.checkpoints.clone_from(&before.checkpoints);
        }
        self.put(stored);
    }

    /// Stores the newest state of a content.
    pub(super) fn put(&mut self, text: FileContent) {
        self.is_changed = true;
        self.texts.insert(text.id, text);
    }

    /// Records that no file has this content any more.
    pub(super) fn let_go(&mut self, id: u64) {
        if let Some(text) = self.texts.get_mut(&id).filter(|text| !text.let_go) {
            text.let_go = true;
            self.is_changed = true;
        }
    }

    /// Returns the contents that a file with this inode may have.
    pub(super) fn of_inode(&self, inode: u64) -> Vec<FileContent> {
        self.texts.values().filter(|text| text.inode == inode && !text.let_go).cloned().collect()
    }

    /// Returns the contents that a file may be a copy of, each with the number of bytes that must agree.
    pub(super) fn kin_of(&self, file: &Path) -> Vec<(FileContent, u64)> {
        let read = self.texts.values().filter(|text| text.state.offset > 0);
        let kin =
            read.filter_map(|text| Some((text, rotation::must_agree(file, &text.path, &text.first_name)?)));
        kin.map(|(text, agree)| (text.clone(), agree)).collect()
    }

    pub(super) fn get(&self, id: u64) -> Option<&FileContent> {
        self.texts.get(&id)
    }

    /// Writes `files.json` if anything has changed. When this returns `Ok`, it is durable.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; the WAL has the same positions for a day.
    pub(super) fn save(&mut self) -> io::Result<()> {
        if !self.is_changed {
            return Ok(());
        }
        self.make_room();
        let texts: Vec<&FileContent> = self.texts.values().collect();
        write_whole(&self.file, &serde_json::to_vec(&texts)?)?;
        self.is_changed = false;
        Ok(())
    }

    fn make_room(&mut self) {
        if self.texts.len() <= MAX_CONTENTS {
            return;
        }
        let mut ages: Vec<_> = self.texts.values().map(|text| (!text.let_go, text.time, text.id)).collect();
        ages.sort_unstable();
        for (_, _, id) in &ages[..ages.len() - MAX_CONTENTS] {
            self.texts.remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rolling_hash::RollingHash;
    use super::*;

    fn text(id: u64, bytes: usize) -> FileContent {
        let mut chain = RollingHash::new();
        chain.add(&vec![7; bytes]);
        FileContent { id, ..FileContent::new(Path::new("/l/a.log"), 9).unwrap().at(&chain) }
    }

    #[test]
    fn the_further_of_file_and_log_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("files.json");
        let mut known = ContentIndex::open(file.clone(), &[]).unwrap();
        known.put(text(1, 500));
        known.put(text(2, 500));
        known.save().unwrap();
        let stored = [text(1, 400).position(), text(2, 600).position(), text(3, 5).position()];
        let known = ContentIndex::open(file.clone(), &stored).unwrap();
        let at = |id| known.get(id).unwrap().state.offset;
        assert_eq!([at(1), at(2), at(3)], [500, 600, 5]);
        assert_eq!(known.get(2).unwrap().checkpoints, text(2, 500).checkpoints, "marks are only in the file");
        std::fs::write(&file, "{").unwrap();
        assert!(ContentIndex::open(file, &stored).is_err());
    }
}
