//! Quotas that fill up over time: first there are warnings, then a pause that a user may lift, then rejections until
//! the window ends.
//!
//! No state is kept. The usage of a quota is computed from the time within its window and from the load of that window.
//! So usage never falls within a window, every line states the same end of the window, and both hold at any rate of
//! lines.

use crate::dialect::mcp_aql_faults::warning;
use crate::dialect::{Fault, fault};
use crate::line_kind;
use crate::random::{Random, mix};
use crate::record::{Record, SlotValue, SlotValues};
use crate::services::{DEPOT, LEDGER, Service, TRACKER};

const SECOND: i64 = 1_000_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Warnings start at the first percentage of the hard stop, and the pause at the second.
const WARN_PERCENT: i64 = 70;
const PAUSE_PERCENT: i64 = 88;

/// The quota of one tenant for one service.
struct Quota {
    service: &'static Service,
    tenant: &'static str,
    metric: &'static str,
    /// The currency as a JSON member; empty for a count. With a currency, the amounts are in hundredths.
    currency: &'static str,
    hard_stop: i64,
    window: i64,
    /// The offset of the windows from the whole minute, hour or day.
    window_offset: i64,
    /// The usage at the end of a window in percent of the hard stop: the lowest and the highest.
    load_percent: (u64, u64),
}

static QUOTAS: [Quota; 4] = [
    Quota {
        service: &TRACKER,
        tenant: "halden-freight",
        metric: "requests_per_minute",
        currency: "",
        hard_stop: 600,
        window: MINUTE,
        window_offset: 0,
        load_percent: (90, 160),
    },
    Quota {
        service: &LEDGER,
        tenant: "brightwater",
        metric: "tokens_per_minute",
        currency: "",
        hard_stop: 90_000,
        window: MINUTE,
        window_offset: 25 * SECOND,
        load_percent: (80, 140),
    },
    Quota {
        service: &DEPOT,
        tenant: "juniper-rail",
        metric: "requests_per_hour",
        currency: "",
        hard_stop: 5_000,
        window: HOUR,
        window_offset: 5 * MINUTE,
        load_percent: (85, 115),
    },
    Quota {
        service: &LEDGER,
        tenant: "quillworks",
        metric: "cost_per_day",
        currency: r#","currency":"EUR""#,
        hard_stop: 40_00,
        window: DAY,
        window_offset: 30 * MINUTE,
        load_percent: (75, 99),
    },
];

/// Further quotas of the world, whose windows end at different times, so that some are always in use.
static WORLD_QUOTAS: [Quota; 7] = [
    counted(&TRACKER, "brightwater", "requests_per_hour", 3_000, HOUR, 20 * MINUTE, (95, 140)),
    counted(&DEPOT, "mirefield", "requests_per_hour", 2_400, HOUR, 40 * MINUTE, (90, 130)),
    counted(&LEDGER, "osprey-dental", "tokens_per_hour", 400_000, HOUR, 50 * MINUTE, (95, 125)),
    counted(&LEDGER, "halden-freight", "tokens_per_day", 6_000_000, DAY, 2 * HOUR, (110, 150)),
    counted(&TRACKER, "quillworks", "requests_per_day", 40_000, DAY, 8 * HOUR, (95, 130)),
    counted(&DEPOT, "juniper-rail", "requests_per_day", 60_000, DAY, 14 * HOUR, (110, 150)),
    counted(&LEDGER, "mirefield", "requests_per_day", 25_000, DAY, 20 * HOUR, (95, 130)),
];

/// Returns a quota that counts something.
const fn counted(
    service: &'static Service,
    tenant: &'static str,
    metric: &'static str,
    hard_stop: i64,
    window: i64,
    window_offset: i64,
    load_percent: (u64, u64),
) -> Quota {
    Quota { service, tenant, metric, currency: "", hard_stop, window, window_offset, load_percent }
}

/// The usage level of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Normal,
    Warning,
    Pause,
    Exhausted,
}

/// The usage of a quota at one time.
struct Usage {
    level: Level,
    current: i64,
    resets_at: i64,
}

/// Writes a line about a quota that is filling up, or a failure of another kind while all levels are normal.
pub(crate) fn write(random: &mut Random, micros: i64, seed: u64, line: &mut String) {
    if !write_one_of(&QUOTAS.each_ref(), random, micros, seed, line) {
        line_kind::failure(random, micros, seed).write(line);
    }
}

/// Writes a line about a quota of the world that is filling up; writes nothing and returns false if none is.
pub(crate) fn try_write_of_world(random: &mut Random, micros: i64, seed: u64, line: &mut String) -> bool {
    let quotas: Vec<&Quota> = QUOTAS.iter().chain(&WORLD_QUOTAS).collect();
    write_one_of(&quotas, random, micros, seed, line)
}

fn write_one_of(quotas: &[&Quota], random: &mut Random, micros: i64, seed: u64, line: &mut String) -> bool {
    let first = random.below(quotas.len() as u64) as usize;
    let mut candidates = quotas.iter().cycle().skip(first).take(quotas.len());
    let filling = candidates.find(|quota| quota.usage_at(seed, micros).level > Level::Normal);
    filling.inspect(|quota| quota.write(random, micros, seed, line)).is_some()
}

impl Quota {
    fn usage_at(&self, seed: u64, micros: i64) -> Usage {
        let elapsed = (micros - self.window_offset).rem_euclid(self.window);
        let start = micros - elapsed;
        let (lowest, highest) = self.load_percent;
        let load = lowest + self.hash(seed, start) % (highest - lowest);
        // This order avoids overflow: first the share of the window in thousandths of a percent, then of the hard
        // stop.
        let share = load as i64 * 1_000 * (elapsed / 1_000) / (self.window / 1_000);
        let current = (self.hard_stop * share / 100_000).min(self.hard_stop);
        Usage { level: self.level(current), current, resets_at: start + self.window }
    }

    fn level(&self, current: i64) -> Level {
        match current * 100 / self.hard_stop {
            100.. => Level::Exhausted,
            PAUSE_PERCENT.. => Level::Pause,
            WARN_PERCENT.. => Level::Warning,
            _ => Level::Normal,
        }
    }

    fn write(&self, random: &mut Random, micros: i64, seed: u64, line: &mut String) {
        let usage = self.usage_at(seed, micros);
        let dialect = self.service.dialect;
        let (shape, fault) = match usage.level {
            Level::Normal | Level::Warning => (&dialect.warnings[0], &WARNING),
            Level::Pause => (&dialect.failures[0], &PAUSE),
            Level::Exhausted => (&dialect.failures[0], &EXHAUSTED),
        };
        let slot_values: SlotValues<'_> = &[
            ("who", SlotValue::Text(r#","tenant":"<tenant>""#)),
            ("tenant", SlotValue::Text(self.tenant)),
            ("metric", SlotValue::Text(self.metric)),
            ("currency", SlotValue::Text(self.currency)),
            ("current", self.amount(usage.current)),
            ("warn_at", self.amount(self.hard_stop * WARN_PERCENT / 100)),
            ("pause_at", self.amount(self.hard_stop * PAUSE_PERCENT / 100)),
            ("stop_at", self.amount(self.hard_stop)),
            ("resets_at", SlotValue::Time(usage.resets_at)),
            ("token", SlotValue::Token(self.hash(seed, usage.resets_at))),
        ];
        Record { fault, slot_values, ..Record::new(self.service, shape, random, micros) }.write(line);
    }

    /// Returns a pseudo-random number for this quota and this time.
    fn hash(&self, seed: u64, micros: i64) -> u64 {
        mix(mix(seed ^ self.hard_stop as u64) ^ micros as u64)
    }

    fn amount(&self, units: i64) -> SlotValue {
        if self.currency.is_empty() { SlotValue::Number(units) } else { SlotValue::Cents(units) }
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
    fn usage_never_falls_within_a_window() {
        for quota in QUOTAS.iter().chain(&WORLD_QUOTAS) {
            let start = quota.usage_at(1, START_MICROS).resets_at;
            let usages: Vec<_> =
                (0..1_000).map(|step| quota.usage_at(1, start + step * quota.window / 1_000)).collect();
            assert!(usages.iter().all(|usage| usage.resets_at == start + quota.window));
            assert!(usages.is_sorted_by_key(|usage| usage.current));
            assert_eq!(usages[0].level, Level::Normal);
            assert!(usages[999].level >= Level::Warning, "{}", quota.metric);
        }
    }

    #[test]
    fn some_quotas_of_the_world_are_always_in_use() {
        let in_use = |hour: i64| {
            let at = START_MICROS + hour * HOUR + 30 * MINUTE;
            WORLD_QUOTAS.iter().filter(|quota| quota.usage_at(7, at).level > Level::Normal).count()
        };
        assert!((0..7 * 24).all(|hour| in_use(hour) >= 2), "{:?}", (0..24).map(in_use).collect::<Vec<_>>());
    }

    #[test]
    fn some_windows_exhaust_their_quota_and_some_do_not() {
        let ends: Vec<_> =
            (1..200).map(|n| QUOTAS[0].usage_at(2, START_MICROS + n * MINUTE - 1).level).collect();
        assert!(ends.contains(&Level::Exhausted) && ends.contains(&Level::Pause));
    }
}
