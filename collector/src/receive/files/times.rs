//! How long is waited for what, while files are read.

use std::time::Duration;

/// Pauses and patience; tests choose shorter ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Between two looks at the files that are open.
    pub(super) poll: Duration,
    /// Between two looks at what the patterns match.
    pub(super) look: Duration,
    /// After this, half a record is not waited for, and a last line that is whole JSON needs no newline.
    pub(super) quiet: Duration,
    /// A file that was renamed or deleted is read until nobody has written to it for so long.
    pub(super) linger: Duration,
    /// An archive is read when it has not changed for so long: it may still be written.
    pub(super) settle: Duration,
    /// A file that was read and has not changed for so long is closed.
    pub(super) rest: Duration,
    /// A file that cannot be read is tried again.
    pub(super) retry: Duration,
    /// Between two writes of `files.json`.
    pub(super) save: Duration,
}

impl Default for Times {
    fn default() -> Self {
        Self {
            poll: Duration::from_millis(250),
            look: Duration::from_secs(1),
            quiet: Duration::from_secs(5),
            linger: Duration::from_secs(10),
            settle: Duration::from_secs(3),
            rest: Duration::from_secs(10 * 60),
            retry: Duration::from_secs(30),
            save: Duration::from_secs(60),
        }
    }
}
