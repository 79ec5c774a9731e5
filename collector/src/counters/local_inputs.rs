//! What became of files and of standard input, beside what every source counts.

use super::{Counter, Gauge};

/// Files that are read.
#[derive(Debug, Default)]
pub struct FileCounters {
    /// Open now.
    pub open: Gauge,
    /// Found, and not read yet: for want of room, or because they may be a copy of what is being read, or still written.
    pub waiting: Gauge,
    /// Bytes that open files hold and are not stored yet; of archives nobody knows how many.
    pub lag: Gauge,
    /// Lines that were read.
    pub lines: Counter,
    /// Their bytes, unpacked.
    pub bytes: Counter,
    /// Files that got another name.
    pub rotations: Counter,
    /// Files that were emptied, or replaced in place.
    pub truncations: Counter,
    /// Files that turned out to hold what had been read from another.
    pub copies: Counter,
    /// Archives that were read to their end.
    pub archives: Counter,
    /// Times that a file could not be read.
    pub unreadable: Counter,
    /// Records that were left out because they alone were refused.
    pub skipped: Counter,
}

impl FileCounters {
    /// All of them, with their names.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 11] {
        [
            ("open", self.open.get()),
            ("waiting", self.waiting.get()),
            ("lag", self.lag.get()),
            ("lines", self.lines.get()),
            ("bytes", self.bytes.get()),
            ("rotations", self.rotations.get()),
            ("truncations", self.truncations.get()),
            ("copies", self.copies.get()),
            ("archives", self.archives.get()),
            ("unreadable", self.unreadable.get()),
            ("skipped", self.skipped.get()),
        ]
    }
}

/// Standard input.
#[derive(Debug, Default)]
pub struct StdinCounters {
    /// Lines that were stored.
    pub lines: Counter,
    /// Bytes that came.
    pub bytes: Counter,
    /// Lines that were passed on but not stored, for want of room.
    pub dropped: Counter,
}

impl StdinCounters {
    /// All of them, with their names.
    #[must_use]
    pub fn named(&self) -> [(&'static str, u64); 3] {
        [("lines", self.lines.get()), ("bytes", self.bytes.get()), ("dropped", self.dropped.get())]
    }
}
