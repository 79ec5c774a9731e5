//! Idempotency keys: a request that comes again gets the first answer, and is stored once.
//!
//! What always holds: an answer is remembered only when what it speaks of is durable; a request whose first
//! try is still on its way waits for that one's outcome and shares it; a refused one leaves no trace, so that
//! the sender may try again. Answers stand in the log beside their rows: a restart knows them too.

use super::Answer;
use crate::limits::Limits;
use crate::refusal::Refusal;
use hashbrown::HashMap;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use tokio::sync::oneshot;
use xxhash_rust::xxh3::xxh3_128;

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
}

enum State {
    /// On its way; these wait for it.
    Pending(Vec<oneshot::Sender<Outcome>>),
    Answered(Answer),
}

/// What a key means for the request that carries it.
pub(super) enum Claim {
    /// Nobody had it: go on, and tell the outcome.
    First,
    /// The first answer.
    Answered(Answer),
    /// The first try is on its way: its outcome comes here.
    Wait(oneshot::Receiver<Outcome>),
}

/// The identity of a key.
pub(super) fn identity_of(key: &str) -> u128 {
    xxh3_128(key.as_bytes())
}

impl Keys {
    pub(super) fn new(limits: &Limits) -> Self {
        let window_us = i64::try_from(limits.key_window.as_micros()).unwrap_or(i64::MAX);
        Self { window_us, capacity: limits.keys, bytes: limits.key_bytes, known: Mutex::default() }
    }

    /// Looks a key up, and claims it when nobody has it.
    pub(super) fn claim(&self, key: u128, now: i64) -> Claim {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.expire(now - self.window_us, self.capacity, self.bytes);
        match known.states.get_mut(&key) {
            Some(State::Answered(answer)) => Claim::Answered(answer.clone()),
            Some(State::Pending(waiting)) => {
                let (sender, receiver) = oneshot::channel();
                waiting.push(sender);
                Claim::Wait(receiver)
            }
            None => {
                known.states.insert(key, State::Pending(Vec::new()));
                Claim::First
            }
        }
    }

    /// Tells the outcome of a claimed key to whoever waits for it; an answer is kept.
    pub(super) fn settle(&self, key: u128, outcome: &Outcome, now: i64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.remove(key);
        if let Ok(answer) = outcome
            && answer.is_worth_keeping()
        {
            known.keep(key, answer.clone(), now);
        }
        drop(known);
        if let Some(State::Pending(waiting)) = before {
            for sender in waiting {
                // Whoever went away does not need it.
                drop(sender.send(outcome.clone()));
            }
        }
    }

    /// Takes an answer from the log back into memory.
    pub(super) fn restore(&self, key: u128, answer: Answer, time: i64) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.keep(key, answer, time);
        // Not by time: whoever comes first will see to that.
        known.expire(i64::MIN, self.capacity, self.bytes);
    }
}

impl Known {
    fn keep(&mut self, key: u128, answer: Answer, time: i64) {
        self.remove(key);
        self.bytes += answer.bytes();
        self.states.insert(key, State::Answered(answer));
        self.answered.push_back((time, key));
    }

    fn remove(&mut self, key: u128) -> Option<State> {
        let state = self.states.remove(&key);
        if let Some(State::Answered(answer)) = &state {
            self.bytes -= answer.bytes();
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
    use crate::refusal::Cause;

    fn keys() -> Keys {
        let window = std::time::Duration::from_secs(60);
        Keys::new(&Limits { key_window: window, keys: 3, key_bytes: 1000, ..Limits::default() })
    }

    fn answer(accepted: u64) -> Answer {
        Answer { accepted, ..Answer::default() }
    }

    #[test]
    fn the_first_answer_is_given_again() {
        let keys = keys();
        assert!(matches!(keys.claim(1, 0), Claim::First));
        keys.settle(1, &Ok(answer(7)), 0);
        assert!(matches!(keys.claim(1, 59_000_000), Claim::Answered(given) if given == answer(7)));
        assert!(matches!(keys.claim(1, 61_000_000), Claim::First), "the window is over");
    }

    #[test]
    fn what_answers_weigh_is_bounded() {
        let keys = keys();
        let reason = "r".repeat(500);
        let rejected = vec![super::super::Rejected { line: 1, reason }];
        let heavy = Answer { rejected, ..Answer::default() };
        for key in 0..2 {
            assert!(matches!(keys.claim(key, 0), Claim::First));
            keys.settle(key, &Ok(heavy.clone()), 0);
        }
        assert!(matches!(keys.claim(1, 0), Claim::Answered(given) if given == heavy));
        assert!(matches!(keys.claim(0, 0), Claim::First), "the older one made room");
        keys.settle(0, &Ok(answer(1)), 0);
        assert_eq!(keys.known.lock().unwrap().bytes, heavy.bytes() + answer(1).bytes());
    }

    #[test]
    fn whoever_waits_shares_the_outcome() {
        let keys = keys();
        assert!(matches!(keys.claim(1, 0), Claim::First));
        let Claim::Wait(mut waiting) = keys.claim(1, 0) else { panic!("it is pending") };
        let refusal = Refusal::new(Cause::Busy, "no room");
        keys.settle(1, &Err(refusal.clone()), 0);
        assert_eq!(waiting.try_recv().unwrap(), Err(refusal));
        assert!(matches!(keys.claim(1, 0), Claim::First), "a refused key may be tried again");
    }

    #[test]
    fn the_number_is_bounded_and_pending_keys_stay() {
        let keys = keys();
        assert!(matches!(keys.claim(100, 0), Claim::First));
        for key in 0..50 {
            keys.restore(key, answer(1), 1);
        }
        assert!(matches!(keys.claim(49, 2), Claim::Answered(_)));
        assert!(matches!(keys.claim(3, 2), Claim::First));
        assert!(matches!(keys.claim(100, 2), Claim::Wait(_)));
    }
}
