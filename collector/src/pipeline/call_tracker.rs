//! Groups the spans and log records that report the same call, so that one failure counts once.
//!
//! A tool call is reported by its server, its client, libraries inside either of them and log records, in any
//! order and in several requests. A span belongs to the call of the span above it, or of one below it that
//! came earlier, when both name the same tool or one names none. Two spans of the same *layer* (service, side
//! and name) are never one call: a caller that tries again makes another call below the same parent.
//!
//! The first report of a failure is its primary event. A later one is stored as its duplicate, or supersedes it if it
//! is more informative. A report that belongs to no known trace, such as that of a stream that writes replies, is a
//! duplicate of the newest failure of its service with the same message, once. The reports of both sides of a call whose
//! traces are not linked are matched by `twins`. `sides` decides the outcome of a call that its sides see differently.
//!
//! Invariants: memory is bounded, and what is forgotten is counted anew; two failed calls are merged into one failure
//! only if their spans are linked, or cannot be and agree in everything else; state of a batch that could not be stored
//! is removed ([`CallTracker::forget`]).

mod sides;
mod twins;

use self::sides::Sides;
use self::twins::{LinkedCallers, Sightings};
use hashbrown::HashMap;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

pub(super) use self::sides::{CallReport, Correction, Corrections, Counting, Side, TrafficPosition};
pub(super) use self::twins::Sighting;

/// The number of shards; with sixteen, workers rarely contend for one.
const SHARDS: usize = 16;
/// The number of layers of one call that are distinguished.
const MAX_LAYERS: usize = 6;
/// The number of aliases that are followed from a call that was merged into another.
const MAX_ALIASES: usize = 4;
/// The number of spans that each generation of a shard holds.
const SPANS_PER_SHARD: usize = 8_192;
/// The number of reports with kept data in each generation of a shard.
const KEPT_PER_SHARD: usize = 512;

/// The facts that a span states about the call that it is a part of.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanFacts<'a> {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) parent_span_id: Option<[u8; 8]>,
    /// The tool or method that the span names.
    pub(super) operation: Option<&'a str>,
    /// A hash of the service, side and name, which is equal for spans of the same layer.
    pub(super) layer: u64,
    /// The side of the call that the span reports.
    pub(super) side: Side,
}

/// A reference to a call: the key of its trace, which selects the shard, and its own key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CallRef {
    trace: u64,
    call: u64,
}

/// A report of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Report<T> {
    /// The span or log record that reports.
    pub(super) reporter: u64,
    pub(super) event_id: u128,
    /// The score of the report, computed by `reports::score`; a more informative report has a higher one.
    pub(super) score: u8,
    /// The data that a later report may take over.
    pub(super) kept: Option<T>,
}

/// The relation of a report to earlier ones of the same failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is no earlier report.
    First,
    /// The report is no more informative than the event with this id.
    Duplicate(u128),
    /// The report is no more informative than the first of these events. The second turned out to report the same
    /// failure, and has to be taken back.
    DuplicateOfTwo(u128, u128),
    /// The report is more informative than the event with this id.
    Better(u128),
}

/// The state of a span, or of one that others name as their parent.
#[derive(Debug, Clone, Copy)]
struct Node {
    call: u64,
    /// A hash of the operation that it names; zero if it names none.
    operation: u64,
    is_seen: bool,
}

#[derive(Debug, Clone)]
struct Call<T> {
    layers: [u64; MAX_LAYERS],
    sides: Sides,
    report: Option<Report<T>>,
    /// The number of reports by the same reporter that are failures of their own.
    own_reports: u32,
    /// An event that was stored as a failure of its own before it was known to belong to this call.
    taken_for_another: Option<u128>,
    /// The call that this one was merged into; zero if there is none.
    alias: u64,
    /// True if a span of the answering side has no parent, so that the trace does not include the caller.
    is_rooted: bool,
    /// The call of another trace that keeps the reports of this one, which are those of its other side.
    twin: Option<CallRef>,
    /// True if this call keeps the reports of a call of another trace.
    has_twin: bool,
}

impl<T> Call<T> {
    /// Keeps the better one of two first reports of the same failure, and remembers to take the other one back.
    fn keep_better(&mut self, other: Option<Report<T>>) {
        let (best, other) = match (other, self.report.take()) {
            (Some(other), Some(own)) if other.score > own.score => (Some(other), Some(own.event_id)),
            (Some(other), Some(own)) => (Some(own), Some(other.event_id)),
            (other, own) => (other.or(own), None),
        };
        (self.report, self.taken_for_another) = (best, other.or(self.taken_for_another));
    }
}

impl<T> Default for Call<T> {
    fn default() -> Self {
        Self {
            layers: [0; MAX_LAYERS],
            sides: Sides::default(),
            report: None,
            own_reports: 0,
            taken_for_another: None,
            alias: 0,
            is_rooted: false,
            twin: None,
            has_twin: false,
        }
    }
}

/// The recent calls, with the reports of their failures.
pub(super) struct CallTracker<T> {
    window_us: i64,
    shards: [Mutex<Shard<T>>; SHARDS],
    sightings: Mutex<Sightings>,
    linked_callers: RwLock<LinkedCallers>,
}

struct Shard<T> {
    started_at: i64,
    young: Generation<T>,
    old: Generation<T>,
}

/// A map whose keys are hashes already, so a fast hasher is enough.
type Keyed<V> = HashMap<u64, V, foldhash::fast::RandomState>;

struct Generation<T> {
    nodes: Keyed<Node>,
    calls: Keyed<Call<T>>,
    /// The newest failure for each service and message, for reports without a known trace.
    words: Keyed<u128>,
    /// The number of reports with kept data.
    kept: usize,
}

impl<T> Default for Generation<T> {
    fn default() -> Self {
        Self { nodes: Keyed::default(), calls: Keyed::default(), words: Keyed::default(), kept: 0 }
    }
}

impl<T> Generation<T> {
    /// Forgets everything. The memory is kept for the next generation, unless this one hardly used it.
    fn clear(&mut self) {
        if self.nodes.len() < self.nodes.capacity() / 4 {
            *self = Self::default();
            return;
        }
        let Self { nodes, calls, words, kept } = self;
        nodes.clear();
        calls.clear();
        words.clear();
        *kept = 0;
    }
}

impl<T> Default for Shard<T> {
    fn default() -> Self {
        Self { started_at: 0, young: Generation::default(), old: Generation::default() }
    }
}

impl<T: Clone> Shard<T> {
    /// Drops the older generation when the younger one has reached its age or size.
    fn turn(&mut self, window_us: i64, now: i64) {
        if now.saturating_sub(self.started_at) > window_us || self.young.nodes.len() >= SPANS_PER_SHARD {
            self.started_at = now;
            std::mem::swap(&mut self.old, &mut self.young);
            self.young.clear();
        }
    }

    fn node(&self, key: u64) -> Option<Node> {
        self.young.nodes.get(&key).or_else(|| self.old.nodes.get(&key)).copied()
    }

    /// Returns a call, or the one that it was merged into, and moves it to the younger generation.
    fn call(&mut self, key: u64) -> &mut Call<T> {
        let key = self.resolve(key);
        let old = &mut self.old.calls;
        self.young.calls.entry(key).or_insert_with(|| old.remove(&key).unwrap_or_default())
    }

    /// Returns the call that a call was merged into, or the call itself.
    fn resolve(&self, key: u64) -> u64 {
        let mut key = key;
        for _ in 0..MAX_ALIASES {
            let known = self.young.calls.get(&key).or_else(|| self.old.calls.get(&key));
            match known {
                Some(Call { alias, .. }) if *alias != 0 => key = *alias,
                _ => break,
            }
        }
        key
    }

    /// Merges two calls that a span turns out to link, unless they share a layer.
    fn unite(&mut self, below: u64, above: u64) {
        let (below, above) = (self.resolve(below), self.resolve(above));
        let lower = self.call(below).clone();
        let upper = self.call(above);
        let is_shared = |layer: &u64| *layer != 0 && upper.layers.contains(layer);
        if below == above
            || lower.layers.iter().any(is_shared)
            || lower.own_reports > 1
            || upper.own_reports > 1
        {
            return;
        }
        let free = upper.layers.iter_mut().filter(|layer| **layer == 0);
        for (free, layer) in free.zip(lower.layers.iter().filter(|layer| **layer != 0)) {
            *free = *layer;
        }
        upper.sides.unite(&lower.sides);
        upper.is_rooted |= lower.is_rooted;
        upper.has_twin |= lower.has_twin;
        upper.twin = upper.twin.or(lower.twin);
        upper.keep_better(lower.report);
        upper.own_reports = upper.own_reports.max(lower.own_reports);
        self.young.calls.insert(below, Call { alias: above, ..Call::default() });
    }

    /// Adds a layer to a call. Returns false if the call has it already.
    fn add_layer(&mut self, call: u64, layer: u64) -> bool {
        let layers = &mut self.call(call).layers;
        if layers.contains(&layer) {
            return false;
        }
        if let Some(free) = layers.iter_mut().find(|known| **known == 0) {
            *free = layer;
        }
        true
    }

    /// Returns the call of a span: that of its children, that of its parent, or a new one.
    fn place(&mut self, span: u64, parent: Option<u64>, operation: u64, layer: u64) -> u64 {
        let agrees = |node: &Node| node.operation == operation || node.operation == 0 || operation == 0;
        let own = self.node(span);
        if let Some(own) = own.filter(|own| own.is_seen) {
            return own.call;
        }
        let above = parent.and_then(|parent| self.node(parent));
        // A span that names no operation also joins a parent that others have named but that was not seen yet.
        let above = above.filter(|node| node.is_seen || operation == 0);
        let candidates = [own, above].into_iter().flatten().filter(agrees);
        let mut joined = None;
        for candidate in candidates {
            // A span that names no operation only passes the call on, and there may be several of these in one call.
            if joined.is_none() && (operation == 0 || self.add_layer(candidate.call, layer)) {
                joined = Some(candidate);
            }
        }
        let call = joined.map_or(span, |node| node.call);
        if joined.is_none() && operation != 0 {
            self.add_layer(call, layer);
        }
        if let (Some(own), Some(above)) = (own.filter(agrees), above.filter(agrees))
            && joined.is_some()
            && own.call != above.call
        {
            self.unite(own.call, above.call);
        }
        let inherited = joined.map_or(0, |node| node.operation);
        let operation = if operation == 0 { inherited } else { operation };
        self.young.nodes.insert(span, Node { call, operation, is_seen: true });
        if let Some(parent) = parent
            && self.node(parent).is_none()
        {
            self.young.nodes.insert(parent, Node { call, operation, is_seen: false });
        }
        call
    }
}

impl<T: Clone> CallTracker<T> {
    /// Creates a tracker that remembers calls for at least `window`, unless a shard fills up earlier.
    pub(super) fn new(window: Duration) -> Self {
        Self {
            window_us: i64::try_from(window.as_micros()).unwrap_or(i64::MAX),
            shards: std::array::from_fn(|_| Mutex::default()),
            sightings: Mutex::default(),
            linked_callers: RwLock::default(),
        }
    }

    /// Returns the call that a span is a part of, and what turns out to be wrong about traffic that was counted.
    pub(super) fn place(&self, facts: &SpanFacts<'_>, now: i64) -> (CallRef, Corrections) {
        let trace = xxh3_64(&facts.trace_id);
        let key = |span: &[u8; 8]| span_key(trace, span);
        let operation = facts.operation.map_or(0, |operation| xxh3_64(operation.as_bytes()).max(1));
        let mut shard = self.shard(trace);
        shard.turn(self.window_us, now);
        let parent = facts.parent_span_id.as_ref().map(key);
        let key = shard.place(key(&facts.span_id), parent, operation, facts.layer.max(1));
        let call = shard.call(key);
        call.is_rooted |= parent.is_none() && facts.side == Side::Answering;
        (CallRef { trace, call: key }, call.sides.settle())
    }

    /// Returns the call of the span of a log record, or `None` if that span was not seen yet.
    pub(super) fn find(&self, trace_id: &[u8; 16], span_id: &[u8; 8]) -> Option<CallRef> {
        let trace = xxh3_64(trace_id);
        let node = self.shard(trace).node(span_key(trace, span_id))?;
        node.is_seen.then_some(CallRef { trace, call: node.call })
    }

    /// Returns a call for a log record whose span was not seen yet; the span will join it.
    pub(super) fn expect(&self, trace_id: &[u8; 16], span_id: &[u8; 8], now: i64) -> CallRef {
        let trace = xxh3_64(trace_id);
        let key = span_key(trace, span_id);
        let mut shard = self.shard(trace);
        shard.turn(self.window_us, now);
        let call = shard.node(key).map_or(key, |node| node.call);
        shard.young.nodes.entry(key).or_insert(Node { call, operation: 0, is_seen: false });
        CallRef { trace, call }
    }

    /// Decides how a span counts in traffic, given what is known about its call.
    pub(super) fn count(&self, call: CallRef, span: u64, counted: &CallReport) -> Counting {
        let (counting, linked_caller) = {
            let mut shard = self.shard(call.trace);
            let sides = &mut shard.call(call.call).sides;
            (sides.count(span, counted), sides.linked_caller())
        };
        if let Some(caller) = linked_caller {
            self.remember_linked(caller);
        }
        counting
    }

    /// Judges a report of a failure, and keeps it if it is the best so far.
    pub(super) fn report(&self, call: CallRef, mut report: Report<T>) -> Verdict {
        let call = self.follow(call);
        let mut shard = self.shard(call.trace);
        shard.young.kept += usize::from(report.kept.is_some());
        if shard.young.kept > KEPT_PER_SHARD {
            report.kept = None;
        }
        let known = shard.call(call.call);
        let Some(earlier) = &known.report else {
            (known.report, known.own_reports) = (Some(report), 1);
            return Verdict::First;
        };
        if earlier.reporter == report.reporter {
            // A batch: each failure of one reporter counts, unless its report superseded that of another reporter.
            if known.own_reports == 0 {
                return Verdict::Duplicate(earlier.event_id);
            }
            known.own_reports += 1;
            return Verdict::First;
        }
        let earlier_id = earlier.event_id;
        // A report can replace one event only, so one that takes another back is never shown itself.
        if let Some(other) = known.taken_for_another.take() {
            return Verdict::DuplicateOfTwo(earlier_id, other);
        }
        if known.own_reports > 1 || report.score <= earlier.score {
            return Verdict::Duplicate(earlier_id);
        }
        known.own_reports = 0;
        known.report = Some(report);
        Verdict::Better(earlier_id)
    }

    /// Returns the best report of a call so far.
    pub(super) fn best_report(&self, call: CallRef) -> Option<Report<T>> {
        let call = self.follow(call);
        self.shard(call.trace).call(call.call).report.clone()
    }

    /// Remembers the message of a failure, for reports that belong to no known trace.
    pub(super) fn remember_words(&self, service: Option<&str>, message: &str, event_id: u128, now: i64) {
        let words = words_key(service, message);
        let mut shard = self.shard(words);
        shard.turn(self.window_us, now);
        if shard.young.words.len() < SPANS_PER_SHARD {
            shard.young.words.insert(words, event_id);
        }
    }

    /// Returns and removes the failure with the same service and message, so that it has one such duplicate at most.
    pub(super) fn take_words(&self, service: Option<&str>, message: &str) -> Option<u128> {
        let words = words_key(service, message);
        let mut shard = self.shard(words);
        let young = shard.young.words.remove(&words);
        young.or_else(|| shard.old.words.remove(&words))
    }

    /// Forgets calls whose batch could not be stored.
    pub(super) fn forget(&self, calls: &[CallRef]) {
        for CallRef { trace, call } in calls {
            let mut shard = self.shard(*trace);
            shard.young.calls.remove(call);
            shard.old.calls.remove(call);
        }
    }

    fn shard(&self, key: u64) -> std::sync::MutexGuard<'_, Shard<T>> {
        let index = usize::try_from(key % SHARDS as u64).unwrap_or(0);
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the key of a span in its trace; it is never zero.
pub(super) fn span_key(trace: u64, span_id: &[u8; 8]) -> u64 {
    xxh3_64_with_seed(span_id, trace).max(1)
}

fn words_key(service: Option<&str>, message: &str) -> u64 {
    let service = service.map_or(0, |service| xxh3_64(service.as_bytes()));
    xxh3_64_with_seed(message.as_bytes(), service)
}

#[cfg(test)]
mod tests;
