//! Prometheus metrics: what services answered, and our own health, on `/metrics`.
//!
//! 1. [`names`] is the closed list of metrics.
//! 2. `summary` sums the rows of a batch, while a worker has them in memory as Arrow arrays.
//! 3. `registry` adds the sums up when their rows are durable, in a bounded number of series (`family`); `quotas` are gauges
//!    that expire, `groups` tells which errors are new, `memory` brings back what a restart would forget.
//! 4. `health` reads what is summary elsewhere anyway; [`Exporter`] puts all of it together when it is asked for.
//!
//! What always holds: only what is durable is summary; ingest pays for a batch and not for a row, and never waits for
//! a scrape; there are at most `Limits::series`, whatever is sent.

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
mod warmup;

#[cfg(test)]
mod tests;

pub(crate) use batch_summary::BatchSummary;
pub(crate) use captures::{Capture, REPLY_NOT_CAPTURED};
pub use export::{Exporter, routes};
pub use health::{EndpointMetrics, ProtocolQueryStats, QueryStats};
pub(crate) use warmup::start as start_warmup;

use crate::limits::Limits;
use classifier::{Dialect, Registry};
use registry::MetricRegistry;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// So many batches may wait to be added before a worker adds them.
const MAX_QUEUED_BATCHES: usize = 8;

/// What services answered, summary since the start.
#[derive(Debug)]
pub struct Metrics {
    /// Durable batches that are still to be added.
    queue: Mutex<Vec<BatchSummary>>,
    registry: Mutex<MetricRegistry>,
}

impl Metrics {
    pub(crate) fn new(codes: &Registry, limits: &Limits) -> Self {
        Self { queue: Mutex::default(), registry: Mutex::new(MetricRegistry::new(codes, limits)) }
    }

    /// Takes what a durable batch brought; it is added later, by somebody who can wait.
    pub(crate) fn enqueue(&self, summary: BatchSummary) {
        self.queue().push(summary);
    }

    /// Adds what waits, if it is much and nobody else does.
    pub(crate) fn drain_if_behind(&self) {
        if self.queue().len() < MAX_QUEUED_BATCHES {
            return;
        }
        // Otherwise a scrape or another worker has it, and will not take long.
        if let Ok(registry) = self.registry.try_lock() {
            drop(self.drain_queue(registry));
        }
    }

    /// Learns of a service before it speaks.
    pub fn expect_service(&self, service: &str, dialect: Option<Dialect>) {
        self.lock().register_service(service, dialect);
    }

    /// The services that have calls of which nobody saw the reply.
    pub(crate) fn unverified_services(&self) -> Vec<(String, Capture)> {
        let registry = self.current();
        registry.captures().unverified().map(|(service, capture)| (service.to_owned(), capture)).collect()
    }

    /// The registry with everything in it that is durable.
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
