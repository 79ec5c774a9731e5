//! Matches the two sides of a call whose traces are not linked.
//!
//! A client that was instrumented after its modules were imported does not pass its trace on, so its report and that of
//! the server have nothing in common but what they say. They are one failure if the server's trace has no caller and the
//! client's trace no server, if they name the same tool and message, and if the server worked while the client waited.
//! Each report is matched once, so that as many failures remain as one side reports.
//!
//! Invariant: a client that is known to pass its traces on is never matched, since its server is in its own trace.

use super::{Call, CallRef, CallTracker, SPANS_PER_SHARD, Side};
use hashbrown::{HashMap, HashSet};
use std::sync::PoisonError;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The difference of clocks, in nanoseconds, that the times of a client and a server may have.
const CLOCK_SKEW_NS: u64 = 50_000_000;
/// The number of unmatched reports with the same tool and message that are kept.
const MAX_ALIKE: usize = 64;
/// The number of services that are known to pass their traces on. Beyond it, nothing is matched.
const MAX_LINKED: usize = 4_096;

/// A failed call as a span reports it.
#[derive(Debug, Clone, Copy)]
pub(in crate::pipeline) struct Sighting {
    pub(in crate::pipeline) call: CallRef,
    pub(in crate::pipeline) side: Side,
    /// A hash of the service that reports it.
    pub(in crate::pipeline) service: u64,
    pub(in crate::pipeline) start_ns: u64,
    pub(in crate::pipeline) end_ns: u64,
}

impl Sighting {
    /// Reports whether two reports can be of the two sides of one call.
    fn fits(&self, other: &Self) -> bool {
        let (client, server) = match (self.side, other.side) {
            (Side::Calling, Side::Answering) => (self, other),
            (Side::Answering, Side::Calling) => (other, self),
            _ => return false,
        };
        let starts = client.start_ns <= server.start_ns.saturating_add(CLOCK_SKEW_NS);
        let ends = server.end_ns <= client.end_ns.saturating_add(CLOCK_SKEW_NS);
        let has_times = server.start_ns > 0 && client.start_ns > 0;
        self.call.trace != other.call.trace && has_times && starts && ends
    }
}

/// The failed calls that were not matched yet, by a hash of their tool and message.
#[derive(Debug, Default)]
pub(super) struct Sightings {
    started_at: i64,
    young: HashMap<u64, Vec<Sighting>>,
    old: HashMap<u64, Vec<Sighting>>,
}

/// The services that pass their traces on, by a hash.
pub(super) type LinkedCallers = HashSet<u64>;

impl Sightings {
    fn turn(&mut self, window_us: i64, now: i64) {
        if now.saturating_sub(self.started_at) > window_us || self.young.len() >= SPANS_PER_SHARD {
            self.started_at = now;
            self.old = std::mem::take(&mut self.young);
        }
    }

    /// Removes a sighting from those with the same tool and message.
    fn remove(&mut self, key: u64, call: CallRef) {
        for alike in [&mut self.young, &mut self.old].into_iter().filter_map(|known| known.get_mut(&key)) {
            alike.retain(|known| known.call != call);
        }
    }

    fn alike(&self, key: u64) -> impl Iterator<Item = &Sighting> {
        [&self.young, &self.old].into_iter().filter_map(move |known| known.get(&key)).flatten()
    }

    fn add(&mut self, key: u64, sighting: Sighting) {
        let is_known = self.alike(key).any(|known| known.call == sighting.call);
        let alike = self.young.entry(key).or_default();
        if !is_known && alike.len() < MAX_ALIKE {
            alike.push(sighting);
        }
    }
}

impl<T: Clone> CallTracker<T> {
    /// Matches the report of a failed call with that of its other side, if that came before and is in another trace.
    /// Returns the call that keeps the reports of both.
    pub(in crate::pipeline) fn match_twin(
        &self,
        sighting: Sighting,
        operation: &str,
        message: &str,
        now: i64,
    ) -> Option<CallRef> {
        let key = xxh3_64_with_seed(message.as_bytes(), xxh3_64(operation.as_bytes()));
        let mut sightings = self.sightings.lock().unwrap_or_else(PoisonError::into_inner);
        sightings.turn(self.window_us, now);
        let fitting = sightings.alike(key).filter(|known| known.fits(&sighting));
        let twin = fitting.copied().find(|known| self.is_alone(known) && self.is_alone(&sighting));
        let Some(twin) = twin else {
            sightings.add(key, sighting);
            return None;
        };
        sightings.remove(key, twin.call);
        sightings.remove(key, sighting.call);
        drop(sightings);
        self.merge_reports(sighting.call, twin.call);
        Some(twin.call)
    }

    /// Reports whether the other side of a call is certainly not in its trace.
    fn is_alone(&self, sighting: &Sighting) -> bool {
        let passes_traces_on = || {
            let linked = self.linked_callers.read().unwrap_or_else(PoisonError::into_inner);
            linked.len() >= MAX_LINKED || linked.contains(&sighting.service)
        };
        let mut shard = self.shard(sighting.call.trace);
        let Call { is_rooted, sides, twin, has_twin, own_reports, .. } = shard.call(sighting.call.call);
        let is_alone = match sighting.side {
            Side::Answering => *is_rooted,
            Side::Calling => !sides.is_answered() && !passes_traces_on(),
        };
        is_alone && twin.is_none() && !*has_twin && *own_reports <= 1
    }

    /// Lets the reports of a call be kept by its twin.
    fn merge_reports(&self, call: CallRef, twin: CallRef) {
        let report = {
            let mut shard = self.shard(call.trace);
            let own = shard.call(call.call);
            own.twin = Some(twin);
            own.report.take()
        };
        let mut shard = self.shard(twin.trace);
        let kept = shard.call(twin.call);
        kept.has_twin = true;
        kept.keep_better(report);
    }

    /// Returns the call that keeps the reports of a call.
    pub(super) fn follow(&self, call: CallRef) -> CallRef {
        self.shard(call.trace).call(call.call).twin.unwrap_or(call)
    }

    /// Remembers that a service passes its traces on.
    pub(super) fn remember_linked(&self, service: u64) {
        let is_known = {
            let linked = self.linked_callers.read().unwrap_or_else(PoisonError::into_inner);
            linked.len() >= MAX_LINKED || linked.contains(&service)
        };
        if !is_known {
            self.linked_callers.write().unwrap_or_else(PoisonError::into_inner).insert(service);
        }
    }
}
