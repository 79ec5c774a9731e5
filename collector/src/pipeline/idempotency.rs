//! Idempotency keys: a request that is sent again gets the first response, and is stored once.
//!
//! Invariants: a response is remembered only if its request is durable; a request whose first attempt is still in
//! progress waits for the outcome of that attempt and shares it; a rejected request leaves no trace, so that the
//! sender may try again. Responses are stored in the WAL beside their rows, so they survive a restart.
//!
//! A key belongs to the token that sent it and to the contents that were sent with it. A request with the same key
//! and other contents is rejected, because the acknowledgement of the first one would not be true for it. The
//! comparison uses a hash of the decompressed body and of the parameters that change what is stored: a sender that
//! compresses its body anew for a retry sends other bytes, but means the same.

use super::{IngestResponse, Request};
use crate::limits::Limits;
use crate::rejection::{Rejection, RejectionReason};
use classifier::Dialect;
use hashbrown::HashMap;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// The longest step of the clock, in microseconds, that is taken for elapsed time. After a longer or backward step
/// the elapsed time is unknown; keys are then remembered for longer, within the limit on their number.
const MAX_CLOCK_STEP_US: i64 = 60 * 60 * 1_000_000;

/// The outcome of a request.
pub(super) type SubmitResult = Result<IngestResponse, Rejection>;

/// The recently used keys, in a bounded number.
pub(super) struct IdempotencyKeys {
    window_us: i64,
    max_keys: usize,
    max_bytes: usize,
    table: Mutex<KeyTable>,
}

#[derive(Default)]
struct KeyTable {
    states: HashMap<u128, KeyState>,
    /// Answered keys with the time of their response; the oldest are removed first.
    completed: VecDeque<(i64, u128)>,
    /// The approximate memory of the responses, in bytes.
    bytes: usize,
    /// The elapsed time, which jumps of the clock do not change, and the last time of the clock.
    elapsed: i64,
    clock: Option<i64>,
}

enum KeyState {
    /// A request with this content hash is in progress; the senders of duplicates wait for its outcome.
    Pending(u128, Vec<oneshot::Sender<SubmitResult>>),
    Completed(StoredResponse),
}

/// The result of claiming a key for a request.
pub(super) enum Claim {
    /// The key is new: the request proceeds and must report its outcome. The reply channel is handed back.
    First(oneshot::Sender<SubmitResult>),
    /// The same request was answered before, with this response.
    Completed(oneshot::Sender<SubmitResult>, IngestResponse),
    /// The request will be answered together with the first one that has the key.
    Joined,
    /// Other contents were sent with the key.
    Conflict(oneshot::Sender<SubmitResult>),
}

/// A key that a request has claimed, and the hash of the contents that it belongs to from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ClaimedKey {
    pub(super) key: u128,
    pub(super) content: u128,
}

impl ClaimedKey {
    /// Returns the identity from which the identities of records without their own are derived.
    pub(super) fn identity(self) -> u128 {
        xxh3_128([self.key.to_le_bytes(), self.content.to_le_bytes()].as_flattened())
    }
}

/// A stored response, with the hash of the contents that it was given for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredResponse {
    pub(super) response: IngestResponse,
    content: u128,
}

impl StoredResponse {
    pub(super) fn new(response: IngestResponse, content: u128) -> Self {
        Self { response, content }
    }

    /// Returns the approximate size in memory, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.response.bytes() + size_of::<u128>()
    }

    fn matches_content(&self, content: u128) -> bool {
        self.content == content
    }
}

/// Returns the identity of a key. Each token has its own namespace; without tokens, all keys share one.
pub(super) fn key_identity(token: Option<&str>, key: &str) -> u128 {
    match token {
        None => xxh3_128(key.as_bytes()),
        Some(token) => {
            let mut hash = Xxh3::new();
            add_text(&mut hash, Some(token));
            hash.update(key.as_bytes());
            hash.digest128()
        }
    }
}

/// Returns the hash of the contents of a request: its decompressed body, and the parameters that change what is
/// stored.
pub(super) fn content_hash(request: &Request, form: &str, body: &[u8]) -> u128 {
    let mut hash = Xxh3::new();
    let defaults = &request.defaults;
    add_text(&mut hash, Some(request.source.as_str()));
    add_text(&mut hash, Some(form));
    add_text(&mut hash, defaults.service.as_deref());
    add_text(&mut hash, defaults.environment.as_deref());
    add_text(&mut hash, defaults.dialect.map(Dialect::as_str));
    hash.update(body);
    hash.digest128()
}

/// Adds a text together with its length, so that no two lists of texts give the same bytes.
fn add_text(hash: &mut Xxh3, text: Option<&str>) {
    let length = text.map_or(u64::MAX, |text| text.len() as u64);
    hash.update(&length.to_le_bytes());
    hash.update(text.unwrap_or_default().as_bytes());
}

/// Returns the rejection of a request whose key was used for other contents.
pub(super) fn conflict() -> Rejection {
    let detail = "the Idempotency-Key was sent before with another body or other parameters; nothing of this \
                  request is stored";
    Rejection::new(RejectionReason::KeyReused, detail)
}

impl IdempotencyKeys {
    pub(super) fn new(limits: &Limits) -> Self {
        let window_us = i64::try_from(limits.idempotency_window.as_micros()).unwrap_or(i64::MAX);
        Self {
            window_us,
            max_keys: limits.idempotency_keys,
            max_bytes: limits.idempotency_bytes,
            table: Mutex::default(),
        }
    }

    /// Looks a key up, and claims it for the contents if it is unused. If the same request is in progress, `reply`
    /// waits for its outcome.
    pub(super) fn claim(&self, claimed: ClaimedKey, reply: oneshot::Sender<SubmitResult>, now: i64) -> Claim {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = table.advance(now);
        table.expire(now - self.window_us, self.max_keys, self.max_bytes);
        match table.states.get_mut(&claimed.key) {
            Some(KeyState::Completed(kept)) if kept.matches_content(claimed.content) => {
                Claim::Completed(reply, kept.response.clone())
            }
            Some(KeyState::Pending(content, waiting)) if *content == claimed.content => {
                waiting.push(reply);
                Claim::Joined
            }
            Some(_) => Claim::Conflict(reply),
            None => {
                table.states.insert(claimed.key, KeyState::Pending(claimed.content, Vec::new()));
                Claim::First(reply)
            }
        }
    }

    /// Sends the outcome of a claimed key to all that wait for it, and keeps a successful response.
    pub(super) fn complete(&self, claimed: ClaimedKey, outcome: &SubmitResult, now: i64) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = table.advance(now);
        let before = table.remove(claimed.key);
        if let Ok(response) = outcome
            && response.is_replayable()
        {
            table.insert(claimed.key, StoredResponse::new(response.clone(), claimed.content), now);
        }
        drop(table);
        if let Some(KeyState::Pending(_, waiting)) = before {
            for sender in waiting {
                // The sender may have gone away.
                drop(sender.send(outcome.clone()));
            }
        }
    }

    /// Restores a stored response after a restart. Its window begins anew: the clock may have jumped when the
    /// response was given, and one that seems to be of another year would make all others seem old.
    pub(super) fn restore(&self, key: u128, kept: StoredResponse) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let now = table.elapsed;
        table.insert(key, kept, now);
        // Only the limits on number and size apply here; the next claim expires keys by time.
        table.expire(i64::MIN, self.max_keys, self.max_bytes);
    }
}

impl KeyTable {
    /// Advances the elapsed time by the step of the clock, and returns it.
    fn advance(&mut self, clock: i64) -> i64 {
        let step = match self.clock {
            Some(before) => clock.saturating_sub(before),
            None => 0,
        };
        self.clock = Some(clock);
        if (0..=MAX_CLOCK_STEP_US).contains(&step) {
            self.elapsed += step;
        }
        self.elapsed
    }

    fn insert(&mut self, key: u128, kept: StoredResponse, time: i64) {
        self.remove(key);
        self.bytes += kept.bytes();
        self.states.insert(key, KeyState::Completed(kept));
        self.completed.push_back((time, key));
    }

    fn remove(&mut self, key: u128) -> Option<KeyState> {
        let state = self.states.remove(&key);
        if let Some(KeyState::Completed(kept)) = &state {
            self.bytes -= kept.bytes();
        }
        state
    }

    fn expire(&mut self, oldest: i64, max_keys: usize, max_bytes: usize) {
        while let Some(&(time, key)) = self.completed.front() {
            if time >= oldest && self.completed.len() <= max_keys && self.bytes <= max_bytes {
                break;
            }
            self.completed.pop_front();
            self.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oneshot::Receiver;

    const SECOND: i64 = 1_000_000;

    fn keys() -> IdempotencyKeys {
        let window = std::time::Duration::from_secs(60);
        IdempotencyKeys::new(&Limits {
            idempotency_window: window,
            idempotency_keys: 3,
            idempotency_bytes: 1000,
            ..Limits::default()
        })
    }

    fn response(accepted: u64) -> IngestResponse {
        IngestResponse { accepted, ..IngestResponse::default() }
    }

    fn claimed(key: u128) -> ClaimedKey {
        ClaimedKey { key, content: 7 }
    }

    fn claim(keys: &IdempotencyKeys, claimed: ClaimedKey, now: i64) -> (Claim, Receiver<SubmitResult>) {
        let (reply, outcome) = oneshot::channel();
        (keys.claim(claimed, reply, now), outcome)
    }

    #[track_caller]
    fn assert_first(keys: &IdempotencyKeys, key: u128, now: i64) {
        assert!(matches!(claim(keys, claimed(key), now).0, Claim::First(_)), "{key} is known");
    }

    #[track_caller]
    fn assert_completed(keys: &IdempotencyKeys, key: u128, now: i64, with: &IngestResponse) {
        let (claim, _) = claim(keys, claimed(key), now);
        assert!(matches!(claim, Claim::Completed(_, response) if response == *with));
    }

    #[test]
    fn the_first_response_is_given_again() {
        let keys = keys();
        assert_first(&keys, 1, 0);
        keys.complete(claimed(1), &Ok(response(7)), 0);
        assert_completed(&keys, 1, 59 * SECOND, &response(7));
        assert_first(&keys, 1, 61 * SECOND);
    }

    #[test]
    fn a_clock_that_jumps_forgets_no_key() {
        let days = |days: i64| days * 24 * 3600 * SECOND;
        let keys = keys();
        keys.restore(1, StoredResponse::new(response(1), 7));
        assert_completed(&keys, 1, days(20_600), &response(1));
        assert_first(&keys, 2, days(20_600));
        keys.complete(claimed(2), &Ok(response(2)), days(19_000));
        assert_completed(&keys, 2, days(21_000), &response(2));
        assert_completed(&keys, 1, days(21_000), &response(1));
        // Time that really elapses still counts.
        assert_first(&keys, 1, days(21_000) + 61 * SECOND);
    }

    #[test]
    fn another_content_is_rejected_while_the_first_is_on_its_way_and_afterwards() {
        let keys = keys();
        let other = ClaimedKey { key: 1, content: 8 };
        assert_first(&keys, 1, 0);
        assert!(matches!(claim(&keys, other, 0).0, Claim::Conflict(_)));
        keys.complete(claimed(1), &Ok(response(7)), 0);
        assert!(matches!(claim(&keys, other, 0).0, Claim::Conflict(_)));
        assert_completed(&keys, 1, 0, &response(7));
        keys.restore(3, StoredResponse::new(response(3), 7));
        assert_completed(&keys, 3, 0, &response(3));
        assert!(matches!(claim(&keys, ClaimedKey { key: 3, content: 8 }, 0).0, Claim::Conflict(_)));
    }

    #[test]
    fn keys_belong_to_tokens_and_texts_do_not_run_together() {
        let identities =
            [(None, "ab"), (Some("a"), "b"), (Some("ab"), ""), (Some(""), "ab"), (Some("b"), "b")]
                .map(|(token, key)| key_identity(token, key));
        for (index, identity) in identities.iter().enumerate() {
            assert!(!identities[..index].contains(identity), "{index}");
        }
    }

    #[test]
    fn the_size_of_responses_is_bounded() {
        let keys = keys();
        let reason = "r".repeat(500);
        let rejected = vec![super::super::RejectedRecord { line: 1, reason }];
        let large = IngestResponse { rejected, ..IngestResponse::default() };
        for key in 0..2 {
            assert_first(&keys, key, 0);
            keys.complete(claimed(key), &Ok(large.clone()), 0);
        }
        assert_completed(&keys, 1, 0, &large);
        assert_first(&keys, 0, 0);
        keys.complete(claimed(0), &Ok(response(1)), 0);
        let sizes = [large, response(1)].map(|response| StoredResponse::new(response, 7).bytes());
        assert_eq!(keys.table.lock().unwrap().bytes, sizes.iter().sum::<usize>());
    }

    #[test]
    fn whoever_waits_shares_the_outcome() {
        let keys = keys();
        assert_first(&keys, 1, 0);
        let (_, mut waiting) = claim(&keys, claimed(1), 0);
        let rejection = Rejection::new(RejectionReason::Busy, "no room");
        keys.complete(claimed(1), &Err(rejection.clone()), 0);
        assert_eq!(waiting.try_recv().unwrap(), Err(rejection));
        assert_first(&keys, 1, 0);
    }

    #[test]
    fn the_number_is_bounded_and_pending_keys_stay() {
        let keys = keys();
        assert_first(&keys, 100, 0);
        for key in 0..50 {
            keys.restore(key, StoredResponse::new(response(1), 7));
        }
        assert_completed(&keys, 49, 2, &response(1));
        assert_first(&keys, 3, 2);
        let (claim, mut outcome) = claim(&keys, claimed(100), 2);
        assert!(matches!(claim, Claim::Joined) && outcome.try_recv().is_err(), "it waits");
    }
}
