//! Prometheus metrics of services, and of the server itself, on `/metrics`.
//!
//! 1. [`names`] declares the metrics of the collector; other crates declare theirs in the same way.
//! 2. `batch_summary` sums the rows of a batch while a worker has them in memory as Arrow arrays.
//! 3. `registry` adds the summaries when their rows are durable, in a bounded number of series (`family`).
//!    `quota_gauges` holds gauges that expire, `group_tracker` finds new groups of errors, and `warmup` restores what
//!    a restart would forget.
//! 4. `health` reads what the collector counts elsewhere anyway. [`ServerMetrics`] combines all metrics at each scrape,
//!    and `status_json` writes the same values for `/api/v1/status`.
//!
//! Invariants: only durable rows are counted; ingest does work per batch and not per row, and never waits for a
//! scrape; there are at most `Limits::series` series, whatever is sent.

mod batch_columns;
mod batch_summary;
mod captures;
mod export;
mod family;
mod group_tracker;
mod health;
pub mod names;
mod proto_values;
mod quota_gauges;
mod registry;
mod status_json;
mod warmup;

#[cfg(test)]
mod tests;

pub(crate) use batch_summary::BatchSummary;
pub(crate) use captures::{Capture, REPLY_NOT_CAPTURED};
pub use export::{ServerMetrics, routes};
pub(crate) use warmup::start as start_warmup;

use crate::limits::Limits;
use classifier::{Dialect, Registry};
use registry::MetricRegistry;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of batches that may wait in the queue before a worker adds them.
const MAX_QUEUED_BATCHES: usize = 8;

/// The metrics of services since the start of the server.
#[derive(Debug)]
pub struct Metrics {
    /// Summaries of durable batches that are not added yet.
    queue: Mutex<Vec<BatchSummary>>,
    registry: Mutex<MetricRegistry>,
}

impl Metrics {
    pub(crate) fn new(codes: &Registry, limits: &Limits) -> Self {
        Self { queue: Mutex::default(), registry: Mutex::new(MetricRegistry::new(codes, limits)) }
    }

    /// Queues the summary of a durable batch; it is added later, outside the acknowledgement.
    pub(crate) fn enqueue(&self, summary: BatchSummary) {
        self.queue().push(summary);
    }

    /// Adds the queued batches if there are many and no other thread is adding them.
    pub(crate) fn drain_if_behind(&self) {
        if self.queue().len() < MAX_QUEUED_BATCHES {
            return;
        }
        // If the lock is taken, a scrape or another worker adds them soon.
        if let Ok(registry) = self.registry.try_lock() {
            drop(self.drain_queue(registry));
        }
    }

    /// Registers a service before it sends anything.
    pub fn expect_service(&self, service: &str, dialect: Option<Dialect>) {
        self.lock().register_service(service, dialect);
    }

    /// Returns the services that have unverified calls: those of which the content of the reply was not captured.
    pub(crate) fn unverified_services(&self) -> Vec<(String, Capture)> {
        let registry = self.current();
        registry.captures().unverified().map(|(service, capture)| (service.to_owned(), capture)).collect()
    }

    /// Returns the registry after all durable batches have been added.
    fn current(&self) -> MutexGuard<'_, MetricRegistry> {
        self.drain_queue(self.lock())
    }

    fn drain_queue<'m>(
        &self,
        mut registry: MutexGuard<'m, MetricRegistry>,
    ) -> MutexGuard<'m, MetricRegistry> {
        let batches = std::mem::take(&mut *self.queue());
        for summary in &batches {
            registry.add(summary);
        }
        registry
    }

    fn lock(&self) -> MutexGuard<'_, MetricRegistry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self) -> MutexGuard<'_, Vec<BatchSummary>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
