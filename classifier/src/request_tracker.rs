//! The calls of a stream of records: requests that await their reply, tool calls whose result is in a later
//! line, and tasks that are polled.
//!
//! A reply names neither the tool nor the start time of the call; its request does. The caller owns one
//! [`RequestTracker`] for each stream (a file, a pipe, the body of one HTTP request) and passes it to
//! [`Classifier::classify_stream`](crate::Classifier::classify_stream). A caller that reads a stream in pieces and may have
//! to read a piece again calls [`RequestTracker::begin`] before each piece and [`RequestTracker::commit`] after it.
//!
//! Invariants: at most `capacity` entries are held, and the oldest are evicted first; there is no clock, so
//! the same lines in the same order always give the same result.

use crate::json::{Json, Scalar};
use crate::redact::TokenHash;
use std::collections::{HashMap, VecDeque};
use xxhash_rust::xxh3::Xxh3;

/// The kind of call that an id identifies, so that equal ids of different kinds are distinct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrackedKind {
    /// The `id` of a JSON-RPC request.
    Request = 1,
    /// The id of a tool call in a transcript.
    ToolCall = 2,
    /// The id of an MCP task.
    Task = 3,
}

/// The progress of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The request was seen.
    Requested,
    /// The call was reported as pending.
    Pending,
    /// The outcome was reported; whatever follows repeats it.
    Finished,
}

/// The state of a call that is kept until its outcome is known.
#[derive(Debug, Clone)]
pub(crate) struct TrackedCall {
    pub(crate) operation: Option<Box<str>>,
    pub(crate) service: Option<Box<str>>,
    /// The start time, in microseconds since 1970.
    pub(crate) time: Option<i64>,
    pub(crate) arguments: Option<TokenHash>,
    pub(crate) progress: Progress,
}

impl TrackedCall {
    /// Creates a call of which only the progress is known.
    pub(crate) fn new(progress: Progress) -> Self {
        Self { operation: None, service: None, time: None, arguments: None, progress }
    }
}

/// The identity of an entry: its kind, its id and the session or service that the id belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TrackedKey(u128);

impl TrackedKey {
    /// Creates the key of an id; returns `None` if the value is neither a text nor a whole number.
    pub(crate) fn new(kind: TrackedKind, id: Json<'_>, owner: Option<&str>) -> Option<Self> {
        let mut hasher = Xxh3::new();
        hasher.update(&[kind as u8]);
        match id.scalar()? {
            Scalar::Text(text) => {
                hasher.update(b"t");
                hasher.update(text.as_bytes());
            }
            _ => {
                hasher.update(b"n");
                hasher.update(&id.as_i64()?.to_le_bytes());
            }
        }
        if let Some(owner) = owner {
            hasher.update(b"\0");
            hasher.update(owner.as_bytes());
        }
        Some(Self(hasher.digest128()))
    }
}

/// A change of a tracker, with what undoes it.
#[derive(Debug)]
enum Change {
    /// An entry was added as the newest, in place of this one.
    Inserted(TrackedKey, Option<(u64, TrackedCall)>),
    /// The oldest entry was evicted; its call is `None` if it was removed before.
    Evicted(TrackedKey, u64, Option<TrackedCall>),
    /// An entry was removed.
    Taken(TrackedKey, (u64, TrackedCall)),
}

/// The requests and calls of one stream whose outcome is still to come, and those that ended recently.
#[derive(Debug)]
pub struct RequestTracker {
    capacity: usize,
    entries: HashMap<TrackedKey, (u64, TrackedCall), foldhash::fast::FixedState>,
    /// The entries in insertion order, with their numbers; a removed entry stays until it is the oldest.
    order: VecDeque<(TrackedKey, u64)>,
    next_number: u64,
    /// The changes since the beginning of the piece; `None` if no piece was begun.
    changes: Option<Vec<Change>>,
    /// A buffer for arguments while they are hashed.
    pub(crate) buffer: String,
}

impl RequestTracker {
    /// The default capacity. It is enough for the calls that one stream has open at the same time, and takes
    /// at most about a mebibyte.
    pub const DEFAULT_CAPACITY: usize = 4_096;

    /// Creates a tracker that remembers at most `capacity` calls.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            entries: HashMap::default(),
            order: VecDeque::new(),
            next_number: 0,
            changes: None,
            buffer: String::new(),
        }
    }

    /// Returns the number of calls that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns true if no call is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Remembers a call, replacing an earlier one with the same key. The oldest calls are evicted.
    pub(crate) fn insert(&mut self, key: TrackedKey, call: TrackedCall) {
        if self.capacity == 0 {
            return;
        }
        while self.order.len() >= self.capacity {
            let Some((oldest, number)) = self.order.pop_front() else { break };
            let is_current = self.entries.get(&oldest).is_some_and(|(current, _)| *current == number);
            let evicted = is_current.then(|| self.entries.remove(&oldest)).flatten();
            if let Some(changes) = &mut self.changes {
                changes.push(Change::Evicted(oldest, number, evicted.map(|(_, call)| call)));
            }
        }
        let number = self.next_number;
        self.next_number += 1;
        let previous = self.entries.insert(key, (number, call));
        self.order.push_back((key, number));
        if let Some(changes) = &mut self.changes {
            changes.push(Change::Inserted(key, previous));
        }
    }

    /// Begins a piece of the stream. What an earlier piece changed is undone unless it was committed.
    pub fn begin(&mut self) {
        for change in self.changes.take().into_iter().flatten().rev() {
            match change {
                Change::Inserted(key, previous) => {
                    self.order.pop_back();
                    match previous {
                        Some(entry) => self.entries.insert(key, entry),
                        None => self.entries.remove(&key),
                    };
                }
                Change::Evicted(key, number, call) => {
                    self.order.push_front((key, number));
                    call.map(|call| self.entries.insert(key, (number, call)));
                }
                Change::Taken(key, entry) => {
                    self.entries.insert(key, entry);
                }
            }
        }
        self.changes = Some(Vec::new());
    }

    /// Keeps what was changed since [`begin`](Self::begin).
    pub fn commit(&mut self) {
        self.changes = None;
    }

    /// Returns the call of a key.
    pub(crate) fn get(&self, key: TrackedKey) -> Option<&TrackedCall> {
        self.entries.get(&key).map(|(_, call)| call)
    }

    /// Removes the call of a key and returns it.
    pub(crate) fn take(&mut self, key: TrackedKey) -> Option<TrackedCall> {
        let entry = self.entries.remove(&key)?;
        if let Some(changes) = &mut self.changes {
            changes.push(Change::Taken(key, entry.clone()));
        }
        Some(entry.1)
    }
}

impl Default for RequestTracker {
    fn default() -> Self {
        Self::new(Self::DEFAULT_CAPACITY)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::ScalarNode;

    fn key(id: i64) -> TrackedKey {
        TrackedKey::new(TrackedKind::Request, ScalarNode::int(id).as_json(), None).expect("an id")
    }

    fn call(operation: &str) -> TrackedCall {
        TrackedCall { operation: Some(operation.into()), ..TrackedCall::new(Progress::Requested) }
    }

    #[test]
    fn the_oldest_give_way() {
        let mut tracker = RequestTracker::new(3);
        (0..5).for_each(|id| tracker.insert(key(id), call("x")));
        assert_eq!(tracker.len(), 3);
        assert!(tracker.get(key(1)).is_none() && tracker.get(key(2)).is_some());
    }

    /// The operations of all entries, and the order of their eviction.
    type Contents = (Vec<(i64, String)>, Vec<(TrackedKey, u64)>);

    fn contents(tracker: &RequestTracker) -> Contents {
        let operation =
            |id| tracker.get(key(id)).and_then(|call| call.operation.as_deref().map(str::to_owned));
        let entries = (0..20).filter_map(|id| Some((id, operation(id)?))).collect();
        (entries, tracker.order.iter().copied().collect())
    }

    #[test]
    fn what_is_not_committed_is_undone() {
        let mut tracker = RequestTracker::new(4);
        (0..4).for_each(|id| tracker.insert(key(id), call("first")));
        tracker.take(key(1));
        let before = contents(&tracker);
        for commits in [false, false, true] {
            tracker.begin();
            assert_eq!(contents(&tracker), before);
            tracker.take(key(3));
            tracker.insert(key(2), call("again"));
            (4..10).for_each(|id| tracker.insert(key(id), call("second")));
            tracker.take(key(9));
            tracker.insert(key(9), call("third"));
            assert_ne!(contents(&tracker), before);
            if commits {
                tracker.commit();
            }
        }
        let after = contents(&tracker);
        tracker.begin();
        assert_eq!(contents(&tracker), after);
        assert_eq!(after.0.last(), Some(&(9, "third".to_owned())));
    }

    #[test]
    fn memory_is_bounded_however_calls_come_and_go() {
        let mut tracker = RequestTracker::new(8);
        for id in 0..10_000 {
            tracker.insert(key(id % 5), call("x"));
            if id % 2 == 0 {
                tracker.take(key(id % 5));
            }
        }
        assert!(tracker.len() <= 8 && tracker.order.len() <= 8);
    }

    #[test]
    fn an_id_is_known_by_kind_type_and_owner() {
        let number = ScalarNode::int(7);
        let text = ScalarNode::text("7");
        let keys = [
            TrackedKey::new(TrackedKind::Request, number.as_json(), None),
            TrackedKey::new(TrackedKind::Request, text.as_json(), None),
            TrackedKey::new(TrackedKind::Task, text.as_json(), None),
            TrackedKey::new(TrackedKind::Request, number.as_json(), Some("s-1")),
        ];
        for (index, key) in keys.iter().enumerate() {
            assert!(key.is_some() && !keys[index + 1..].contains(key), "{index}");
        }
        assert_eq!(TrackedKey::new(TrackedKind::Request, Json::NULL, None), None);
        assert_eq!(TrackedKey::new(TrackedKind::Request, ScalarNode::float(1.5).as_json(), None), None);
    }

    #[test]
    fn nothing_is_remembered_without_room() {
        let mut tracker = RequestTracker::new(0);
        tracker.insert(key(1), call("x"));
        assert!(tracker.is_empty());
    }
}
