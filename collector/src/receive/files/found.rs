//! The files that the patterns match, at one moment.

use super::Watch;
use super::reader::stamp;
use super::tailed::FileId;
use super::text::Stamp;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// More files than this are not looked at.
pub(super) const MATCHES: usize = 10_000;

/// A file that a pattern matches.
#[derive(Debug, Clone)]
pub(super) struct Match {
    pub(super) id: FileId,
    pub(super) path: PathBuf,
    /// Which pattern.
    pub(super) watch: usize,
    pub(super) stamp: Stamp,
}

/// All of them, those that were written to longest ago first; a file with several names once.
pub(super) fn matches(watches: &[Watch]) -> Vec<Match> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (number, watch) in watches.iter().enumerate() {
        // A folder that cannot be read is one without files; it may become readable.
        let paths = glob::glob(&watch.pattern).into_iter().flatten().filter_map(Result::ok);
        for path in paths {
            let Ok(metadata) = path.metadata() else { continue };
            let id = FileId { device: metadata.dev(), inode: metadata.ino() };
            if metadata.is_file() && found.len() < MATCHES && seen.insert(id) {
                found.push(Match { id, path, watch: number, stamp: stamp(&metadata) });
            }
        }
    }
    found.sort_by_key(|file| file.stamp.modified);
    found
}
