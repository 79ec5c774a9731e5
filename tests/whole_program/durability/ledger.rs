//! The ledger of senders about their requests, and its comparison with the stored data.
//!
//! A batch is the lines of one request. Every line is a failure with an id of its own, so each makes one event and one
//! call. Batches with an `Idempotency-Key` use the service `keyed`, others `plain`. Batches with old times use `old`:
//! retention may remove them, as a whole.

use crate::whole_program::server::{Answer, dump};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// A filler of some lines, so that the WAL gets payloads that it copies together and others that it does not.
const LONG_NOTE: usize = 8 << 10;

/// The service whose events retention may remove.
const OLD: &str = "old";

/// The lines of one request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Batch {
    pub(crate) name: String,
    pub(crate) lines: usize,
    pub(crate) is_keyed: bool,
    pub(crate) is_long: bool,
    pub(crate) is_old: bool,
}

/// The last response that the sender got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acknowledgement {
    /// The request was sent, and no response came.
    Nothing,
    Yes,
    No,
}

impl Batch {
    pub(crate) fn new(name: impl Into<String>, lines: usize, is_keyed: bool) -> Self {
        Self { name: name.into(), lines, is_keyed, is_long: false, is_old: false }
    }

    pub(crate) fn key(&self) -> Option<&str> {
        self.is_keyed.then_some(self.name.as_str())
    }

    pub(crate) fn body(&self) -> String {
        let service = self.service();
        let note = if self.is_long { "long ".repeat(LONG_NOTE / 5) } else { "short".to_owned() };
        let time = if self.is_old { "\"time\":\"2020-02-02T20:20:20Z\"," } else { "" };
        let line = |id| {
            format!(
                "{{{time}\"service\":\"{service}\",\"tool\":\"get\",\"request_id\":\"{id}\",\"jsonrpc\":\"2.0\",\
                 \"id\":8,\"note\":\"{note}\",\"error\":{{\"code\":-32601,\"message\":\"Method not found\"}}}}\n"
            )
        };
        self.ids().map(line).collect()
    }

    fn service(&self) -> &'static str {
        match (self.is_old, self.is_keyed) {
            (true, _) => OLD,
            (false, true) => "keyed",
            (false, false) => "plain",
        }
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = String> {
        (0..self.lines).map(|line| format!("{}.l{line}", self.name))
    }
}

/// The last response for each batch.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    sent: Mutex<BTreeMap<Batch, Acknowledgement>>,
}

impl Ledger {
    /// Returns a copy of the ledger, for a copy of the data directory.
    pub(crate) fn copied(&self) -> Self {
        Self { sent: Mutex::new(self.sent().clone()) }
    }

    /// Returns a ledger for a copy made when only these were known to be stored; the copy may or may not have others.
    pub(crate) fn as_of(&self, yes: &[Batch]) -> Self {
        let known: std::collections::BTreeSet<&Batch> = yes.iter().collect();
        let then = |(batch, sent): (&Batch, &Acknowledgement)| {
            let is_later = *sent == Acknowledgement::Yes && !known.contains(batch);
            (batch.clone(), if is_later { Acknowledgement::Nothing } else { *sent })
        };
        Self { sent: Mutex::new(self.sent().iter().map(then).collect()) }
    }

    /// Must be called before the first byte is sent, because all stored data must have been sent.
    pub(crate) fn sending(&self, batch: &Batch) {
        self.sent().insert(batch.clone(), Acknowledgement::Nothing);
    }

    /// Records a response. Returns true when it was an acknowledgement.
    #[track_caller]
    pub(crate) fn answered(&self, batch: &Batch, answer: &Answer) -> bool {
        let yes = answer.status == 200;
        if yes {
            let body = answer.json();
            assert_eq!((&body["accepted"], &body["events"]), (&batch.lines.into(), &batch.lines.into()));
        }
        self.sent().insert(batch.clone(), if yes { Acknowledgement::Yes } else { Acknowledgement::No });
        yes
    }

    /// Returns the number of acknowledged batches.
    pub(crate) fn acknowledged(&self) -> usize {
        self.sent().values().filter(|sent| **sent == Acknowledgement::Yes).count()
    }

    /// Returns the batches with a key whose sender may still retry.
    pub(crate) fn to_retry(&self) -> Vec<Batch> {
        let sent = self.sent();
        let open = sent.iter().filter(|(batch, sent)| batch.is_keyed && **sent != Acknowledgement::Yes);
        open.map(|(batch, _)| batch.clone()).collect()
    }

    /// Compares the ledger with the stored data: `acknowledged EXCEPT stored` is empty; a request is stored completely
    /// or not at all, once, and not if it was rejected; nothing is stored that was not sent; and the sums of traffic
    /// agree with the events. No sender may be active.
    #[track_caller]
    pub(crate) fn check(&self, data_dir: &Path) {
        let events = dump(data_dir, "events");
        self.check_events(count(&events, |event| (text(event, "request_id"), 1)));
        let mut events = count(&events, |event| (text(event, "service"), 1));
        let mut calls = count(&dump(data_dir, "traffic"), |row| {
            (text(row, "service"), row["calls"].as_u64().expect("a number"))
        });
        // Each table removes its old rows independently.
        let (_, _) = (events.remove(OLD), calls.remove(OLD));
        assert_eq!(calls, events, "every event is one call, and every call one event");
    }

    #[track_caller]
    fn check_events(&self, mut stored: HashMap<String, u64>) {
        for (batch, sent) in &*self.sent() {
            let times: Vec<u64> = batch.ids().map(|id| stored.remove(&id).unwrap_or(0)).collect();
            let allowed: &[u64] = match sent {
                Acknowledgement::Yes if batch.is_old => &[0, 1],
                Acknowledgement::Yes => &[1],
                Acknowledgement::No => &[0],
                Acknowledgement::Nothing => &[0, 1],
            };
            let is_whole = times.iter().all(|count| *count == times[0]);
            assert!(
                is_whole && allowed.contains(&times[0]),
                "{batch:?} was told {sent:?}; its lines are stored {times:?} times"
            );
        }
        assert!(stored.is_empty(), "stored but never sent: {stored:?}");
    }

    /// Checks that these batches are stored, once; others may be too. It is for readers beside a writer.
    #[track_caller]
    pub(crate) fn check_includes(stored: &HashMap<String, u64>, batches: &[Batch]) {
        for id in batches.iter().flat_map(Batch::ids) {
            assert_eq!(stored.get(&id), Some(&1), "{id}");
        }
    }

    /// Returns the batches that were acknowledged so far.
    pub(crate) fn yes(&self) -> Vec<Batch> {
        let sent = self.sent();
        sent.iter()
            .filter(|(_, sent)| **sent == Acknowledgement::Yes)
            .map(|(batch, _)| batch.clone())
            .collect()
    }

    fn sent(&self) -> MutexGuard<'_, BTreeMap<Batch, Acknowledgement>> {
        self.sent.lock().expect("no sender panicked")
    }
}

/// Returns how often each id is stored, by `faultline dump`.
pub(crate) fn stored_ids(data_dir: &Path) -> HashMap<String, u64> {
    count(&dump(data_dir, "events"), |event| (text(event, "request_id"), 1))
}

fn count(rows: &[Value], of: impl Fn(&Value) -> (String, u64)) -> HashMap<String, u64> {
    let mut counts = HashMap::new();
    for (name, number) in rows.iter().map(of) {
        *counts.entry(name).or_default() += number;
    }
    counts
}

fn text(row: &Value, name: &str) -> String {
    row[name].as_str().unwrap_or("(none)").to_owned()
}
