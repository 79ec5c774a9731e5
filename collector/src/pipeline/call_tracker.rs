//! Groups the spans and log records that report the same call, so that one failure counts once.
//!
//! A tool call is reported by its server, its client, libraries inside either of them and log records, in any
//! order and in several requests. A span belongs to the call of the span above it, or of one below it that
//! came earlier, when both name the same tool or one names none. Two spans of the same *layer* (service, side
//! and name) are never one call: a caller that tries again makes another call below the same parent.
//!
//! The first report of a failure is its primary event. A later one is stored as its duplicate, or supersedes it if it
//! is more informative. A report that belongs to no known trace, such as that of a stream that writes replies, is a
//! duplicate of the newest failure of its service with the same message, once.
//!
//! Invariants: memory is bounded, and what is forgotten is counted anew; two failed calls are merged into one failure
//! only if their spans are linked; state of a batch that could not be stored is removed ([`CallTracker::forget`]).

use hashbrown::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

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
pub(super) struct SpanFacts {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) parent_span_id: Option<[u8; 8]>,
    /// A hash of the tool or method that the span names, from [`operation_key`]; zero if it names none.
    pub(super) operation: u64,
    /// A hash of the service, side and name, which is equal for spans of the same layer.
    pub(super) layer: u64,
}

impl SpanFacts {
    /// Returns the key of the span.
    pub(super) fn span_key(&self) -> u64 {
        span_key(xxh3_64(&self.trace_id), &self.span_id)
    }
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
///
/// Most calls are made of one span and do not fail, so the node of the span that founds a call holds all that is known
/// about it, until another span joins it or a failure is reported: only then it gets a [`Call`] of its own.
#[derive(Debug, Clone, Copy, Default)]
struct Node {
    call: u64,
    /// A hash of the operation that it names; zero if it names none.
    operation: u64,
    /// The layer of the span, if it founded its call; otherwise zero.
    layer: u64,
    is_seen: bool,
    /// For each side, whether the span counted the call that it founded.
    has_counted: [bool; 2],
}

#[derive(Debug, Clone)]
struct Call<T> {
    layers: [u64; MAX_LAYERS],
    /// The spans that counted the call: on the answering side, and on the calling side.
    counted_by: [u64; 2],
    report: Option<Report<T>>,
    /// The number of reports by the same reporter that are failures of their own.
    own_reports: u32,
    /// An event that was stored as a failure of its own before it was known to belong to this call.
    taken_for_another: Option<u128>,
    /// The call that this one was merged into; zero if there is none.
    alias: u64,
}

impl<T> Default for Call<T> {
    fn default() -> Self {
        Self {
            layers: [0; MAX_LAYERS],
            counted_by: [0; 2],
            report: None,
            own_reports: 0,
            taken_for_another: None,
            alias: 0,
        }
    }
}

impl<T> Call<T> {
    /// Returns the state of a call of which only the span that founded it is known.
    fn of_founder(span: u64, node: &Node) -> Self {
        let mut call = Self::default();
        call.layers[0] = node.layer;
        call.counted_by = node.has_counted.map(|has_counted| if has_counted { span } else { 0 });
        call
    }
}

/// The recent calls, with the reports of their failures.
pub(super) struct CallTracker<T> {
    window_us: i64,
    shards: [Mutex<Shard<T>>; SHARDS],
}

/// A map whose keys are hashes already, so a fast hasher is enough.
type Keyed<V> = HashMap<u64, V, foldhash::fast::RandomState>;

struct Shard<T> {
    started_at: i64,
    young: Known<T>,
    old: Known<T>,
}

struct Known<T> {
    nodes: Keyed<Node>,
    /// The calls of which more is known than the node of their first span holds.
    calls: Keyed<Call<T>>,
    /// The newest failure for each service and message, for reports without a known trace.
    words: Keyed<u128>,
    /// The number of reports with kept data.
    kept: usize,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { nodes: Keyed::default(), calls: Keyed::default(), words: Keyed::default(), kept: 0 }
    }
}

impl<T> Known<T> {
    /// Forgets everything. The memory is kept for the next generation, unless this one hardly used it.
    fn clear(&mut self) {
        if self.nodes.len() < self.nodes.capacity() / 4 {
            *self = Self::default();
            return;
        }
        let Self { nodes, calls, words, kept } = self;
        (nodes.clear(), calls.clear(), words.clear());
        *kept = 0;
    }
}

impl<T> Default for Shard<T> {
    fn default() -> Self {
        Self { started_at: 0, young: Known::default(), old: Known::default() }
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
        let Self { young, old, .. } = self;
        young.calls.entry(key).or_insert_with(|| {
            let founder = || young.nodes.get(&key).or_else(|| old.nodes.get(&key));
            let known = old.calls.remove(&key);
            known.unwrap_or_else(|| founder().map(|node| Call::of_founder(key, node)).unwrap_or_default())
        })
    }

    /// Reports whether more is known about a call than the node of its first span holds.
    fn has_call(&self, call: u64) -> bool {
        self.young.calls.contains_key(&call) || self.old.calls.contains_key(&call)
    }

    /// Returns the node that holds all that is known about a call, if nothing more is known.
    fn founder(&mut self, call: u64) -> Option<&mut Node> {
        if self.has_call(call) {
            return None;
        }
        let Self { young, old, .. } = self;
        let node = match young.nodes.get_mut(&call) {
            Some(node) => node,
            None => old.nodes.get_mut(&call)?,
        };
        (node.is_seen && node.call == call).then_some(node)
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
        for (mine, theirs) in upper.counted_by.iter_mut().zip(lower.counted_by) {
            *mine = if *mine == 0 { theirs } else { *mine };
        }
        let (best, other) = match (lower.report, upper.report.take()) {
            (Some(lower), Some(upper)) if lower.score > upper.score => (Some(lower), Some(upper.event_id)),
            (Some(lower), Some(upper)) => (Some(upper), Some(lower.event_id)),
            (lower, upper) => (lower.or(upper), None),
        };
        (upper.report, upper.taken_for_another) = (best, other.or(upper.taken_for_another));
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

    /// Reports whether a span counts a call: it is the first span on its side to do so, or has counted it before.
    fn counts(&mut self, call: u64, span: u64, is_caller: bool) -> bool {
        let side = usize::from(is_caller);
        if call == span
            && let Some(founder) = self.founder(span)
        {
            founder.has_counted[side] = true;
            return true;
        }
        let counted_by = &mut self.call(call).counted_by[side];
        if *counted_by == 0 {
            *counted_by = span;
        }
        *counted_by == span
    }

    /// Returns the call of a span: that of its children, that of its parent, or a new one.
    fn place(&mut self, span: u64, parent: Option<u64>, operation: u64, layer: u64) -> u64 {
        let agrees = |node: &Node| node.operation == operation || node.operation == 0 || operation == 0;
        let own = self.node(span);
        if let Some(own) = own.filter(|own| own.is_seen) {
            return own.call;
        }
        let above = parent.and_then(|parent| self.node(parent));
        let is_parent_unknown = above.is_none();
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
        let mut founding_layer = if joined.is_none() && operation != 0 { layer } else { 0 };
        if founding_layer != 0 && self.has_call(call) {
            self.add_layer(call, layer);
            founding_layer = 0;
        }
        if let (Some(own), Some(above)) = (own.filter(agrees), above.filter(agrees))
            && joined.is_some()
            && own.call != above.call
        {
            self.unite(own.call, above.call);
        }
        let inherited = joined.map_or(0, |node| node.operation);
        let operation = if operation == 0 { inherited } else { operation };
        let node = Node { call, operation, layer: founding_layer, is_seen: true, has_counted: [false; 2] };
        self.young.nodes.insert(span, node);
        if let Some(parent) = parent
            && is_parent_unknown
            && parent != span
        {
            self.young.nodes.insert(parent, Node { call, operation, ..Node::default() });
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
        }
    }

    /// Returns the call that a span is a part of.
    pub(super) fn place(&self, facts: &SpanFacts, now: i64) -> CallRef {
        self.place_in_shard(facts, now, |_, call| call)
    }

    /// Returns the call that a span is a part of, and whether the span counts it, as [`Self::counts`] does.
    pub(super) fn place_and_count(&self, facts: &SpanFacts, is_caller: bool, now: i64) -> (CallRef, bool) {
        self.place_in_shard(facts, now, |shard, call| {
            let span = span_key(call.trace, &facts.span_id);
            (call, shard.counts(call.call, span, is_caller))
        })
    }

    fn place_in_shard<R>(
        &self,
        facts: &SpanFacts,
        now: i64,
        then: impl FnOnce(&mut Shard<T>, CallRef) -> R,
    ) -> R {
        let trace = xxh3_64(&facts.trace_id);
        let key = |span: &[u8; 8]| span_key(trace, span);
        let mut shard = self.shard(trace);
        shard.turn(self.window_us, now);
        let parent = facts.parent_span_id.as_ref().map(key);
        let call = shard.place(key(&facts.span_id), parent, facts.operation, facts.layer.max(1));
        then(&mut shard, CallRef { trace, call })
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
        shard.young.nodes.entry(key).or_insert(Node { call, ..Node::default() });
        CallRef { trace, call }
    }

    /// Reports whether a span counts its call: it is the first span on its side to do so, or has counted it before.
    pub(super) fn counts(&self, call: CallRef, span: u64, is_caller: bool) -> bool {
        self.shard(call.trace).counts(call.call, span, is_caller)
    }

    /// Judges a report of a failure, and keeps it if it is the best so far.
    pub(super) fn report(&self, call: CallRef, mut report: Report<T>) -> Verdict {
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
        if known.own_reports > 1 || report.score <= earlier.score {
            return match known.taken_for_another.take() {
                Some(other) => Verdict::DuplicateOfTwo(earlier_id, other),
                None => Verdict::Duplicate(earlier_id),
            };
        }
        known.own_reports = 0;
        known.report = Some(report);
        Verdict::Better(earlier_id)
    }

    /// Returns the best report of a call so far.
    pub(super) fn best_report(&self, call: CallRef) -> Option<Report<T>> {
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
            if let Some(founder) = shard.founder(*call) {
                (founder.layer, founder.has_counted) = (0, [false; 2]);
            }
        }
    }

    fn shard(&self, key: u64) -> std::sync::MutexGuard<'_, Shard<T>> {
        let index = usize::try_from(key % SHARDS as u64).unwrap_or(0);
        self.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the key of the operation that a span names, or zero if it names none.
pub(super) fn operation_key(operation: Option<&str>) -> u64 {
    operation.map_or(0, |operation| xxh3_64(operation.as_bytes()).max(1))
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
