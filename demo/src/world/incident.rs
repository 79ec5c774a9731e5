//! One incident from its first signal to its resolution, in about ten minutes: a release of the invoice ledger exhausts
//! its connections, callers retry in vain, the gateway limits them, and the release is rolled back.

use crate::services::{LEDGER, Service};

const SECOND: i64 = 1_000_000;

/// A step of the incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IncidentStep {
    /// The time at which the step begins, in microseconds after the start of the incident.
    pub after_micros: i64,
    /// The description of the step, as an on-call engineer would write it.
    pub text: &'static str,
}

/// The steps of the incident, in order.
pub const INCIDENT_STEPS: [IncidentStep; 7] = [
    step(0, "Everything is normal; ledger-adapter serves its usual traffic."),
    step(DEPLOYED, "A new version of ledger-adapter is deployed."),
    step(BROKEN, "First signal: ledger-adapter answers INTERNAL_ERROR, the connection pool is exhausted."),
    step(RETRIED, "Agents retry in vain; the load on ledger-adapter multiplies."),
    step(LIMITED, "Rate limits: ledger-adapter and mcp-gateway turn callers away."),
    step(ROLLED_BACK, "The release is rolled back; failures fall."),
    step(RESOLVED, "Resolved: the failure rate is back to normal."),
];

const DEPLOYED: i64 = 45;
const BROKEN: i64 = 75;
const RETRIED: i64 = 165;
const LIMITED: i64 = 290;
const ROLLED_BACK: i64 = 430;
const RESOLVED: i64 = 570;

const fn step(seconds: i64, text: &'static str) -> IncidentStep {
    IncidentStep { after_micros: seconds * SECOND, text }
}

/// The effect of the incident on calls at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// Calls fail with internal errors.
    Broken,
    /// Calls fail with internal errors, and callers retry them.
    Retried,
    /// Calls fail with internal errors, callers retry them, and rate limits apply.
    Limited,
}

/// An incident that starts at a given time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Incident {
    pub(super) starts_at: i64,
}

impl Incident {
    pub(super) fn phase(&self, micros: i64) -> Option<Phase> {
        match (micros - self.starts_at) / SECOND {
            BROKEN..RETRIED => Some(Phase::Broken),
            RETRIED..LIMITED => Some(Phase::Retried),
            LIMITED..ROLLED_BACK => Some(Phase::Limited),
            _ => None,
        }
    }

    /// Returns true when a service runs the bad release.
    pub(super) fn is_deployed(&self, service: &Service, micros: i64) -> bool {
        let seconds = (micros - self.starts_at) / SECOND;
        service.name == LEDGER.name && (DEPLOYED..ROLLED_BACK).contains(&seconds)
    }
}
