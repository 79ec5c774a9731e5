//! The memory pool of one query, which covers the operators that account for their memory.

use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The memory that the operators of one query may reserve. Memory that no operator accounts for is bounded by the memory
/// limit of the worker process.
#[derive(Debug)]
pub(super) struct QueryMemory {
    limit: usize,
    used: AtomicUsize,
}

impl QueryMemory {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, used: AtomicUsize::new(0) }
    }
}

impl fmt::Display for QueryMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.used.load(Ordering::Relaxed), self.limit)
    }
}

impl MemoryPool for QueryMemory {
    fn name(&self) -> &str {
        "one query"
    }

    fn register(&self, _: &MemoryConsumer) {}

    fn unregister(&self, _: &MemoryConsumer) {}

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        self.used.fetch_add(additional, Ordering::Relaxed);
    }

    fn shrink(&self, _: &MemoryReservation, shrink: usize) {
        self.used.fetch_sub(shrink, Ordering::Relaxed);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let fits = |used: usize| used.checked_add(additional).filter(|used| *used <= self.limit);
        match self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            Ok(_) => Ok(()),
            Err(used) => Err(resources_datafusion_err!(
                "{} asked for {additional} more bytes, and {used} of {} bytes are in use",
                reservation.consumer().name(),
                self.limit
            )),
        }
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}
