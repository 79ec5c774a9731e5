//! Acknowledged data is kept, whatever happens to the process or to its disk.
//!
//! The real binary under load, killed at random and at chosen system calls, on disks that fail and disks that are
//! full. Senders keep a [`ledger`](ledger::Ledger) of what they were told; the log is read back and compared with it.
//!
//! Needs strace, and root for a small tmpfs: a test that lacks one says so and fails.

pub(crate) mod client;
mod damage;
pub(crate) mod disk_full;
mod injected;
pub(crate) mod kill;
pub(crate) mod ledger;
pub(crate) mod load;
mod lost_directory;
mod stop;
pub(crate) mod strace;
