//! Memory of one query, out of that of all.

use datafusion::common::{Result, resources_datafusion_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What one query may take; what it takes is also taken from what all may.
#[derive(Debug)]
pub(super) struct OneQuery {
    all: Arc<dyn MemoryPool>,
    limit: usize,
    used: AtomicUsize,
}

impl OneQuery {
    pub(super) fn new(all: Arc<dyn MemoryPool>, limit: usize) -> Self {
        Self { all, limit, used: AtomicUsize::new(0) }
    }
}

impl fmt::Display for OneQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} bytes", self.used.load(Ordering::Relaxed), self.limit)
    }
}

impl MemoryPool for OneQuery {
    fn name(&self) -> &str {
        "one query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.all.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.all.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.used.fetch_add(additional, Ordering::Relaxed);
        self.all.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.used.fetch_sub(shrink, Ordering::Relaxed);
        self.all.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let fits = |used: usize| used.checked_add(additional).filter(|used| *used <= self.limit);
        if let Err(used) = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits) {
            return Err(resources_datafusion_err!(
                "{} bytes more for {} would pass {} bytes; {used} are in use",
                additional,
                reservation.consumer().name(),
                self.limit
            ));
        }
        self.all.try_grow(reservation, additional).inspect_err(|_| {
            self.used.fetch_sub(additional, Ordering::Relaxed);
        })
    }

    fn reserved(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.limit)
    }
}
