//! Poll intervals and timeouts of the file tailer.

use std::time::Duration;

/// The poll intervals and timeouts of the tailer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// The pause between two checks of the open files.
    pub(super) poll_interval: Duration,
    /// The pause between two searches for files that match the patterns.
    pub(super) discovery_interval: Duration,
    /// Once a file has not changed for this long, the tailer no longer waits for an incomplete record to be completed,
    /// and a last line that is complete JSON needs no newline.
    pub(super) quiet_after: Duration,
    /// A file that was renamed or deleted is read until nobody has written to it for this long.
    pub(super) rotated_linger: Duration,
    /// An archive is read once it has not changed for this long, because it may still be written.
    pub(super) archive_settle: Duration,
    /// A file that was read completely is closed once it has not changed for this long.
    pub(super) close_after: Duration,
    /// The pause before a file that cannot be read is tried again.
    pub(super) retry_interval: Duration,
    /// The pause between two writes of `files.json`.
    pub(super) save_interval: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            poll_interval: Duration::from_millis(250),
            discovery_interval: Duration::from_secs(1),
            quiet_after: Duration::from_secs(5),
            rotated_linger: Duration::from_secs(10),
            archive_settle: Duration::from_secs(3),
            close_after: Duration::from_secs(10 * 60),
            retry_interval: Duration::from_secs(30),
            save_interval: Duration::from_secs(60),
        }
    }
}
