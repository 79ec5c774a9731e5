//! The metrics of services: what they count, and within which room.

use super::counted::{Calls, Counted, Denial, Durations, Events, QuotaWord, Why};
use super::family::{Family, Room};
use super::groups::Groups;
use super::names::{self, OTHER};
use super::quotas::Quotas;
use super::value;
use crate::limits::Limits;
use prometheus::proto::MetricFamily;
use std::collections::HashMap;
use store::rows::BUCKET_BOUNDS_US;
use taxonomy::{Category, Dialect, Finding, Kind, Outcome, QuotaLevel, Registry};

/// Services whose series begin at 0, before the first event.
const BORN_AT_ZERO: usize = 100;
/// What a server reports counts instead of what its callers do, for so long, in microseconds.
const REPORTS_FOR: i64 = 300_000_000;

/// Codes of these categories have alerts, which cannot see the first sample of a series.
const ALERTING: [Category; 4] =
    [Category::Internal, Category::RateLimit, Category::Permission, Category::Token];

/// The states of a confirmation, and the codes that tell of them.
const CONFIRMATIONS: [(&str, &[&str]); 5] = [
    ("required", &["CONFIRMATION_REQUIRED", "RATE_LIMIT_QUOTA_PAUSE"]),
    ("granted", &["CONFIRMATION_GRANTED"]),
    ("used", &["TOKEN_VALIDATED"]),
    ("expired", &["TOKEN_EXPIRED"]),
    ("revoked", &["TOKEN_REVOKED"]),
];

/// What can happen to a token, and the codes that tell of it.
const TOKENS: [(&str, &[&str]); 7] = [
    ("issued", &["TOKEN_ISSUED"]),
    ("validated", &["TOKEN_VALIDATED"]),
    ("revoked", &["TOKEN_REVOKED"]),
    ("expired", &["TOKEN_EXPIRED"]),
    ("replayed", &["TOKEN_ALREADY_USED"]),
    ("invalid", &["TOKEN_INVALID"]),
    ("mismatched", &["TOKEN_SCOPE_MISMATCH"]),
];

/// The outcomes of a call. One that asks for more input has worked so far.
const OUTCOMES: [&str; 3] = ["ok", "failed", "hidden"];

/// What a histogram exports for each of its series: its buckets, the one without a bound, sum and count.
const HISTOGRAM_LINES: usize = BUCKET_BOUNDS_US.len() + 3;
/// Series of our own health: what is not of services.
const HEALTH: usize = 1_000;
/// The sums of all services that have no room of their own.
const REST: usize = (Category::ALL.len() * Kind::ALL.len()) * (Dialect::ALL.len() + 1)
    + OUTCOMES.len()
    + HISTOGRAM_LINES
    + QuotaLevel::ALL.len()
    + 32;
/// Series that every service has: of its requests, confirmations, tokens, new groups and budget.
const FIXED: usize = OUTCOMES.len() + CONFIRMATIONS.len() + TOKENS.len() + 2;

/// How many series each metric may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rooms {
    events: Room,
    categories: Room,
    durations: Room,
    quotas: Room,
    quota_events: Room,
    trust_denials: Room,
    danger_denials: Room,
    findings: Room,
    services: usize,
}

impl Rooms {
    /// As they share out [`Limits::DEFAULT`].
    const DEFAULT: Self = Self {
        events: Room { each: 300, most: 18_000 },
        categories: Room { each: 30, most: 6_000 },
        durations: Room { each: 100, most: 500 },
        quotas: Room { each: 50, most: 500 },
        quota_events: Room { each: 200, most: 2_000 },
        trust_denials: Room { each: 200, most: 1_500 },
        danger_denials: Room { each: 100, most: 500 },
        findings: Room { each: 13, most: 2_000 },
        services: Limits::DEFAULT.services,
    };

    /// Shares out the series: what every service has comes first, the rest in the proportions of the default.
    pub(super) const fn within(limits: &Limits) -> Self {
        let (share, whole) = (shared(limits), shared(&Limits::DEFAULT));
        let Self { events, categories, durations, quotas, quota_events, trust_denials, .. } = Self::DEFAULT;
        let Self { danger_denials, findings, .. } = Self::DEFAULT;
        Self {
            events: events.scaled(share, whole),
            categories: categories.scaled(share, whole),
            durations: durations.scaled(share, whole),
            quotas: quotas.scaled(share, whole),
            quota_events: quota_events.scaled(share, whole),
            trust_denials: trust_denials.scaled(share, whole),
            danger_denials: danger_denials.scaled(share, whole),
            findings: findings.scaled(share, whole),
            services: limits.services,
        }
    }

    /// The room of a metric that has so many series for each service.
    const fn fixed(&self, each: usize) -> Room {
        Room { each, most: each * self.services }
    }

    /// Series of services, at most; the rest of all services included.
    pub(super) const fn most_series(&self) -> usize {
        self.events.most
            + self.categories.most
            + self.durations.most * HISTOGRAM_LINES
            + 2 * self.quotas.most
            + self.quota_events.most
            + self.trust_denials.most
            + self.danger_denials.most
            + self.findings.most
            + FIXED * self.services
            + REST
    }
}

/// The series that are shared out by need.
const fn shared(limits: &Limits) -> usize {
    limits.series.saturating_sub(HEALTH + REST + FIXED * limits.services)
}

const _: () = assert!(Rooms::DEFAULT.most_series() + HEALTH <= Limits::DEFAULT.series);

/// What was counted since the start.
#[derive(Debug)]
pub(super) struct Meter {
    pub(super) rooms: Rooms,
    /// Operations that are remembered to be answered by a server that reports.
    operations: usize,
    /// The services that are told apart, by the dialects they have spoken.
    services: HashMap<Box<str>, Dialects>,
    /// The registered codes that alerts watch, by their dialect.
    watched: Vec<(Dialect, Category, Kind, Box<str>)>,
    /// When a server last reported calls of an operation.
    answered: HashMap<Box<str>, i64>,
    pub(super) groups: Groups,
    quotas: Quotas,
    events: Family<u64>,
    categories: Family<u64>,
    requests: Family<u64>,
    durations: Family<Durations>,
    quota_events: Family<u64>,
    trust_denials: Family<u64>,
    danger_denials: Family<u64>,
    confirmations: Family<u64>,
    tokens: Family<u64>,
    findings: Family<u64>,
    new_groups: Family<u64>,
    over_budget: Family<u64>,
}

/// Dialects, a bit each.
#[derive(Debug, Clone, Copy, Default)]
struct Dialects {
    spoken: u16,
    is_born_at_zero: bool,
}

impl Meter {
    pub(super) fn new(registry: &Registry, limits: &Limits) -> Self {
        let rooms = Rooms::within(limits);
        Self {
            services: HashMap::new(),
            watched: watched(registry),
            answered: HashMap::new(),
            groups: Groups::new(),
            quotas: Quotas::new(rooms.quotas),
            events: Family::new(&names::EVENTS, rooms.events),
            categories: Family::new(&names::CATEGORY_EVENTS, rooms.categories),
            requests: Family::new(&names::REQUESTS, rooms.fixed(OUTCOMES.len())),
            durations: Family::new(&names::OPERATION_DURATION, rooms.durations),
            quota_events: Family::new(&names::QUOTA_EVENTS, rooms.quota_events),
            trust_denials: Family::new(&names::TRUST_DENIALS, rooms.trust_denials),
            danger_denials: Family::new(&names::DANGER_DENIALS, rooms.danger_denials),
            confirmations: Family::new(&names::CONFIRMATIONS, rooms.fixed(CONFIRMATIONS.len())),
            tokens: Family::new(&names::TOKEN_EVENTS, rooms.fixed(TOKENS.len())),
            findings: Family::new(&names::FINDINGS, rooms.findings),
            new_groups: Family::new(&names::NEW_GROUPS, rooms.fixed(1)),
            over_budget: Family::new(&names::OVER_BUDGET, rooms.fixed(1)),
            rooms,
            operations: limits.operations,
        }
    }

    /// Adds what a batch brought.
    pub(super) fn add(&mut self, counted: &Counted) {
        for events in &counted.events {
            self.add_events(events);
        }
        // What servers report comes first, so that their callers' reports of the same calls are known for that.
        for is_caller in [false, true] {
            for calls in counted.calls.iter().filter(|calls| calls.is_caller == is_caller) {
                self.add_calls(calls, counted.arrival);
            }
        }
        for (service, finding, count) in &counted.findings {
            let service = self.label(service);
            *self.findings.at(&[service, finding.as_str()]) += count;
        }
        for word in &counted.quotas {
            self.add_quota(word, counted.arrival);
        }
        for denial in &counted.denials {
            self.add_denial(denial);
        }
        for (service, count) in &counted.over_budget {
            let service = self.label(service);
            *self.over_budget.at(&[service]) += count;
        }
        for (group, service) in &counted.groups {
            if self.groups.is_new(*group, service) {
                self.count_new_group(service);
            }
        }
    }

    pub(super) fn count_new_group(&mut self, service: &str) {
        let service = self.label(service);
        *self.new_groups.at(&[service]) += 1;
    }

    fn add_events(&mut self, events: &Events) {
        let Events { category, kind, dialect, count, .. } = events;
        self.meet(&events.service, Some(*dialect));
        let (service, code) = (self.label(&events.service), &*events.canonical);
        let (category, kind) = (category.as_str(), kind.as_str());
        *self.events.at(&[service, category, code, kind, dialect.as_str()]) += count;
        *self.categories.at(&[service, category, kind]) += count;
        for (family, states) in
            [(&mut self.confirmations, &CONFIRMATIONS[..]), (&mut self.tokens, &TOKENS[..])]
        {
            if let Some((state, _)) = states.iter().find(|(_, codes)| codes.contains(&code)) {
                *family.at(&[service, state]) += count;
            }
        }
    }

    fn add_calls(&mut self, calls: &Calls, arrival: i64) {
        let operation = &*calls.operation;
        if calls.is_caller {
            if self.answered.get(operation).is_some_and(|last| arrival.saturating_sub(*last) < REPORTS_FOR) {
                return;
            }
        } else if self.answered.len() < self.operations || self.answered.contains_key(operation) {
            self.answered.insert(operation.into(), arrival);
        }
        self.meet(&calls.service, Some(calls.dialect));
        let service = self.label(&calls.service);
        let outcome = match calls.outcome {
            Outcome::Ok | Outcome::InputRequired => "ok",
            Outcome::Failed => "failed",
            Outcome::Hidden => "hidden",
        };
        *self.requests.at(&[service, outcome]) += calls.count;
        if calls.durations.count > 0 {
            self.durations.at(&[service, operation]).add(&calls.durations);
        }
    }

    fn add_quota(&mut self, word: &QuotaWord, arrival: i64) {
        let service = self.label(&word.service);
        // The other levels begin at 0: alerts may watch them from now on.
        for level in QuotaLevel::ALL {
            *self.quota_events.at(&[service, &word.metric, level.as_str()]) +=
                if *level == word.level { word.count } else { 0 };
        }
        self.quotas.hear(service, word, arrival);
    }

    fn add_denial(&mut self, denial: &Denial) {
        let (service, operation) = (self.label(&denial.service), &*denial.operation);
        match &denial.why {
            Why::Trust { required, actual } => {
                *self.trust_denials.at(&[service, operation, required, actual]) += denial.count;
            }
            Why::Danger { level } => *self.danger_denials.at(&[service, operation, level]) += denial.count,
        }
    }

    /// The label value of a service that was met.
    fn label<'s>(&self, service: &'s str) -> &'s str {
        if self.services.contains_key(service) { service } else { OTHER }
    }

    /// Learns of a service and its dialect. Its series begin at 0 before anything happens to them.
    pub(super) fn meet(&mut self, service: &str, dialect: Option<Dialect>) {
        if !self.services.contains_key(service) {
            if self.services.len() >= self.rooms.services {
                return;
            }
            let is_born_at_zero = self.services.len() < BORN_AT_ZERO;
            self.services.insert(service.into(), Dialects { spoken: 0, is_born_at_zero });
            if is_born_at_zero {
                self.begin_at_zero(service);
            }
        }
        let Some((dialects, dialect)) = self.services.get_mut(service).zip(dialect) else { return };
        let bit = 1 << dialect as u16;
        let is_new = dialects.spoken & bit == 0;
        dialects.spoken |= bit;
        if is_new && dialects.is_born_at_zero {
            self.begin_codes_at_zero(service, dialect);
        }
    }

    fn begin_at_zero(&mut self, service: &str) {
        for category in Category::ALL {
            self.categories.at(&[service, category.as_str(), Kind::Error.as_str()]);
        }
        for outcome in OUTCOMES {
            self.requests.at(&[service, outcome]);
        }
        for (state, _) in CONFIRMATIONS {
            self.confirmations.at(&[service, state]);
        }
        for (state, _) in TOKENS {
            self.tokens.at(&[service, state]);
        }
        self.findings.at(&[service, Finding::UnregisteredCode.as_str()]);
        self.new_groups.at(&[service]);
        self.over_budget.at(&[service]);
    }

    fn begin_codes_at_zero(&mut self, service: &str, spoken: Dialect) {
        for (dialect, category, kind, code) in &self.watched {
            if *dialect == spoken {
                self.events.at(&[service, category.as_str(), code, kind.as_str(), dialect.as_str()]);
            }
        }
    }

    /// Forgets what is over.
    pub(super) fn expire(&mut self, now: i64) {
        self.quotas.expire(now);
    }

    /// Every metric with its series.
    pub(super) fn collect(&self) -> Vec<MetricFamily> {
        let mut families: Vec<_> = self.counters().map(Family::counters).into();
        families.push(self.durations.collect(&names::OPERATION_DURATION, |durations, series| {
            series.set_histogram(value::histogram(durations));
            true
        }));
        families.extend(self.quotas.collect());
        families
    }

    fn counters(&self) -> [&Family<u64>; 11] {
        [
            &self.events,
            &self.categories,
            &self.requests,
            &self.quota_events,
            &self.trust_denials,
            &self.danger_denials,
            &self.confirmations,
            &self.tokens,
            &self.findings,
            &self.new_groups,
            &self.over_budget,
        ]
    }

    /// How many series there are.
    pub(super) fn series(&self) -> usize {
        let counters: usize = self.counters().into_iter().map(Family::len).sum();
        counters + HISTOGRAM_LINES * self.durations.len() + self.quotas.series()
    }

    /// How often labels had to be replaced, by metric.
    pub(super) fn capped(&self) -> Vec<(&'static str, u64)> {
        let mut capped: Vec<_> = self.counters().into_iter().map(Family::capped).collect();
        capped.extend([self.durations.capped(), self.quotas.capped()]);
        capped
    }
}

/// The registered codes of the categories that have alerts.
fn watched(registry: &Registry) -> Vec<(Dialect, Category, Kind, Box<str>)> {
    let is_watched = |category: &Category| ALERTING.contains(category);
    let entries = registry.entries().iter().filter(|entry| is_watched(&entry.meaning.category));
    let mut watched: Vec<_> = entries
        .map(|entry| {
            // What is sent with a call that worked is a warning.
            let kind = if entry.http_status == Some(200) { Kind::Warning } else { Kind::Error };
            (entry.dialect, entry.meaning.category, kind, Box::from(entry.canonical.as_str()))
        })
        .collect();
    watched.sort_by(|left, right| (left.0 as u8, &left.3).cmp(&(right.0 as u8, &right.3)));
    watched.dedup_by(|left, right| (left.0, &left.3) == (right.0, &right.3));
    watched
}
