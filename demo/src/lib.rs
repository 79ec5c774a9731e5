//! Realistic, endless, seeded traffic of MCP servers and agent tool servers, as NDJSON log lines.
//!
//! Ten invented services use every error dialect that Faultline reads. Besides single calls there are flows that span
//! many lines: quotas fill up and reset, confirmations are requested, granted and replayed, and services have outages
//! of half a minute. The traffic feeds the tests and the benchmarks, which need every shape within few lines.
//! `faultline demo` shows a [`World`] instead, in which most calls succeed and flows take a realistic time.
//!
//! Almost everything is data: `services` has the services, `dialect` has the response templates and the faults of each
//! dialect, and `vocabulary` has the values of the template slots. A `Record` describes one line.
//!
//! Invariants of [`Traffic`]: the same seed, mix and start give the same bytes on every machine (only integers are
//! used: no clock, no floats, no hash of the standard library); and every line is JSON or logfmt, except one in
//! [`MALFORMED_ONE_IN`].
//!
//! ```
//! let mut log = Vec::new();
//! let mut traffic = demo::Traffic::new(7).at(1_800_000_000_000_000);
//! traffic.next_line(&mut log);
//! assert!(log.ends_with(b"\n"));
//! ```

mod confirmation;
mod dialect;
mod json_writer;
mod line_kind;
mod malformed;
mod outage;
mod quota;
mod random;
mod record;
mod services;
mod timestamp;
mod vocabulary;
mod world;

#[cfg(test)]
mod tests;

use confirmation::Confirmations;
use line_kind::LineKind;
pub use line_kind::Mix;
pub use malformed::MALFORMED_ONE_IN;
use random::Random;
pub use world::{INCIDENT_STEPS, IncidentStep, Signal, SignalBody, World};

/// The time of the first line unless [`Traffic::at`] sets another: 2026-11-01T00:00:00Z, in microseconds.
pub const START_MICROS: i64 = 1_793_491_200_000_000;

/// The longest time between two lines, in milliseconds. The shortest is one, so there are about 200 lines a second.
const MAX_PAUSE_MS: u64 = 9;

/// An endless log. A clone continues from the same position with the same lines.
#[derive(Debug, Clone)]
pub struct Traffic {
    /// The seed of the state that many lines share: quota usage and outages.
    seed: u64,
    random: Random,
    mix: Mix,
    micros: i64,
    confirmations: Confirmations,
    malformed_one_in: u64,
    /// The buffer of the current line, reused so that a line costs no allocation.
    line: String,
}

impl Traffic {
    /// Creates everyday traffic, in which about half of the lines are successes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_mix(seed, Mix::Everyday)
    }

    /// Creates traffic of the given mix.
    #[must_use]
    pub fn with_mix(seed: u64, mix: Mix) -> Self {
        Self {
            seed,
            random: Random::new(seed),
            mix,
            micros: START_MICROS,
            confirmations: Confirmations::default(),
            malformed_one_in: MALFORMED_ONE_IN,
            line: String::new(),
        }
    }

    /// Sets the time of the next line, in microseconds since 1970.
    #[must_use]
    pub fn at(mut self, start_micros: i64) -> Self {
        self.micros = start_micros;
        self
    }

    /// Appends one line and its newline to `out`.
    pub fn next_line(&mut self, out: &mut Vec<u8>) {
        self.line.clear();
        if self.random.one_in(self.malformed_one_in) {
            malformed::write(&mut self.random, self.micros, &mut self.line);
        } else {
            self.write_record();
        }
        out.extend_from_slice(self.line.as_bytes());
        out.push(b'\n');
        self.micros += 1_000 * (1 + self.random.below(MAX_PAUSE_MS) as i64);
    }

    fn write_record(&mut self) {
        let random = &mut self.random;
        let line = &mut self.line;
        match self.mix.draw(random) {
            LineKind::Success => line_kind::success(random, self.micros).write(line),
            LineKind::Warning => line_kind::warning(random, self.micros).write(line),
            LineKind::Failure => line_kind::failure(random, self.micros, self.seed).write(line),
            LineKind::Quota => quota::write(random, self.micros, self.seed, line),
            LineKind::Confirmation => self.confirmations.write(random, self.micros, line),
        }
    }
}

/// Returns the first `count` lines of everyday traffic.
#[must_use]
pub fn lines(seed: u64, count: usize) -> Vec<u8> {
    let mut traffic = Traffic::new(seed);
    let mut log = Vec::new();
    for _ in 0..count {
        traffic.next_line(&mut log);
    }
    log
}
