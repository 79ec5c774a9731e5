//! Tests that acknowledged data is kept, whatever happens to the process or to its disk.
//!
//! The real binary under load is killed at random and at chosen system calls, and runs on disks that fail or are full.
//! Senders record the responses in a [`ledger`](ledger::Ledger); the stored data is read back and compared with it.
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
