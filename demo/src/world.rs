//! The world of `faultline demo`: nineteen services of an invented company, over a whole week of history and then live.
//!
//! Unlike [`Traffic`](crate::Traffic), which packs every shape into few lines, the world is plausible: most calls
//! succeed, days are busier than nights, every service has a caller, a session and a version, and some events span
//! several calls: quotas are used up and reset, a release is bad until it is fixed, callers retry in vain or correct
//! their request, operations are denied and then confirmed, a token is replayed, a client probes for a newer protocol.
//!
//! `cast` lists the services of the world, `services` and the dialects have the templates, `releases` and `rhythm` give
//! the versions and the load at a time, and `scenes` has the events.
//!
//! Invariants: the signals of a time span depend only on the seed, the span and the number of calls, so that history
//! can be continued where it ended; the state of a quota or of a release depends on the seed and the time.

mod actor;
mod cast;
mod incident;
mod protobuf;
mod releases;
mod rhythm;
mod scenes;
mod services;
mod telemetry;

#[cfg(test)]
mod tests;

use crate::random::{Random, mix};
use incident::Incident;
pub use incident::{INCIDENT_STEPS, IncidentStep};

/// One report of a call, or of another event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signal {
    /// The time at which it is sent, in microseconds since 1970.
    pub micros: i64,
    /// The content.
    pub body: SignalBody,
}

/// The content of a signal, by its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignalBody {
    /// A line of a log, without its newline.
    Line(String),
    /// The spans of one resource, preceded by the field number that they have in an OTLP request. Several of them
    /// concatenated are a valid request.
    Spans(Vec<u8>),
    /// Log records of one resource, in the same format.
    Logs(Vec<u8>),
}

/// The generator of signals.
#[derive(Debug, Clone)]
pub struct World {
    seed: u64,
    incident: Option<Incident>,
}

impl World {
    /// Creates the world without an incident.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { seed, incident: None }
    }

    /// Adds the incident of [`INCIDENT_STEPS`], which starts at this time.
    #[must_use]
    pub fn with_incident(mut self, starts_at_micros: i64) -> Self {
        self.incident = Some(Incident { starts_at: starts_at_micros });
        self
    }

    /// Returns the load of the world at a time, in thousandths of the average of a working day.
    #[must_use]
    pub fn activity(micros: i64) -> u64 {
        rhythm::activity(micros)
    }

    /// Appends the signals of `count` calls that begin in a time span. Some signals are sent up to a few minutes later.
    pub fn calls(&self, from_micros: i64, to_micros: i64, count: u64, signals: &mut Vec<Signal>) {
        let mut random = Random::new(mix(self.seed ^ mix(from_micros as u64)));
        let length = to_micros.saturating_sub(from_micros).max(1).unsigned_abs();
        for _ in 0..count {
            let micros = from_micros + random.below(length) as i64;
            scenes::play(self, micros, &mut random, signals);
        }
    }
}
