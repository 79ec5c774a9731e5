//! Finds the files that currently match the patterns.

use super::FilePattern;
use super::file_content::FileStamp;
use super::file_reader::stamp;
use super::tailed_file::FileId;
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// The most files that are considered; further ones are ignored.
pub(super) const MAX_FILES: usize = 10_000;

/// A file that a pattern matches.
#[derive(Debug, Clone)]
pub(super) struct DiscoveredFile {
    pub(super) id: FileId,
    pub(super) path: PathBuf,
    /// The index of the pattern that matches it.
    pub(super) pattern: usize,
    pub(super) stamp: FileStamp,
}

/// Finds all files that the patterns match, ordered by modification time, oldest first. A file with several names is
/// listed once.
pub(super) fn discover_files(patterns: &[FilePattern]) -> Vec<DiscoveredFile> {
    let mut seen = HashSet::new();
    let mut files = Vec::new();
    for (index, pattern) in patterns.iter().enumerate() {
        // A directory that cannot be read counts as one without files; it may become readable.
        let paths = glob::glob(&pattern.pattern).into_iter().flatten().filter_map(Result::ok);
        for path in paths {
            let Ok(metadata) = path.metadata() else { continue };
            let id = FileId { device: metadata.dev(), inode: metadata.ino() };
            if metadata.is_file() && files.len() < MAX_FILES && seen.insert(id) {
                files.push(DiscoveredFile { id, path, pattern: index, stamp: stamp(&metadata) });
            }
        }
    }
    files.sort_by_key(|file| file.stamp.modified);
    files
}
