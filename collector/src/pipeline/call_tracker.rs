//! Which spans and log records tell of the same call, so that one failure is one failure.
//!
//! A tool call is reported by its server, its client, libraries inside either of them and log records, in any
//! order and in several requests. A span belongs to the call of the span above it, or of one below it that
//! came earlier, when both name the same tool or one names none. Two spans of the same *layer* (service, side
//! and name) are never one call: a caller that tries again makes another call below the same parent.
//!
//! The first report of a failure stands for it. A later one is stored as its duplicate, or supersedes it when
//! it tells more. A report that belongs to no trace that we know, such as that of a stream that writes
//! replies, repeats the newest failure of its service with the same words, once.
//!
//! Invariants: memory is bounded, and what is forgotten is counted anew; two failed calls are never one
//! failure unless their spans hang together; what could not be stored is forgotten ([`CallTracker::forget`]).

use hashbrown::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Workers rarely meet in one of sixteen.
const SHARDS: usize = 16;
/// Layers of one call that are told apart.
const MAX_LAYERS: usize = 6;
/// Calls that turned out to be another are followed so far.
const MAX_ALIASES: usize = 4;
/// Spans that each generation of a shard holds.
const SPANS_PER_SHARD: usize = 8_192;
/// Reports of which something is kept, in each generation of a shard.
const KEPT_PER_SHARD: usize = 512;

/// What a span says about the call that it is a part of.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanFacts<'a> {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) parent_span_id: Option<[u8; 8]>,
    /// The tool or method that it names.
    pub(super) operation: Option<&'a str>,
    /// What its like have in common: service, side and name.
    pub(super) layer: u64,
}

/// A call, by the trace it is found under.
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
    /// How much it tells.
    pub(super) score: u8,
    /// What a later report may want to take over.
    pub(super) kept: Option<T>,
}

/// How a report relates to an earlier one of the same failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// There is none.
    First,
    /// It tells no more than that one.
    Duplicate(u128),
    /// It tells no more than the first of these; the second turned out to tell of the same failure, and is
    /// to be taken back.
    DuplicateOfTwo(u128, u128),
    /// It tells more than that one.
    Better(u128),
}

/// What is known of a span, or of one that others name as their parent.
#[derive(Debug, Clone, Copy)]
struct Node {
    call: u64,
    /// A hash of what it names; zero when it names nothing.
    operation: u64,
    is_seen: bool,
}

#[derive(Debug, Clone)]
struct Call<T> {
    layers: [u64; MAX_LAYERS],
    /// The spans that counted the call, on the asking and on the answering side.
    counted_by: [u64; 2],
    report: Option<Report<T>>,
    /// Reports by the same reporter that stand for failures of their own.
    own_reports: u32,
    /// A failure of this call that was stored before it was known to be one.
    taken_for_another: Option<u128>,
    /// The call that this one turned out to be; zero when it is its own.
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

/// The calls of the last while.
pub(super) struct CallTracker<T> {
    window_us: i64,
    shards: [Mutex<Shard<T>>; SHARDS],
}

struct Shard<T> {
    started_at: i64,
    young: Known<T>,
    old: Known<T>,
}

struct Known<T> {
    nodes: HashMap<u64, Node>,
    calls: HashMap<u64, Call<T>>,
    /// The newest failures with these words, which a report without a trace may repeat.
    words: HashMap<u64, u128>,
    /// Reports of which something is kept.
    kept: usize,
}

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self { nodes: HashMap::new(), calls: HashMap::new(), words: HashMap::new(), kept: 0 }
    }
}

impl<T> Default for Shard<T> {
    fn default() -> Self {
        Self { started_at: 0, young: Known::default(), old: Known::default() }
    }
}

impl<T: Clone> Shard<T> {
    /// Lets the older generation go when it is time.
    fn turn(&mut self, window_us: i64, now: i64) {
        if now.saturating_sub(self.started_at) > window_us || self.young.nodes.len() >= SPANS_PER_SHARD {
            self.started_at = now;
            self.old = std::mem::take(&mut self.young);
        }
    }

    fn node(&self, key: u64) -> Option<Node> {
        self.young.nodes.get(&key).or_else(|| self.old.nodes.get(&key)).copied()
    }

    /// A call, or the one that it turned out to be, brought into the younger generation.
    fn call(&mut self, key: u64) -> &mut Call<T> {
        let key = self.resolve(key);
        let old = &mut self.old.calls;
        self.young.calls.entry(key).or_insert_with(|| old.remove(&key).unwrap_or_default())
    }

    /// The call that another turned out to be.
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

    /// Makes one call of two that a span turns out to link, unless they are two calls of the same layer.
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

    /// Adds a layer to a call; false when the call has it already.
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

    /// The call of a span: that of its own children, of its parent, or a new one.
    fn place(&mut self, span: u64, parent: Option<u64>, operation: u64, layer: u64) -> u64 {
        let agrees = |node: &Node| node.operation == operation || node.operation == 0 || operation == 0;
        let own = self.node(span);
        if let Some(own) = own.filter(|own| own.is_seen) {
            return own.call;
        }
        let above = parent.and_then(|parent| self.node(parent));
        // A span that names nothing also belongs to what its unseen parent was named by.
        let above = above.filter(|node| node.is_seen || operation == 0);
        let candidates = [own, above].into_iter().flatten().filter(agrees);
        let mut joined = None;
        for candidate in candidates {
            // What names nothing only carries the call: there may be several such spans on its way.
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
    /// Remembers for at least a window.
    pub(super) fn new(window: Duration) -> Self {
        Self {
            window_us: i64::try_from(window.as_micros()).unwrap_or(i64::MAX),
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }

    /// The call that a span is a part of.
    pub(super) fn place(&self, facts: &SpanFacts<'_>, now: i64) -> CallRef {
        let trace = xxh3_64(&facts.trace_id);
        let key = |span: &[u8; 8]| span_key(trace, span);
        let operation = facts.operation.map_or(0, |operation| xxh3_64(operation.as_bytes()).max(1));
        let mut shard = self.shard(trace);
        shard.turn(self.window_us, now);
        let parent = facts.parent_span_id.as_ref().map(key);
        let call = shard.place(key(&facts.span_id), parent, operation, facts.layer.max(1));
        CallRef { trace, call }
    }

    /// The call that the span of a log record is a part of; none when that span was not seen yet.
    pub(super) fn find(&self, trace_id: &[u8; 16], span_id: &[u8; 8]) -> Option<CallRef> {
        let trace = xxh3_64(trace_id);
        let node = self.shard(trace).node(span_key(trace, span_id))?;
        node.is_seen.then_some(CallRef { trace, call: node.call })
    }

    /// A call for a log record whose span was not seen yet: the span will find it.
    pub(super) fn expect(&self, trace_id: &[u8; 16], span_id: &[u8; 8], now: i64) -> CallRef {
        let trace = xxh3_64(trace_id);
        let key = span_key(trace, span_id);
        let mut shard = self.shard(trace);
        shard.turn(self.window_us, now);
        let call = shard.node(key).map_or(key, |node| node.call);
        shard.young.nodes.entry(key).or_insert(Node { call, operation: 0, is_seen: false });
        CallRef { trace, call }
    }

    /// True when a span is to count its call: it is the first on its side, or has counted it before.
    pub(super) fn counts(&self, call: CallRef, span: u64, is_caller: bool) -> bool {
        let mut shard = self.shard(call.trace);
        let counted_by = &mut shard.call(call.call).counted_by[usize::from(is_caller)];
        if *counted_by == 0 {
            *counted_by = span;
        }
        *counted_by == span
    }

    /// Judges a report of a failure, and remembers it when it is the best so far.
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
            // A batch: each of its failures is one, unless another reporter told of them all.
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

    /// The best report of a call so far.
    pub(super) fn best_report(&self, call: CallRef) -> Option<Report<T>> {
        self.shard(call.trace).call(call.call).report.clone()
    }

    /// Remembers the words of a failure, for reports that belong to no trace that we know.
    pub(super) fn remember_words(&self, service: Option<&str>, message: &str, event_id: u128, now: i64) {
        let words = words_key(service, message);
        let mut shard = self.shard(words);
        shard.turn(self.window_us, now);
        if shard.young.words.len() < SPANS_PER_SHARD {
            shard.young.words.insert(words, event_id);
        }
    }

    /// The failure with the same words, which is repeated only once.
    pub(super) fn take_words(&self, service: Option<&str>, message: &str) -> Option<u128> {
        let words = words_key(service, message);
        let mut shard = self.shard(words);
        let young = shard.young.words.remove(&words);
        young.or_else(|| shard.old.words.remove(&words))
    }

    /// Forgets what was reported of calls whose batch could not be stored.
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

/// The key of a span in its trace; never zero.
pub(super) fn span_key(trace: u64, span_id: &[u8; 8]) -> u64 {
    xxh3_64_with_seed(span_id, trace).max(1)
}

fn words_key(service: Option<&str>, message: &str) -> u64 {
    let service = service.map_or(0, |service| xxh3_64(service.as_bytes()));
    xxh3_64_with_seed(message.as_bytes(), service)
}

#[cfg(test)]
mod tests;
