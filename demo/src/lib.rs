//! Realistic, endless, seeded traffic of MCP and agent tool servers, as NDJSON log lines.
//!
//! Ten invented services speak every error dialect that Faultline reads. Behind the single calls run stories that
//! take many lines: quotas fill up and reset, confirmations are asked for, granted and replayed, a service has a bad
//! half minute. It feeds `faultline demo`, the tests and the benchmarks.
//!
//! Almost everything is data: `services` says who talks, `dialect` how each of them wraps an answer and what goes
//! wrong there, `vocabulary` which words fill the slots. A `Record` is one line before it is written.
//!
//! What always holds: the same seed, mix and start give the same bytes on every machine (integers only: no clock, no
//! float, no hash of the standard library); and every line is JSON or logfmt, but for one in [`UNREADABLE_ONE_IN`].
//!
//! ```
//! let mut log = Vec::new();
//! let mut traffic = demo::Traffic::new(7).at(1_800_000_000_000_000);
//! traffic.next_line(&mut log);
//! assert!(log.ends_with(b"\n"));
//! ```

mod clock;
mod confirmation;
mod dialect;
mod ink;
mod outage;
mod quota;
mod random;
mod record;
mod scene;
mod services;
mod unreadable;
mod vocabulary;

#[cfg(test)]
mod tests;

use confirmation::Confirmations;
use random::Random;
pub use scene::Mix;
use scene::Scene;
pub use unreadable::UNREADABLE_ONE_IN;

/// The time of the first line unless [`Traffic::at`] says otherwise: 2026-11-01T00:00:00Z, in microseconds.
pub const START_MICROS: i64 = 1_793_491_200_000_000;

/// Lines are one to this many milliseconds apart, so about 200 of them make a second.
const LONGEST_PAUSE_MS: u64 = 9;

/// An endless log. Clone it to replay from here.
#[derive(Debug, Clone)]
pub struct Traffic {
    /// Drives what no line draws on its own: the quotas' pace and the outages.
    seed: u64,
    random: Random,
    mix: Mix,
    micros: i64,
    confirmations: Confirmations,
    unreadable_one_in: u64,
    /// The line being written; kept, so that a line costs no allocation.
    line: String,
}

impl Traffic {
    /// Traffic as on an ordinary day: about half of it successes.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::with_mix(seed, Mix::Everyday)
    }

    /// Traffic of the given mix.
    #[must_use]
    pub fn with_mix(seed: u64, mix: Mix) -> Self {
        Self {
            seed,
            random: Random::new(seed),
            mix,
            micros: START_MICROS,
            confirmations: Confirmations::default(),
            unreadable_one_in: UNREADABLE_ONE_IN,
            line: String::new(),
        }
    }

    /// The same traffic, with its next line at this time (microseconds since 1970).
    #[must_use]
    pub fn at(mut self, start_micros: i64) -> Self {
        self.micros = start_micros;
        self
    }

    /// Appends one line and its newline to `out`.
    pub fn next_line(&mut self, out: &mut Vec<u8>) {
        self.line.clear();
        if self.random.one_in(self.unreadable_one_in) {
            unreadable::write(&mut self.random, self.micros, &mut self.line);
        } else {
            self.write_scene();
        }
        out.extend_from_slice(self.line.as_bytes());
        out.push(b'\n');
        self.micros += 1_000 * (1 + self.random.below(LONGEST_PAUSE_MS) as i64);
    }

    fn write_scene(&mut self) {
        let random = &mut self.random;
        let line = &mut self.line;
        match self.mix.draw(random) {
            Scene::Success => scene::success(random, self.micros).write(line),
            Scene::Warning => scene::warning(random, self.micros).write(line),
            Scene::Failure => scene::failure(random, self.micros, self.seed).write(line),
            Scene::Quota => quota::write(random, self.micros, self.seed, line),
            Scene::Confirmation => self.confirmations.write(random, self.micros, line),
        }
    }
}

/// The first `count` everyday lines of a seed.
#[must_use]
pub fn lines(seed: u64, count: usize) -> Vec<u8> {
    let mut traffic = Traffic::new(seed);
    let mut log = Vec::new();
    for _ in 0..count {
        traffic.next_line(&mut log);
    }
    log
}
