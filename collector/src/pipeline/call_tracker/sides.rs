//! The outcome of a call as its two sides report it.
//!
//! A server may answer a call that its client has given up on: the call failed, although the server reports a success.
//! The same holds for a client of several layers, of which only the outermost sees the failure. Whichever report comes
//! first, the call counts once on each side, and as failed: a success that was counted before is corrected.

use classifier::Outcome;
use std::num::NonZeroU32;

/// A side of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pipeline) enum Side {
    /// The side that receives the request.
    Answering,
    /// The side that sends the request, or waits for it.
    Calling,
}

impl Side {
    /// Returns the side of a call that a span of this kind reports.
    pub(in crate::pipeline) fn of(span_kind: Option<&str>) -> Self {
        match span_kind {
            Some("client" | "producer" | "internal") => Self::Calling,
            _ => Self::Answering,
        }
    }
}

/// The row of traffic that a call was counted in: its minute since 1970, and the number of its other attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pipeline) struct TrafficPosition {
    pub(in crate::pipeline) minute: i32,
    pub(in crate::pipeline) names: NonZeroU32,
}

/// A call as one span reports it.
#[derive(Debug, Clone, Copy)]
pub(in crate::pipeline) struct CallReport {
    pub(in crate::pipeline) side: Side,
    pub(in crate::pipeline) outcome: Outcome,
    /// A hash of the service that reports it.
    pub(in crate::pipeline) service: u64,
    /// The row of traffic that counts the call; needed only if it succeeded.
    pub(in crate::pipeline) counted_at: Option<TrafficPosition>,
}

/// A call that was counted as a success, and turned out to have failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pipeline) struct Correction {
    pub(in crate::pipeline) counted_at: TrafficPosition,
    pub(in crate::pipeline) outcome: Outcome,
}

/// The corrections of the two sides.
pub(in crate::pipeline) type Corrections = [Option<Correction>; 2];

/// How a span counts in traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pipeline) struct Counting {
    /// The outcome to count, or `None` if another span of this side counts the call.
    pub(in crate::pipeline) outcome: Option<Outcome>,
    pub(in crate::pipeline) corrections: Corrections,
}

/// The two sides of a call.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sides([SideState; 2]);

#[derive(Debug, Clone, Copy, Default)]
struct SideState {
    /// The span that counted the call; zero if none did.
    counted_by: u64,
    /// A hash of the service of that span.
    service: u64,
    /// The row of traffic that counted the call as a success.
    counted_ok: Option<TrafficPosition>,
    /// The outcome of the first span of this side that failed.
    failed: Option<Outcome>,
}

impl Sides {
    /// Adds the report of a span.
    pub(super) fn count(&mut self, span: u64, call: &CallReport) -> Counting {
        let has_failed = matches!(call.outcome, Outcome::Failed | Outcome::Hidden);
        let state = &mut self.0[call.side as usize];
        if has_failed {
            state.failed = state.failed.or(Some(call.outcome));
        }
        let counts = state.counted_by == 0 || state.counted_by == span;
        if counts {
            (state.counted_by, state.service) = (span, call.service);
        }
        let corrections = self.settle();
        let outcome = counts.then(|| match self.failure(call.side) {
            Some(failure) if call.outcome == Outcome::Ok => failure,
            _ => call.outcome,
        });
        if outcome == Some(Outcome::Ok) {
            self.0[call.side as usize].counted_ok = call.counted_at;
        }
        Counting { outcome, corrections }
    }

    /// Returns the outcome of a call that failed as this side or the one that waits for it sees it.
    fn failure(&self, side: Side) -> Option<Outcome> {
        let [answering, calling] = self.0.map(|state| state.failed);
        match side {
            Side::Answering => answering.or(calling),
            Side::Calling => calling,
        }
    }

    /// Returns and removes the successes that turned out to be failures.
    pub(super) fn settle(&mut self) -> Corrections {
        [Side::Answering, Side::Calling].map(|side| {
            let outcome = self.failure(side)?;
            let counted_at = self.0[side as usize].counted_ok.take()?;
            Some(Correction { counted_at, outcome })
        })
    }

    /// Adds the sides of a call that turned out to be the same.
    pub(super) fn unite(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            if mine.counted_by == 0 {
                (mine.counted_by, mine.service, mine.counted_ok) =
                    (theirs.counted_by, theirs.service, theirs.counted_ok);
            }
            mine.failed = mine.failed.or(theirs.failed);
        }
    }

    /// Reports whether a span of the answering side was seen.
    pub(super) fn is_answered(&self) -> bool {
        self.0[Side::Answering as usize].counted_by != 0
    }

    /// Returns the service of the calling side if both sides of the call are in one trace.
    pub(super) fn linked_caller(&self) -> Option<u64> {
        let caller = &self.0[Side::Calling as usize];
        (self.is_answered() && caller.counted_by != 0).then_some(caller.service)
    }
}
