//! A text: what was read from a file, by whatever name, and how far.
//!
//! It is known by its content up to the place it was read to. The number of the file's inode only says where to look
//! first.

use super::rolling_hash::{Checkpoints, HashState, RollingHash};
use super::rotation;
use crate::pipeline::Position;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// A text, as it is kept across restarts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct FileContent {
    /// No other text has it.
    pub(super) id: u64,
    /// How far it was read.
    #[serde(flatten)]
    pub(super) state: HashState,
    /// Left out of the log for its size.
    #[serde(default, skip_serializing_if = "Checkpoints::is_empty")]
    pub(super) checkpoints: Checkpoints,
    /// The file it was in last.
    pub(super) inode: u64,
    /// The name of that.
    pub(super) path: PathBuf,
    /// The name of the file, without its folder, in which it was found first.
    pub(super) first_name: String,
    /// The place is inside a line that is too long, and was refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) in_long_line: bool,
    /// The size and time of an archive that was read whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) done: Option<FileStamp>,
    /// No file has it any more that we would go on reading.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) let_go: bool,
    /// When it was read last, in microseconds since 1970.
    #[serde(default)]
    pub(super) time: i64,
}

/// What changes when a file is written to.
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
    /// A text of which nothing was read yet.
    pub(super) fn new(path: &Path, inode: u64) -> io::Result<Self> {
        let mut id = [0; 8];
        getrandom::fill(&mut id).map_err(io::Error::from)?;
        let first_name = rotation::name_of(path);
        Ok(Self { id: u64::from_le_bytes(id), inode, path: path.to_owned(), first_name, ..Self::default() })
    }

    /// The same, read as far as this.
    pub(super) fn at(mut self, chain: &RollingHash) -> Self {
        self.state = chain.state();
        self.checkpoints = chain.checkpoints().clone();
        self
    }

    /// What goes into the log beside the rows.
    pub(super) fn position(&self) -> Position {
        let kept = Self { checkpoints: Checkpoints::new(), ..self.clone() };
        let note = serde_json::to_value(&kept).unwrap_or_default();
        Position { text: self.id, offset: self.state.offset, note }
    }

    /// What the log told.
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
        let told = FileContent::from_position(&position).unwrap();
        assert_eq!(told, FileContent { checkpoints: Checkpoints::new(), ..text });
    }
}
