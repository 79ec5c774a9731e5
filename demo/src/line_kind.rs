//! The kinds of lines, and the records of the simple kinds.

use crate::outage;
use crate::random::{Random, Weighted};
use crate::record::Record;
use crate::services::{DEPOT, LEDGER, SERVICES, Service, TRACKER};
use LineKind::{Confirmation, Failure, Quota, Success, Warning};

/// The mix of lines in a [`Traffic`](crate::Traffic).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Half of the lines are successes; the others are failures, warnings and audit events.
    Everyday,
    /// There are no plain successes, only those with a warning or a failed part.
    FailuresOnly,
}

/// The kind of a line.
#[derive(Clone, Copy)]
pub(crate) enum LineKind {
    Success,
    Failure,
    Warning,
    Quota,
    Confirmation,
}

const EVERYDAY: &[(u32, LineKind)] =
    &[(50, Success), (42, Failure), (2, Warning), (3, Quota), (3, Confirmation)];
const FAILURES_ONLY: &[(u32, LineKind)] = &[(42, Failure), (2, Warning), (3, Quota), (3, Confirmation)];

/// The services that send warnings, which are the adapters.
const WARNING_SERVICES: &[&Service] = &[&TRACKER, &LEDGER, &DEPOT];

impl Mix {
    pub(crate) fn draw(self, random: &mut Random) -> LineKind {
        let kinds = match self {
            Mix::Everyday => EVERYDAY,
            Mix::FailuresOnly => FAILURES_ONLY,
        };
        random.pick_weighted(kinds).1
    }
}

impl Weighted for (u32, LineKind) {
    fn weight(&self) -> u32 {
        self.0
    }
}

/// Returns a successful call.
pub(crate) fn success(random: &mut Random, micros: i64) -> Record<'static> {
    let service = random.pick_weighted(SERVICES);
    let shape = random.pick_weighted(service.dialect.successes);
    Record::new(service, shape, random, micros)
}

/// Returns a failed call. Its fault is one of an outage if the service is down, and otherwise a common one.
pub(crate) fn failure(random: &mut Random, micros: i64, seed: u64) -> Record<'static> {
    let service = random.pick_weighted(SERVICES);
    let shape = if outage::is_down(service, seed, micros) && !random.one_in(5) {
        &service.dialect.outage
    } else {
        random.pick_weighted(service.dialect.failures)
    };
    Record::new(service, shape, random, micros)
}

/// Returns a successful call with a warning.
pub(crate) fn warning(random: &mut Random, micros: i64) -> Record<'static> {
    let service = random.pick(WARNING_SERVICES);
    let shape = random.pick_weighted(service.dialect.warnings);
    Record::new(service, shape, random, micros)
}
