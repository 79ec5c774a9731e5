//! Counters of tailed files and of standard input, in addition to those of every source.

use super::{Counter, Gauge};

/// The counters of tailed log files.
#[derive(Debug, Default)]
pub struct FileCounters {
    /// Files that are open.
    pub open: Gauge,
    /// Files that were found but are not read yet: too many are open, or they may be a copy of another file, or are
    /// still being written.
    pub waiting: Gauge,
    /// Bytes of open files that are not stored yet, without archives, whose length is unknown.
    pub lag: Gauge,
    /// Lines that were read.
    pub lines: Counter,
    /// Bytes of these lines, after decompression.
    pub bytes: Counter,
    /// Files that were renamed.
    pub rotations: Counter,
    /// Files that were truncated, or replaced in place.
    pub truncations: Counter,
    /// Files that turned out to be a copy of what had been read from another.
    pub copies: Counter,
    /// Archives that were read to their end.
    pub archives: Counter,
    /// Failed attempts to read a file.
    pub unreadable: Counter,
    /// Records that were skipped because they were rejected by themselves.
    pub skipped: Counter,
}

/// The counters of standard input.
#[derive(Debug, Default)]
pub struct StdinCounters {
    /// Lines that were stored.
    pub lines: Counter,
    /// Bytes that were read.
    pub bytes: Counter,
    /// Lines that could not be stored in time; with `--tee` they were still passed on.
    pub dropped: Counter,
}
