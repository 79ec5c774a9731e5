//! The content that was read from a file, under whatever name, and the offset up to which it was read.
//!
//! A content is identified by a hash of its bytes up to that offset. The inode only tells where to look first.

use super::rolling_hash::{Checkpoints, HashState, RollingHash};
use super::rotation;
use crate::pipeline::Position;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// The state of a content that is kept across restarts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct FileContent {
    /// The unique number of the content.
    pub(super) id: u64,
    /// The offset up to which it was read, and the hash up to there.
    #[serde(flatten)]
    pub(super) state: HashState,
    /// The hashes at powers of two; omitted from the WAL because of their size.
    #[serde(default, skip_serializing_if = "Checkpoints::is_empty")]
    pub(super) checkpoints: Checkpoints,
    /// The inode of the file that contained it last.
    pub(super) inode: u64,
    /// The path of that file.
    pub(super) path: PathBuf,
    /// The name, without directory, of the file in which it was found first.
    pub(super) first_name: String,
    /// True if the offset is inside a line that was rejected for its length.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) in_long_line: bool,
    /// The size and modification time of an archive that was read completely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) done: Option<FileStamp>,
    /// True if no file has this content any more, so that reading it cannot continue.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) let_go: bool,
    /// The time it was last read, in microseconds since 1970.
    #[serde(default)]
    pub(super) time: i64,
}

/// The size and modification time of a file, which change when it is written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileStamp {
    pub(super) size: u64,
    /// Nanoseconds since 1970.
    pub(super) modified: i64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_false(value: &bool) -> bool {
    !value
}

impl FileContent {
    /// Creates a content of which nothing was read yet.
    pub(super) fn new(path: &Path, inode: u64) -> io::Result<Self> {
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(io::Error::from)?;
        let first_name = rotation::name_of(path);
        Ok(Self { id: u64::from_le_bytes(id), inode, path: path.to_owned(), first_name, ..Self::default() })
    }

    /// Returns the same content, read as far as this hash.
    pub(super) fn at(mut self, chain: &RollingHash) -> Self {
        self.state = chain.state();
        self.checkpoints = chain.checkpoints().clone();
        self
    }

    /// Returns the position that is stored in the WAL beside the rows.
    pub(super) fn position(&self) -> Position {
        let kept = Self { checkpoints: Checkpoints::new(), ..self.clone() };
        let note = serde_json::to_value(&kept).unwrap_or_default();
        Position { text: self.id, offset: self.state.offset, note }
    }

    /// Restores a content from a position in the WAL.
    pub(super) fn from_position(position: &Position) -> Option<Self> {
        Self::deserialize(&position.note).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_what_it_was_told_but_for_the_marks() {
        let mut chain = RollingHash::new();
        chain.add(&[7; 100_000]);
        let text = FileContent {
            in_long_line: true,
            ..FileContent::new(Path::new("/l/a.log"), 9).unwrap().at(&chain)
        };
        let position = text.position();
        assert_eq!((position.text, position.offset), (text.id, 100_000));
        let stored = FileContent::from_position(&position).unwrap();
        assert_eq!(stored, FileContent { checkpoints: Checkpoints::new(), ..text });
    }
}
