//! Senders for the benchmarks of ingest: bodies, connections, and the server that receives them. Each benchmark uses a
//! part of it.
#![allow(dead_code)]

pub(crate) mod bodies;
pub(crate) mod connection;
pub(crate) mod load;
pub(crate) mod process;
pub(crate) mod server;
mod spans;

use anyhow::ensure;
use std::time::{Duration, Instant};

/// Sleeps briefly, or fails if a wait has exceeded its limit.
fn waited(since: Instant, limit: Duration, what: &str) -> anyhow::Result<()> {
    ensure!(since.elapsed() < limit, "{what} takes longer than {limit:?}");
    std::thread::sleep(Duration::from_millis(1));
    Ok(())
}
