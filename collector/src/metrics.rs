//! Prometheus metrics: what services answered, and our own health, on `/metrics`.
//!
//! 1. [`names`] is the closed list of metrics.
//! 2. `counted` sums the rows of a batch, while a worker has them in memory as Arrow arrays.
//! 3. `meter` adds the sums up when their rows are durable, in a bounded number of series (`family`); `quotas` are gauges
//!    that expire, `groups` tells which errors are new, `memory` brings back what a restart would forget.
//! 4. `health` reads what is counted elsewhere anyway; [`Exporter`] puts all of it together when it is asked for.
//!
//! What always holds: only what is durable is counted; ingest pays for a batch and not for a row, and never waits for
//! a scrape; there are at most `Limits::series`, whatever is sent.

mod counted;
mod export;
mod family;
mod groups;
mod health;
mod memory;
mod meter;
pub mod names;
mod quotas;
mod value;

#[cfg(test)]
mod tests;

pub(crate) use counted::Counted;
pub use export::{Exporter, routes};
pub use health::{Doors, Queries, QueriesOfDoor};
pub(crate) use memory::remember;

use crate::limits::Limits;
use meter::Meter;
use std::sync::{Mutex, MutexGuard, PoisonError};
use taxonomy::{Dialect, Registry};

/// So many batches may wait to be added before a worker adds them.
const WAITING: usize = 8;

/// What services answered, counted since the start.
#[derive(Debug)]
pub struct Metrics {
    /// Durable batches that are still to be added.
    inbox: Mutex<Vec<Counted>>,
    meter: Mutex<Meter>,
}

impl Metrics {
    pub(crate) fn new(registry: &Registry, limits: &Limits) -> Self {
        Self { inbox: Mutex::default(), meter: Mutex::new(Meter::new(registry, limits)) }
    }

    /// Takes what a durable batch brought; it is added later, by somebody who can wait.
    pub(crate) fn hand_in(&self, counted: Counted) {
        self.inbox().push(counted);
    }

    /// Adds what waits, if it is much and nobody else does.
    pub(crate) fn keep_up(&self) {
        if self.inbox().len() < WAITING {
            return;
        }
        // Otherwise a scrape or another worker has it, and will not take long.
        if let Ok(meter) = self.meter.try_lock() {
            drop(self.add_all(meter));
        }
    }

    /// Learns of a service before it speaks.
    pub fn expect(&self, service: &str, dialect: Option<Dialect>) {
        self.lock().meet(service, dialect);
    }

    /// The meter with everything in it that is durable.
    fn current(&self) -> MutexGuard<'_, Meter> {
        self.add_all(self.lock())
    }

    fn add_all<'m>(&self, mut meter: MutexGuard<'m, Meter>) -> MutexGuard<'m, Meter> {
        let waiting = std::mem::take(&mut *self.inbox());
        for counted in &waiting {
            meter.add(counted);
        }
        meter
    }

    fn lock(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn inbox(&self) -> MutexGuard<'_, Vec<Counted>> {
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
