//! The clock that maintenance uses: see [`crate::clock`].

use crate::clock::{
    self, ClockGuard, ClockMark, ClockTimes, ClockVerdict, ClockWitnesses, TrustReason, WITNESS_US,
    differ_little,
};
use crate::delta::{DeltaTables, layout};
use crate::directory::DataDirectory;
use crate::schema::Table;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The interval at which the state of the clock is written to disk without an event.
const MARK_EVERY_US: i64 = 10 * 60 * 1_000_000;

/// The state of the trusted clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockStats {
    /// The wall clock has jumped, and nothing is removed until it is trusted again.
    pub is_held: bool,
    /// The difference between the wall clock and its expected time, in microseconds.
    pub offset_us: i64,
    /// The number of jumps that this process has seen.
    pub jumps: u64,
}

/// The clocks of one process.
#[derive(Debug)]
pub(super) struct Clocks {
    directory: DataDirectory,
    wall: fn() -> i64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The guard; `None` before the tables were available to compare with.
    guard: Option<ClockGuard>,
    stats: ClockStats,
    /// The time of the steady clock when the mark was last written.
    marked_us: Option<i64>,
}

/// The time and the permissions for one step of maintenance.
#[derive(Debug, Clone, Copy)]
pub(super) struct Trusted {
    /// The time, in microseconds since 1970.
    pub(super) now_us: i64,
    /// True if data may be deleted because of its age.
    pub(super) may_remove: bool,
}

impl Clocks {
    pub(super) fn new(directory: &DataDirectory, wall: fn() -> i64) -> Self {
        Self { directory: directory.clone(), wall, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn stats(&self) -> ClockStats {
        self.state().stats
    }

    /// Compares the clocks, and returns the time that the following maintenance must use.
    pub(super) fn look(&self, delta: &DeltaTables) -> Trusted {
        let now = ClockTimes::now(self.wall);
        let mut state = self.state();
        let State { guard, stats, marked_us } = &mut *state;
        let mut is_news = false;
        let guard = guard.get_or_insert_with(|| {
            let guard = ClockGuard::new(ClockMark::read(&self.directory), newest_stored(delta), now);
            if guard.is_held() {
                stats.jumps += 1;
                is_news = true;
                tell_jump(guard.offset_us(now));
            }
            guard
        });
        let witnesses = self.witnesses(guard, delta, now);
        let verdict = guard.observe(now, witnesses);
        is_news |= verdict != ClockVerdict::Unchanged;
        tell(verdict);
        stats.jumps += u64::from(matches!(verdict, ClockVerdict::Jumped { .. }));
        (stats.is_held, stats.offset_us) = (guard.is_held(), guard.offset_us(now));
        if is_news || marked_us.is_none_or(|marked| now.steady_us - marked >= MARK_EVERY_US) {
            *marked_us = Some(now.steady_us);
            self.write(guard.mark(now));
        }
        Trusted { now_us: guard.trusted_us(now), may_remove: !guard.is_held() }
    }

    /// Writes the state to disk, for the next process.
    pub(super) fn remember(&self) {
        let now = ClockTimes::now(self.wall);
        let mark = self.state().guard.as_ref().map(|guard| guard.mark(now));
        mark.into_iter().for_each(|mark| self.write(mark));
    }

    fn write(&self, mark: ClockMark) {
        if let Err(error) = mark.write(&self.directory) {
            tracing::warn!(%error, "cannot write down what time it is; the next start may hold removal for a day");
        }
    }

    /// Returns the evidence for or against the wall clock, which is only collected when it matters.
    fn witnesses(&self, guard: &ClockGuard, delta: &DeltaTables, now: ClockTimes) -> ClockWitnesses {
        if !guard.is_held() {
            return ClockWitnesses::default();
        }
        ClockWitnesses {
            is_confirmed: clock::take_confirmation(&self.directory, now),
            is_contradicted: senders_contradict(delta, guard.trusted_us(now), now.wall_us),
        }
    }
}

/// Returns the newest storage time in the tables.
fn newest_stored(delta: &DeltaTables) -> Option<i64> {
    let newest_of = |table| delta.files(table).files.iter().map(|file| file.written_at).max();
    Table::ALL.into_iter().filter_map(newest_of).max().map(|millis| millis.saturating_mul(1000))
}

/// Returns true if recent events have the trusted time, and none has the wall clock's.
fn senders_contradict(delta: &DeltaTables, trusted_us: i64, wall_us: i64) -> bool {
    let files = delta.files(Table::Events);
    let time = layout::of(Table::Events).time;
    let is_recent = |written_ms: i64| written_ms.saturating_mul(1000) >= trusted_us - WITNESS_US;
    let recent = files.files.iter().filter(|file| is_recent(file.written_at));
    let newest: Vec<i64> =
        recent.filter_map(|file| file.statistics.times(time)).map(|(_, newest)| newest).collect();
    newest.iter().any(|newest| differ_little(*newest, trusted_us))
        && !newest.iter().any(|newest| differ_little(*newest, wall_us))
}

fn tell(verdict: ClockVerdict) {
    match verdict {
        ClockVerdict::Unchanged => {}
        ClockVerdict::Jumped { by_us } => tell_jump(by_us),
        ClockVerdict::Back => tracing::info!("the clock is back; what is old is removed again"),
        ClockVerdict::Accepted(TrustReason::Confirmed) => {
            tracing::info!("the clock was confirmed by an operator; what is old is removed again");
        }
        ClockVerdict::Accepted(TrustReason::Steady) => tracing::warn!(
            "the clock has gone on steadily for a day since it jumped, and is trusted; what is old is removed again"
        ),
    }
}

fn tell_jump(by_us: i64) {
    tracing::error!(
        jumped_by_s = by_us / 1_000_000,
        "the clock jumped by more than a day, or the server was off for so long; nothing is removed until the clock is \
         back, or has gone on steadily for a day, or `faultline check --confirm-clock` says that it is right"
    );
}
