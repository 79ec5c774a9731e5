//! Decides whether the wall clock can be trusted with deleting data.
//!
//! Retention and vacuum delete data by its age, which is computed from the wall clock. A wall clock that jumps (an
//! empty battery, a broken time server, a restored virtual machine) would make all data old at once. So the guard keeps
//! a time of its own: it starts at the newest time that is known to have been right, and advances with a clock that
//! only counts the time while the machine is on. As long as the wall clock stays within a day of this time, the wall
//! clock is trusted. When the two differ by more, removal is *held*, until one of three things happens:
//! - the wall clock comes back to within a day;
//! - an operator confirms it (`faultline check --confirm-clock`);
//! - it proves itself: it has advanced steadily for a day, and the times of senders do not contradict it.
//!
//! A server that was off for more than a day cannot distinguish that from a jump, and so it holds removal for its first
//! day.
//!
//! Invariants: the state of the guard is stored in `clock.json` of the data directory, so that a restart does not hide
//! a jump; and a hold stops nothing but removal.

use crate::directory::{DataDirectory, DirectoryError};
use serde::{Deserialize, Serialize};
use std::io;

/// Smaller differences are corrections; larger ones are jumps.
pub const JUMP_US: i64 = 24 * 60 * 60 * 1_000_000;
/// The time after which a wall clock that advances steadily has proved itself.
pub const PROOF_US: i64 = 24 * 60 * 60 * 1_000_000;
/// The period in which the times of senders count as evidence.
pub const WITNESS_US: i64 = 60 * 60 * 1_000_000;

/// Two clocks at one moment, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockTimes {
    /// The wall clock, since 1970.
    pub wall_us: i64,
    /// A clock that never jumps; its start is arbitrary.
    pub steady_us: i64,
}

impl ClockTimes {
    /// Reads the wall clock, and the time since the machine was started, including suspension.
    #[must_use]
    pub fn now(wall: fn() -> i64) -> Self {
        let passed = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Self { wall_us: wall(), steady_us: passed.tv_sec * 1_000_000 + passed.tv_nsec / 1000 }
    }

    fn since(self, earlier: Self) -> i64 {
        self.steady_us.saturating_sub(earlier.steady_us)
    }
}

/// The state of the clock that is stored while no server runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClockMark {
    /// The newest trusted time.
    pub trusted_us: i64,
    /// The wall clock at that time.
    pub wall_us: i64,
    /// The time for which an untrusted wall clock has advanced steadily.
    #[serde(default)]
    pub proven_us: i64,
}

impl ClockMark {
    /// Reads the state that an earlier server stored. Returns `None` when there is none, or when it cannot be parsed.
    #[must_use]
    pub fn read(directory: &DataDirectory) -> Option<Self> {
        let path = directory.clock();
        let found = std::fs::read(&path).map(|bytes| serde_json::from_slice(&bytes));
        match found {
            Ok(Ok(mark)) => Some(mark),
            Ok(Err(error)) => {
                tracing::warn!(%error, path = %path.display(), "what is known of the clock cannot be read");
                None
            }
            Err(_) => None,
        }
    }

    /// Stores the state durably.
    ///
    /// # Errors
    /// Fails when the file cannot be written.
    pub fn write(self, directory: &DataDirectory) -> Result<(), DirectoryError> {
        let text = serde_json::to_string(&self).unwrap_or_default();
        directory.write(&directory.clock(), format!("{text}\n").as_bytes())
    }
}

/// The confirmation of an operator that the wall clock is right.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Confirmation {
    wall_us: i64,
}

/// Confirms the wall clock to the server that uses this directory, or will use it next.
///
/// # Errors
/// Fails when the directory cannot be written.
pub fn confirm(directory: &DataDirectory, wall_us: i64) -> Result<(), DirectoryError> {
    let text = serde_json::to_string(&Confirmation { wall_us }).unwrap_or_default();
    directory.write(&directory.clock_confirmation(), format!("{text}\n").as_bytes())
}

/// Takes an operator's confirmation, if there is one. Returns true if it matches the present time of the wall clock.
pub(crate) fn take_confirmation(directory: &DataDirectory, now: ClockTimes) -> bool {
    let path = directory.clock_confirmation();
    let Ok(bytes) = std::fs::read(&path) else { return false };
    if let Err(error) = std::fs::remove_file(&path)
        && error.kind() != io::ErrorKind::NotFound
    {
        tracing::warn!(%error, path = %path.display(), "cannot remove the confirmation of the clock");
        return false;
    }
    serde_json::from_slice::<Confirmation>(&bytes)
        .is_ok_and(|confirmed| differ_little(confirmed.wall_us, now.wall_us))
}

/// The result of one comparison of the clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockVerdict {
    /// Nothing has changed.
    Unchanged,
    /// The wall clock has jumped, and removal of data is suspended.
    Jumped {
        /// The jump in microseconds; negative when the clock went back.
        by_us: i64,
    },
    /// The wall clock has returned to the expected time.
    Back,
    /// The wall clock is trusted as it is.
    Accepted(TrustReason),
}

/// The reason why a wall clock that has jumped is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustReason {
    /// An operator has confirmed it.
    Confirmed,
    /// It has advanced steadily for long enough.
    Steady,
}

/// Evidence for or against the wall clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockWitnesses {
    /// An operator has confirmed it.
    pub is_confirmed: bool,
    /// The times of senders agree with the trusted time, and not with the wall clock.
    pub is_contradicted: bool,
}

/// Compares the wall clock with a steady clock, and decides whether it is trusted.
#[derive(Debug)]
pub struct ClockGuard {
    /// The trusted time, and the steady clock at that moment.
    anchor: ClockTimes,
    hold: Option<UntrustedClock>,
}

/// A wall clock that is not trusted.
#[derive(Debug, Clone, Copy)]
struct UntrustedClock {
    /// The clocks when the jump was first seen in this process.
    from: ClockTimes,
    /// The time for which the wall clock had advanced steadily before that.
    proven_us: i64,
}

impl ClockGuard {
    /// Starts from the stored state of an earlier server, or else from the newest stored time. Without either there is nothing
    /// to compare with, and the wall clock is trusted.
    #[must_use]
    pub fn new(mark: Option<ClockMark>, newest_stored_us: Option<i64>, now: ClockTimes) -> Self {
        let known = mark.map(|mark| mark.trusted_us).or(newest_stored_us).unwrap_or(now.wall_us);
        if differ_little(known, now.wall_us) {
            return Self { anchor: now, hold: None };
        }
        // It continues to prove itself where it was interrupted, if it is the same wall clock.
        let goes_on = |mark: &ClockMark| (0..=JUMP_US).contains(&now.wall_us.saturating_sub(mark.wall_us));
        let proven_us = mark.filter(goes_on).map_or(0, |mark| mark.proven_us);
        let anchor = ClockTimes { wall_us: known, steady_us: now.steady_us };
        Self { anchor, hold: Some(UntrustedClock { from: now, proven_us }) }
    }

    /// Returns the trusted time: that of the wall clock, unless removal is held.
    #[must_use]
    pub fn trusted_us(&self, now: ClockTimes) -> i64 {
        match self.hold {
            None => now.wall_us,
            Some(_) => self.expected_us(now),
        }
    }

    /// Returns the expected wall clock, within a day.
    fn expected_us(&self, now: ClockTimes) -> i64 {
        self.anchor.wall_us.saturating_add(now.since(self.anchor))
    }

    /// Returns true while nothing may be deleted.
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.hold.is_some()
    }

    /// Returns the difference between the wall clock and its expected time.
    #[must_use]
    pub fn offset_us(&self, now: ClockTimes) -> i64 {
        now.wall_us.saturating_sub(self.expected_us(now))
    }

    /// Compares the clocks once more.
    pub fn observe(&mut self, now: ClockTimes, witnesses: ClockWitnesses) -> ClockVerdict {
        let offset = self.offset_us(now);
        match self.hold {
            None if offset.abs() > JUMP_US => {
                self.hold = Some(UntrustedClock { from: now, proven_us: 0 });
                ClockVerdict::Jumped { by_us: offset }
            }
            None => {
                // Corrections may add up to at most a day per day.
                if now.since(self.anchor) >= PROOF_US {
                    self.anchor = now;
                }
                ClockVerdict::Unchanged
            }
            Some(_) if offset.abs() <= JUMP_US => {
                self.hold = None;
                ClockVerdict::Back
            }
            Some(hold) => self.observe_held(hold, now, witnesses),
        }
    }

    fn observe_held(
        &mut self,
        hold: UntrustedClock,
        now: ClockTimes,
        witnesses: ClockWitnesses,
    ) -> ClockVerdict {
        if witnesses.is_confirmed {
            return self.accept(now, TrustReason::Confirmed);
        }
        let drift = now.wall_us.saturating_sub(hold.from.wall_us.saturating_add(now.since(hold.from)));
        if drift.abs() > JUMP_US {
            self.hold = Some(UntrustedClock { from: now, proven_us: 0 });
            return ClockVerdict::Jumped { by_us: self.offset_us(now) };
        }
        if hold.proven_us.saturating_add(now.since(hold.from)) >= PROOF_US && !witnesses.is_contradicted {
            return self.accept(now, TrustReason::Steady);
        }
        ClockVerdict::Unchanged
    }

    fn accept(&mut self, now: ClockTimes, trust_reason: TrustReason) -> ClockVerdict {
        (self.anchor, self.hold) = (now, None);
        ClockVerdict::Accepted(trust_reason)
    }

    /// Returns the state to store for the next server.
    #[must_use]
    pub fn mark(&self, now: ClockTimes) -> ClockMark {
        let proven_us =
            self.hold.map_or(0, |hold| hold.proven_us.saturating_add(now.since(hold.from)).min(PROOF_US));
        ClockMark { trusted_us: self.trusted_us(now), wall_us: now.wall_us, proven_us }
    }
}

/// Returns true if two times are so close that one is a correction of the other.
#[must_use]
pub fn differ_little(left_us: i64, right_us: i64) -> bool {
    left_us.saturating_sub(right_us).abs() <= JUMP_US
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = JUMP_US;
    const HOUR: i64 = DAY / 24;
    const NOW: i64 = 1_794_787_200_000_000;

    /// A machine whose wall clock can be set.
    struct Machine {
        guard: ClockGuard,
        now: ClockTimes,
    }

    impl Machine {
        fn new(mark: Option<ClockMark>, newest: Option<i64>, wall_us: i64) -> Self {
            let now = ClockTimes { wall_us, steady_us: 77 };
            Self { guard: ClockGuard::new(mark, newest, now), now }
        }

        /// Lets time pass, compares the clocks once an hour, and returns the changes.
        fn pass(&mut self, passed: i64, witnesses: ClockWitnesses) -> Vec<ClockVerdict> {
            let mut found = Vec::new();
            for _ in 0..passed / HOUR {
                self.now.wall_us += HOUR;
                self.now.steady_us += HOUR;
                found.push(self.guard.observe(self.now, witnesses));
            }
            found.retain(|verdict| *verdict != ClockVerdict::Unchanged);
            found
        }

        fn set(&mut self, by: i64) -> ClockVerdict {
            self.now.wall_us += by;
            self.guard.observe(self.now, ClockWitnesses::default())
        }

        /// Returns the same machine after a restart.
        fn restarted(&self, off: i64) -> Self {
            Self::new(Some(self.guard.mark(self.now)), None, self.now.wall_us + off)
        }
    }

    const NOBODY: ClockWitnesses = ClockWitnesses { is_confirmed: false, is_contradicted: false };

    #[test]
    fn an_ordinary_clock_is_followed_for_ever() {
        let mut machine = Machine::new(None, None, NOW);
        for _ in 0..100 {
            assert_eq!(machine.pass(20 * HOUR, NOBODY), []);
            assert_eq!(machine.set(HOUR), ClockVerdict::Unchanged, "an hour a day is a correction");
            assert_eq!(machine.guard.trusted_us(machine.now), machine.now.wall_us);
        }
        assert!(!machine.restarted(DAY / 2).guard.is_held());
    }

    #[test]
    fn a_jump_holds_until_it_is_undone() {
        for by in [600 * DAY, 2 * DAY, -600 * DAY, -2 * DAY] {
            let mut machine = Machine::new(None, None, NOW);
            assert_eq!(machine.pass(DAY / 2, NOBODY), []);
            assert_eq!(machine.set(by), ClockVerdict::Jumped { by_us: by });
            assert_eq!(machine.pass(DAY / 4, NOBODY), []);
            assert!(machine.guard.is_held());
            assert_eq!(machine.guard.trusted_us(machine.now), NOW + DAY / 2 + DAY / 4);
            assert_eq!(machine.set(-by), ClockVerdict::Back);
            assert!(!machine.guard.is_held());
        }
    }

    /// Small steps must not add up to an unnoticed jump.
    #[test]
    fn many_small_steps_are_a_jump() {
        let mut machine = Machine::new(None, None, NOW);
        let found: Vec<_> = (0..4).map(|_| machine.set(23 * HOUR)).collect();
        assert_eq!(found[..2], [ClockVerdict::Unchanged, ClockVerdict::Jumped { by_us: 46 * HOUR }]);
        assert!(machine.guard.is_held());
    }

    #[test]
    fn a_clock_proves_itself_in_a_day_also_over_restarts() {
        let mut machine = Machine::new(None, None, NOW);
        machine.pass(DAY, NOBODY);
        // The machine is off for a month.
        let mut machine = machine.restarted(30 * DAY);
        assert!(machine.guard.is_held());
        assert_eq!(machine.pass(10 * HOUR, NOBODY), []);
        let mut machine = machine.restarted(HOUR);
        assert_eq!(machine.pass(10 * HOUR, NOBODY), []);
        let mut machine = machine.restarted(HOUR);
        assert!(machine.guard.is_held());
        assert_eq!(machine.pass(5 * HOUR, NOBODY), [ClockVerdict::Accepted(TrustReason::Steady)]);
        assert_eq!(machine.guard.trusted_us(machine.now), machine.now.wall_us);
        assert!(!machine.restarted(0).guard.is_held());
    }

    #[test]
    fn a_restart_does_not_make_a_jump_the_truth() {
        let mut machine = Machine::new(None, None, NOW);
        machine.set(600 * DAY);
        machine.pass(10 * HOUR, NOBODY);
        for _ in 0..5 {
            machine = machine.restarted(0);
            assert!(machine.guard.is_held());
        }
        // Another jump starts a new hold.
        assert_eq!(machine.set(100 * DAY), ClockVerdict::Jumped { by_us: 700 * DAY });
        assert_eq!(machine.pass(23 * HOUR, NOBODY), []);
        assert_eq!(machine.pass(HOUR, NOBODY), [ClockVerdict::Accepted(TrustReason::Steady)]);
    }

    #[test]
    fn an_operator_is_believed_at_once_and_senders_are_heard() {
        let confirmed = ClockWitnesses { is_confirmed: true, is_contradicted: true };
        let mut machine = Machine::new(None, None, NOW);
        machine.set(600 * DAY);
        assert_eq!(machine.pass(HOUR, confirmed), [ClockVerdict::Accepted(TrustReason::Confirmed)]);
        let contradicted = ClockWitnesses { is_contradicted: true, is_confirmed: false };
        machine.set(600 * DAY);
        assert_eq!(machine.pass(10 * DAY, contradicted), []);
        assert_eq!(machine.pass(HOUR, NOBODY), [ClockVerdict::Accepted(TrustReason::Steady)]);
    }

    /// A directory of a version that stored no mark is compared with the newest stored time.
    #[test]
    fn without_a_mark_what_is_stored_is_compared_with() {
        assert!(!Machine::new(None, Some(NOW - HOUR), NOW).guard.is_held());
        assert!(Machine::new(None, Some(NOW - 600 * DAY), NOW).guard.is_held());
        assert!(Machine::new(None, Some(NOW + 2 * DAY), NOW).guard.is_held());
        let mark = ClockMark { trusted_us: NOW, wall_us: NOW, proven_us: 0 };
        assert!(!Machine::new(Some(mark), Some(0), NOW).guard.is_held());
    }

    #[test]
    fn marks_and_confirmations_are_kept_in_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, _lock) = DataDirectory::claim(folder.path()).unwrap();
        assert_eq!(ClockMark::read(&directory), None);
        let mark = ClockMark { trusted_us: 1, wall_us: 2, proven_us: 3 };
        mark.write(&directory).unwrap();
        assert_eq!(ClockMark::read(&directory), Some(mark));
        std::fs::write(directory.clock(), "?").unwrap();
        assert_eq!(ClockMark::read(&directory), None);
        let now = ClockTimes { wall_us: NOW, steady_us: 0 };
        assert!(!take_confirmation(&directory, now));
        confirm(&directory, NOW - HOUR).unwrap();
        assert!(take_confirmation(&directory, now));
        assert!(!take_confirmation(&directory, now), "it is good for once");
        confirm(&directory, NOW - 2 * DAY).unwrap();
        assert!(!take_confirmation(&directory, now), "it was about another time");
    }
}
