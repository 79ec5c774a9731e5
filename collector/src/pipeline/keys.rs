//! Idempotency keys: a request that comes again gets the first answer, and is stored once.
//!
//! What always holds: an answer is remembered only when what it speaks of is durable; a request whose first
//! try is still on its way waits for that one's outcome and shares it; a refused one leaves no trace, so that
//! the sender may try again. Answers stand in the log beside their rows: a restart knows them too.
//!
//! A key belongs to the token that sent it and to what was sent with it. A request with the same key and other
//! content is rejected, since the acknowledgement of the first one would not be true for it. What is compared is a
//! hash of the decompressed body and of the parameters that change what is stored: a sender that compresses its
//! body anew for a retry gets other bytes, but means the same.

use super::{Answer, Request};
use crate::digest::Digest;
use crate::limits::Limits;
use crate::refusal::{Cause, Refusal};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use taxonomy::Dialect;
use tokio::sync::oneshot;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

/// A step of the clock that is longer than this, or backwards, is not taken for time that has passed: nobody knows what
/// did. Keys are then kept longer, within the bound on their number.
const LONGEST_STEP_US: i64 = 60 * 60 * 1_000_000;

/// What a waiting request will be told.
pub(super) type Outcome = Result<Answer, Refusal>;

/// The keys of the last while, in a bounded number.
pub(super) struct Keys {
    window_us: i64,
    capacity: usize,
    bytes: usize,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    states: HashMap<u128, State>,
    /// Answered keys by when they were answered: the oldest go first.
    answered: VecDeque<(i64, u128)>,
    /// What the answers weigh.
    bytes: usize,
    /// Time that has passed, which a clock that jumps does not change; and what the clock said last.
    passed: i64,
    clock: Option<i64>,
}

enum State {
    /// On its way, with this content; these wait for it.
    Pending(u128, Vec<oneshot::Sender<Outcome>>),
    Answered(KeptOutcome),
}

/// What a key means for the request that carries it.
pub(super) enum Claim {
    /// Nobody had it: go on, and tell the outcome. The way to answer comes back.
    First(oneshot::Sender<Outcome>),
    /// The same was answered before, with this.
    Answered(oneshot::Sender<Outcome>, Answer),
    /// The request will be answered with the first one that has the key.
    Shared,
    /// Another content was sent with the key.
    Reused(oneshot::Sender<Outcome>),
}

/// A key that this request has claimed, and the content that it stands for from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Claimed {
    pub(super) key: u128,
    pub(super) content: u128,
}

impl Claimed {
    /// What the identities of the records without one of their own are made from.
    pub(super) fn identity(self) -> u128 {
        xxh3_128([self.key.to_le_bytes(), self.content.to_le_bytes()].as_flattened())
    }
}

/// An answer as it is kept in memory and in the log, with the content that it was given for. What versions without
/// that have kept is an answer for whatever is sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptOutcome {
    #[serde(flatten)]
    pub(super) answer: Answer,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<Digest>,
}

impl KeptOutcome {
    pub(super) fn new(answer: Answer, content: u128) -> Self {
        Self { answer, content: Some(Digest(content)) }
    }

    /// What it weighs in memory, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.answer.bytes() + size_of::<Option<Digest>>()
    }

    /// As it is kept in the log.
    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    pub(super) fn from_json(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    fn fits(&self, content: u128) -> bool {
        self.content.is_none_or(|kept| kept.0 == content)
    }
}

/// The identity of a key of a token. Without tokens, all keys are of one namespace.
pub(super) fn identity_of(token: Option<&str>, key: &str) -> u128 {
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

/// The hash of what a request asks to be stored: its decompressed body, and the parameters that change what becomes
/// of it.
pub(super) fn content_of(request: &Request, form: &str, body: &[u8]) -> u128 {
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

/// What a sender is told whose key stands for something else.
pub(super) fn reused() -> Refusal {
    let detail = "the Idempotency-Key was sent before with another body or other parameters; nothing of this \
                  request is stored";
    Refusal::new(Cause::KeyReused, detail)
}

impl Keys {
    pub(super) fn new(limits: &Limits) -> Self {
        let window_us = i64::try_from(limits.key_window.as_micros()).unwrap_or(i64::MAX);
        Self { window_us, capacity: limits.keys, bytes: limits.key_bytes, known: Mutex::default() }
    }

    /// Looks a key up, and claims it for a content when nobody has it. While the same is on its way, `reply` waits for its
    /// outcome.
    pub(super) fn claim(&self, claimed: Claimed, reply: oneshot::Sender<Outcome>, now: i64) -> Claim {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = known.advance(now);
        known.expire(now - self.window_us, self.capacity, self.bytes);
        match known.states.get_mut(&claimed.key) {
            Some(State::Answered(kept)) if kept.fits(claimed.content) => {
                Claim::Answered(reply, kept.answer.clone())
            }
            Some(State::Pending(content, waiting)) if *content == claimed.content => {
                waiting.push(reply);
                Claim::Shared
            }
            Some(_) => Claim::Reused(reply),
            None => {
                known.states.insert(claimed.key, State::Pending(claimed.content, Vec::new()));
                Claim::First(reply)
            }
        }
    }

    /// Tells the outcome of a claimed key to whoever waits for it; an answer is kept.
    pub(super) fn settle(&self, claimed: Claimed, outcome: &Outcome, now: i64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = known.advance(now);
        let before = known.remove(claimed.key);
        if let Ok(answer) = outcome
            && answer.is_worth_keeping()
        {
            known.keep(claimed.key, KeptOutcome::new(answer.clone(), claimed.content), now);
        }
        drop(known);
        if let Some(State::Pending(_, waiting)) = before {
            for sender in waiting {
                // Whoever went away does not need it.
                drop(sender.send(outcome.clone()));
            }
        }
    }

    /// Takes an answer from the log back into memory. Its window begins anew: the clock may have jumped when it was given,
    /// and one that seems to be of another year would make all others seem old.
    pub(super) fn restore(&self, key: u128, kept: KeptOutcome) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = known.passed;
        known.keep(key, kept, now);
        // Not by time: whoever comes first will see to that.
        known.expire(i64::MIN, self.capacity, self.bytes);
    }
}

impl Known {
    /// Lets the time pass that the clock says has passed, and gives back when that is now.
    fn advance(&mut self, clock: i64) -> i64 {
        let step = match self.clock {
            Some(before) => clock.saturating_sub(before),
            None => 0,
        };
        self.clock = Some(clock);
        if (0..=LONGEST_STEP_US).contains(&step) {
            self.passed += step;
        }
        self.passed
    }

    fn keep(&mut self, key: u128, kept: KeptOutcome, time: i64) {
        self.remove(key);
        self.bytes += kept.bytes();
        self.states.insert(key, State::Answered(kept));
        self.answered.push_back((time, key));
    }

    fn remove(&mut self, key: u128) -> Option<State> {
        let state = self.states.remove(&key);
        if let Some(State::Answered(kept)) = &state {
            self.bytes -= kept.bytes();
        }
        state
    }

    fn expire(&mut self, oldest: i64, capacity: usize, bytes: usize) {
        while let Some(&(time, key)) = self.answered.front() {
            if time >= oldest && self.answered.len() <= capacity && self.bytes <= bytes {
                break;
            }
            self.answered.pop_front();
            self.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oneshot::Receiver;

    const SECOND: i64 = 1_000_000;

    fn keys() -> Keys {
        let window = std::time::Duration::from_secs(60);
        Keys::new(&Limits { key_window: window, keys: 3, key_bytes: 1000, ..Limits::default() })
    }

    fn answer(accepted: u64) -> Answer {
        Answer { accepted, ..Answer::default() }
    }

    fn claimed(key: u128) -> Claimed {
        Claimed { key, content: 7 }
    }

    fn claim(keys: &Keys, claimed: Claimed, now: i64) -> (Claim, Receiver<Outcome>) {
        let (reply, outcome) = oneshot::channel();
        (keys.claim(claimed, reply, now), outcome)
    }

    #[track_caller]
    fn is_first(keys: &Keys, key: u128, now: i64) {
        assert!(matches!(claim(keys, claimed(key), now).0, Claim::First(_)), "{key} is known");
    }

    #[track_caller]
    fn is_answered(keys: &Keys, key: u128, now: i64, with: &Answer) {
        let (claim, _) = claim(keys, claimed(key), now);
        assert!(matches!(claim, Claim::Answered(_, answer) if answer == *with));
    }

    #[test]
    fn the_first_answer_is_given_again() {
        let keys = keys();
        is_first(&keys, 1, 0);
        keys.settle(claimed(1), &Ok(answer(7)), 0);
        is_answered(&keys, 1, 59 * SECOND, &answer(7));
        is_first(&keys, 1, 61 * SECOND);
    }

    #[test]
    fn a_clock_that_jumps_forgets_no_key() {
        let days = |days: i64| days * 24 * 3600 * SECOND;
        let keys = keys();
        keys.restore(1, KeptOutcome::new(answer(1), 7));
        is_answered(&keys, 1, days(20_600), &answer(1));
        is_first(&keys, 2, days(20_600));
        keys.settle(claimed(2), &Ok(answer(2)), days(19_000));
        is_answered(&keys, 2, days(21_000), &answer(2));
        is_answered(&keys, 1, days(21_000), &answer(1));
        // Time that does pass counts all the same.
        is_first(&keys, 1, days(21_000) + 61 * SECOND);
    }

    #[test]
    fn another_content_is_rejected_while_the_first_is_on_its_way_and_afterwards() {
        let keys = keys();
        let other = Claimed { key: 1, content: 8 };
        is_first(&keys, 1, 0);
        assert!(matches!(claim(&keys, other, 0).0, Claim::Reused(_)));
        keys.settle(claimed(1), &Ok(answer(7)), 0);
        assert!(matches!(claim(&keys, other, 0).0, Claim::Reused(_)));
        is_answered(&keys, 1, 0, &answer(7));
        // What an earlier version has kept does not say for what.
        let old = KeptOutcome::from_json(&serde_json::to_string(&answer(9)).unwrap()).unwrap();
        keys.restore(2, old);
        is_answered(&keys, 2, 0, &answer(9));
        let kept = KeptOutcome::new(answer(3), 7);
        keys.restore(3, KeptOutcome::from_json(&kept.to_json()).unwrap());
        is_answered(&keys, 3, 0, &answer(3));
        assert!(matches!(claim(&keys, Claimed { key: 3, content: 8 }, 0).0, Claim::Reused(_)));
    }

    #[test]
    fn keys_belong_to_tokens_and_texts_do_not_run_together() {
        let identities =
            [(None, "ab"), (Some("a"), "b"), (Some("ab"), ""), (Some(""), "ab"), (Some("b"), "b")]
                .map(|(token, key)| identity_of(token, key));
        for (place, identity) in identities.iter().enumerate() {
            assert!(!identities[..place].contains(identity), "{place}");
        }
    }

    #[test]
    fn what_answers_weigh_is_bounded() {
        let keys = keys();
        let reason = "r".repeat(500);
        let rejected = vec![super::super::Rejected { line: 1, reason }];
        let heavy = Answer { rejected, ..Answer::default() };
        for key in 0..2 {
            is_first(&keys, key, 0);
            keys.settle(claimed(key), &Ok(heavy.clone()), 0);
        }
        is_answered(&keys, 1, 0, &heavy);
        is_first(&keys, 0, 0);
        keys.settle(claimed(0), &Ok(answer(1)), 0);
        let weights = [heavy, answer(1)].map(|answer| KeptOutcome::new(answer, 7).bytes());
        assert_eq!(keys.known.lock().unwrap().bytes, weights.iter().sum::<usize>());
    }

    #[test]
    fn whoever_waits_shares_the_outcome() {
        let keys = keys();
        is_first(&keys, 1, 0);
        let (_, mut waiting) = claim(&keys, claimed(1), 0);
        let refusal = Refusal::new(Cause::Busy, "no room");
        keys.settle(claimed(1), &Err(refusal.clone()), 0);
        assert_eq!(waiting.try_recv().unwrap(), Err(refusal));
        is_first(&keys, 1, 0);
    }

    #[test]
    fn the_number_is_bounded_and_pending_keys_stay() {
        let keys = keys();
        is_first(&keys, 100, 0);
        for key in 0..50 {
            keys.restore(key, KeptOutcome::new(answer(1), 7));
        }
        is_answered(&keys, 49, 2, &answer(1));
        is_first(&keys, 3, 2);
        let (claim, mut outcome) = claim(&keys, claimed(100), 2);
        assert!(matches!(claim, Claim::Shared) && outcome.try_recv().is_err(), "it waits");
    }
}
