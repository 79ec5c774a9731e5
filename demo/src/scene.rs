//! What happens next: which kind of line, and for the simple kinds the record itself.

use crate::outage;
use crate::random::{Random, Weighted};
use crate::record::Record;
use crate::services::{DEPOT, LEDGER, SERVICES, Service, TRACKER};
use Scene::{Confirmation, Failure, Quota, Success, Warning};

/// Which lines a [`Traffic`](crate::Traffic) has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mix {
    /// Half successes; half failures, warnings and audit events.
    Everyday,
    /// No plain successes. A success that carries a warning or a failed part is still there.
    FailuresOnly,
}

/// The kinds of line.
#[derive(Clone, Copy)]
pub(crate) enum Scene {
    Success,
    Failure,
    Warning,
    Quota,
    Confirmation,
}

const EVERYDAY: &[(u32, Scene)] =
    &[(50, Success), (42, Failure), (2, Warning), (3, Quota), (3, Confirmation)];
const FAILURES_ONLY: &[(u32, Scene)] = &[(42, Failure), (2, Warning), (3, Quota), (3, Confirmation)];

/// Who sends warnings: the adapters.
const WARNERS: &[&Service] = &[&TRACKER, &LEDGER, &DEPOT];

impl Mix {
    pub(crate) fn draw(self, random: &mut Random) -> Scene {
        let scenes = match self {
            Mix::Everyday => EVERYDAY,
            Mix::FailuresOnly => FAILURES_ONLY,
        };
        random.pick_weighted(scenes).1
    }
}

impl Weighted for (u32, Scene) {
    fn weight(&self) -> u32 {
        self.0
    }
}

/// A call that went well.
pub(crate) fn success(random: &mut Random, micros: i64) -> Record<'static> {
    let service = random.pick_weighted(SERVICES);
    let shape = random.pick_weighted(service.dialect.successes);
    Record::new(service, shape, random, micros)
}

/// A call that failed, for one of the usual reasons or because its service is down.
pub(crate) fn failure(random: &mut Random, micros: i64, seed: u64) -> Record<'static> {
    let service = random.pick_weighted(SERVICES);
    let shape = if outage::strikes(service, seed, micros) && !random.one_in(5) {
        &service.dialect.outage
    } else {
        random.pick_weighted(service.dialect.failures)
    };
    Record::new(service, shape, random, micros)
}

/// A call that went well, with something to mind.
pub(crate) fn warning(random: &mut Random, micros: i64) -> Record<'static> {
    let service = random.pick(WARNERS);
    let shape = random.pick_weighted(service.dialect.warnings);
    Record::new(service, shape, random, micros)
}
