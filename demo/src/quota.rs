//! Quotas that fill up while time passes: first warnings, then a pause that a person may lift, then nothing more
//! until the window ends.
//!
//! Nothing is remembered. How full a quota is follows from the time in its window and from how busy that window is,
//! so usage never falls within a window, every line names the same end, and the story holds at any pace.

use crate::dialect::mcp_aql_faults::warning;
use crate::dialect::{Fault, fault};
use crate::random::{Random, mix};
use crate::record::{Fact, Facts, Record};
use crate::scene;
use crate::services::{DEPOT, LEDGER, Service, TRACKER};

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Warnings start at this share of the hard stop, the pause at the next.
const WARN_PERCENT: i64 = 70;
const PAUSE_PERCENT: i64 = 88;

/// What one tenant may use of one service.
struct Quota {
    service: &'static Service,
    tenant: &'static str,
    metric: &'static str,
    /// Empty for a count; else the quota is money, and its numbers are hundredths.
    currency: &'static str,
    hard_stop: i64,
    window: i64,
    /// When the windows turn, after the whole minute, hour or day.
    turns_at: i64,
    /// How much of the hard stop a window would use in all, in percent: the quietest and the busiest.
    busy: (u64, u64),
}

const QUOTAS: &[Quota] = &[
    Quota {
        service: &TRACKER,
        tenant: "halden-freight",
        metric: "requests_per_minute",
        currency: "",
        hard_stop: 600,
        window: MINUTE,
        turns_at: 0,
        busy: (90, 160),
    },
    Quota {
        service: &LEDGER,
        tenant: "brightwater",
        metric: "tokens_per_minute",
        currency: "",
        hard_stop: 90_000,
        window: MINUTE,
        turns_at: 25 * SECOND,
        busy: (80, 140),
    },
    Quota {
        service: &DEPOT,
        tenant: "juniper-rail",
        metric: "requests_per_hour",
        currency: "",
        hard_stop: 5_000,
        window: HOUR,
        turns_at: 5 * MINUTE,
        busy: (85, 115),
    },
    Quota {
        service: &LEDGER,
        tenant: "quillworks",
        metric: "cost_per_day",
        currency: r#","currency":"EUR""#,
        hard_stop: 40_00,
        window: DAY,
        turns_at: 30 * MINUTE,
        busy: (75, 99),
    },
];

/// How far a quota is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Quiet,
    Warning,
    Pause,
    Exhausted,
}

/// A quota at one moment.
struct Reading {
    level: Level,
    current: i64,
    resets_at: i64,
}

/// Writes what a quota that is filling up has to say; while all are quiet, a failure of another kind.
pub(crate) fn write(random: &mut Random, micros: i64, seed: u64, line: &mut String) {
    let first = random.below(QUOTAS.len() as u64) as usize;
    let mut in_turn = QUOTAS.iter().cycle().skip(first).take(QUOTAS.len());
    match in_turn.find(|quota| quota.read(seed, micros).level > Level::Quiet) {
        Some(quota) => quota.write(random, micros, seed, line),
        None => scene::failure(random, micros, seed).write(line),
    }
}

impl Quota {
    fn read(&self, seed: u64, micros: i64) -> Reading {
        let elapsed = (micros - self.turns_at).rem_euclid(self.window);
        let start = micros - elapsed;
        let (quietest, busiest) = self.busy;
        let busy = quietest + self.luck(seed, start) % (busiest - quietest);
        // In this order nothing overflows: a share of the window in thousandths of a percent, then of the stop.
        let share = busy as i64 * 1_000 * (elapsed / 1_000) / (self.window / 1_000);
        let current = (self.hard_stop * share / 100_000).min(self.hard_stop);
        Reading { level: self.level(current), current, resets_at: start + self.window }
    }

    fn level(&self, current: i64) -> Level {
        match current * 100 / self.hard_stop {
            100.. => Level::Exhausted,
            PAUSE_PERCENT.. => Level::Pause,
            WARN_PERCENT.. => Level::Warning,
            _ => Level::Quiet,
        }
    }

    fn write(&self, random: &mut Random, micros: i64, seed: u64, line: &mut String) {
        let reading = self.read(seed, micros);
        let dialect = self.service.dialect;
        let (shape, fault) = match reading.level {
            Level::Quiet | Level::Warning => (&dialect.warnings[0], &WARNING),
            Level::Pause => (&dialect.failures[0], &PAUSE),
            Level::Exhausted => (&dialect.failures[0], &EXHAUSTED),
        };
        let facts: Facts<'_> = &[
            ("who", Fact::Text(r#","tenant":"<tenant>""#)),
            ("tenant", Fact::Text(self.tenant)),
            ("metric", Fact::Text(self.metric)),
            ("currency", Fact::Text(self.currency)),
            ("current", self.amount(reading.current)),
            ("warn_at", self.amount(self.hard_stop * WARN_PERCENT / 100)),
            ("pause_at", self.amount(self.hard_stop * PAUSE_PERCENT / 100)),
            ("stop_at", self.amount(self.hard_stop)),
            ("resets_at", Fact::Time(reading.resets_at)),
            ("token", Fact::Token(self.luck(seed, reading.resets_at))),
        ];
        Record { fault, facts, ..Record::new(self.service, shape, random, micros) }.write(line);
    }

    /// A number that is this quota's alone, for as long as the time is the same.
    fn luck(&self, seed: u64, micros: i64) -> u64 {
        mix(mix(seed ^ self.hard_stop as u64) ^ micros as u64)
    }

    fn amount(&self, units: i64) -> Fact {
        if self.currency.is_empty() { Fact::Number(units) } else { Fact::Cents(units) }
    }
}

static WARNING: Fault = warning(
    1,
    "medium",
    "RATE_LIMIT_QUOTA_WARNING",
    "Approaching quota limit",
    r#"{"metric":"<metric>","current":<current>,"warn_threshold":<warn_at>,"pause_threshold":<pause_at><currency>}"#,
);

static PAUSE: Fault = fault(
    1,
    "RATE_LIMIT_QUOTA_PAUSE",
    "Quota pause threshold reached",
    r#"{"metric":"<metric>","current":<current>,"pause_threshold":<pause_at>,"hard_stop_threshold":<stop_at><currency>,"confirmation_token":"quota_continue_<token>","expires_at":"<resets_at>"}"#,
);

static EXHAUSTED: Fault = fault(
    1,
    "RATE_LIMIT_QUOTA_EXHAUSTED",
    "Quota exhausted",
    r#"{"metric":"<metric>","current":<current>,"hard_stop_threshold":<stop_at><currency>,"resets_at":"<resets_at>"}"#,
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::START_MICROS;

    #[test]
    fn usage_only_climbs_until_the_window_ends() {
        for quota in QUOTAS {
            let begin = quota.read(1, START_MICROS).resets_at;
            let readings: Vec<_> =
                (0..1_000).map(|step| quota.read(1, begin + step * quota.window / 1_000)).collect();
            assert!(readings.iter().all(|reading| reading.resets_at == begin + quota.window));
            assert!(readings.is_sorted_by_key(|reading| reading.current));
            assert_eq!(readings[0].level, Level::Quiet);
            assert!(readings[999].level >= Level::Warning, "{}", quota.metric);
        }
    }

    #[test]
    fn some_minutes_run_out_and_some_do_not() {
        let ends: Vec<_> = (1..200).map(|n| QUOTAS[0].read(2, START_MICROS + n * MINUTE - 1).level).collect();
        assert!(ends.contains(&Level::Exhausted) && ends.contains(&Level::Pause));
    }
}
