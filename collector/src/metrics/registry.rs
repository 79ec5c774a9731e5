//! The registry of the metrics of services: it adds summaries of batches, and divides the limit on series among
//! metrics.

use super::batch_summary::{
    BatchSummary, CallCounts, Denial, DenialCause, Durations, EventCounts, QuotaReport,
};
use super::captures::Captures;
use super::family::{Family, SeriesLimit};
use super::group_tracker::GroupTracker;
use super::names::{self, OTHER, UNKNOWN};
use super::proto_values;
use super::quota_gauges::QuotaGauges;
use crate::limits::Limits;
use classifier::{Category, Dialect, EventKind, Fault, Finding, Outcome, QuotaLevel, Registry};
use prometheus::proto::MetricFamily;
use std::collections::HashMap;
use store::rows::BUCKET_BOUNDS_US;

/// The number of services whose series are initialized to 0, before their first event.
const MAX_ZERO_INITIALIZED_SERVICES: usize = 100;
/// The time after a report of a server during which reports of callers do not count for the operation, in
/// microseconds.
const SERVER_REPORT_TTL_US: i64 = 300_000_000;

/// The categories whose codes have alerts. Alerts cannot see the first sample of a series, so these series begin at
/// 0.
const ALERTING_CATEGORIES: [Category; 4] =
    [Category::Internal, Category::RateLimit, Category::Permission, Category::Token];

/// The usual faults of errors by category: these series begin at 0, and so does that of an unknown fault.
const USUAL_FAULTS: [(Category, &[Fault]); Category::ALL.len()] = [
    (Category::Validation, &[Fault::Caller]),
    (Category::NotFound, &[Fault::Caller]),
    (Category::Permission, &[Fault::Caller, Fault::Policy]),
    (Category::Conflict, &[Fault::Caller]),
    (Category::RateLimit, &[Fault::Quota, Fault::Upstream]),
    (Category::Token, &[Fault::Caller]),
    (Category::Schema, &[Fault::Caller, Fault::Server]),
    (Category::Protocol, &[Fault::Caller, Fault::User]),
    (Category::Internal, &[Fault::Server, Fault::Upstream, Fault::Transport]),
    (Category::Unknown, &[Fault::Server]),
];

/// The states of a confirmation, and the codes that report them.
const CONFIRMATIONS: [(&str, &[&str]); 5] = [
    ("required", &["CONFIRMATION_REQUIRED", "RATE_LIMIT_QUOTA_PAUSE"]),
    ("granted", &["CONFIRMATION_GRANTED"]),
    ("used", &["TOKEN_VALIDATED"]),
    ("expired", &["TOKEN_EXPIRED"]),
    ("revoked", &["TOKEN_REVOKED"]),
];

/// The states of a token, and the codes that report them.
const TOKENS: [(&str, &[&str]); 7] = [
    ("issued", &["TOKEN_ISSUED"]),
    ("validated", &["TOKEN_VALIDATED"]),
    ("revoked", &["TOKEN_REVOKED"]),
    ("expired", &["TOKEN_EXPIRED"]),
    ("replayed", &["TOKEN_ALREADY_USED"]),
    ("invalid", &["TOKEN_INVALID"]),
    ("mismatched", &["TOKEN_SCOPE_MISMATCH"]),
];

/// The outcomes of a call that begin at 0. A call that asks for more input counts as ok.
const OUTCOMES: [&str; 3] = ["ok", "failed", "hidden"];

/// The number of lines that each series of a histogram exports: its buckets, the one without a bound, sum and count.
const HISTOGRAM_LINES: usize = BUCKET_BOUNDS_US.len() + 3;
/// The number of series that are reserved for the health of the server itself.
const HEALTH_SERIES: usize = 1_000;
/// The number of series for all services that have none of their own.
const OVERFLOW_SERIES: usize = (Category::ALL.len() * EventKind::ALL.len())
    * (Dialect::ALL.len() + Fault::ALL.len() + 1)
    + OUTCOMES.len()
    + HISTOGRAM_LINES
    + QuotaLevel::ALL.len()
    + 32;
/// The number of series that every service has: of its requests, confirmations, tokens, new groups, budget and
/// unverified calls.
const FIXED_SERIES_PER_SERVICE: usize = OUTCOMES.len() + CONFIRMATIONS.len() + TOKENS.len() + 3;

/// The limits on the series of each metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesLimits {
    events: SeriesLimit,
    categories: SeriesLimit,
    durations: SeriesLimit,
    quotas: SeriesLimit,
    quota_events: SeriesLimit,
    trust_denials: SeriesLimit,
    danger_denials: SeriesLimit,
    findings: SeriesLimit,
    services: usize,
}

impl SeriesLimits {
    /// The division of [`Limits::DEFAULT`].
    const DEFAULT: Self = Self {
        events: SeriesLimit { per_service: 300, total: 18_000 },
        categories: SeriesLimit { per_service: 60, total: 7_000 },
        durations: SeriesLimit { per_service: 100, total: 500 },
        quotas: SeriesLimit { per_service: 50, total: 500 },
        quota_events: SeriesLimit { per_service: 200, total: 2_000 },
        trust_denials: SeriesLimit { per_service: 200, total: 1_500 },
        danger_denials: SeriesLimit { per_service: 100, total: 500 },
        findings: SeriesLimit { per_service: 13, total: 2_000 },
        services: Limits::DEFAULT.services,
    };

    /// Divides the series: those that every service has come first, and the rest is divided in the proportions of the
    /// default.
    pub(super) const fn divide(limits: &Limits) -> Self {
        let (share, whole) = (distributable_series(limits), distributable_series(&Limits::DEFAULT));
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

    /// Returns the limit of a metric that has `per_service` series for each service.
    const fn fixed_limit(&self, per_service: usize) -> SeriesLimit {
        SeriesLimit { per_service, total: per_service * self.services }
    }

    /// Returns the largest number of series of services, including those for services that have none of their own.
    pub(super) const fn max_series(&self) -> usize {
        self.events.total
            + self.categories.total
            + self.durations.total * HISTOGRAM_LINES
            + 2 * self.quotas.total
            + self.quota_events.total
            + self.trust_denials.total
            + self.danger_denials.total
            + self.findings.total
            + FIXED_SERIES_PER_SERVICE * self.services
            + OVERFLOW_SERIES
    }
}

/// Returns the number of series that are left after those that are reserved, to be divided by need.
const fn distributable_series(limits: &Limits) -> usize {
    limits.series.saturating_sub(HEALTH_SERIES + OVERFLOW_SERIES + FIXED_SERIES_PER_SERVICE * limits.services)
}

const _: () = assert!(SeriesLimits::DEFAULT.max_series() + HEALTH_SERIES <= Limits::DEFAULT.series);

/// Returns the number of successes to count, after those that make up for calls that turned out to have failed.
fn pay_back(withheld: &mut HashMap<Box<str>, u64>, service: &str, count: u64) -> u64 {
    let Some(owed) = withheld.get_mut(service) else { return count };
    let paid = count.min(*owed);
    *owed -= paid;
    if *owed == 0 {
        withheld.remove(service);
    }
    count - paid
}

/// The metrics of services since the start of the server.
#[derive(Debug)]
pub(super) struct MetricRegistry {
    pub(super) series_limits: SeriesLimits,
    /// The largest number of operations in `server_reports`.
    max_operations: usize,
    /// The services that are distinguished, with their dialects.
    services: HashMap<Box<str>, Dialects>,
    /// The registered codes that have alerts, with their dialect.
    alerting_codes: Vec<(Dialect, Category, EventKind, Box<str>)>,
    /// The time at which a server last reported calls of an operation.
    server_reports: HashMap<Box<str>, i64>,
    /// The calls of each service that were counted as successes and turned out to have failed. A counter cannot go back,
    /// so as many of the next successes are not counted.
    withheld: HashMap<Box<str>, u64>,
    pub(super) groups: GroupTracker,
    quotas: QuotaGauges,
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
    unverified: Family<u64>,
    /// The unverified calls of each service.
    captures: Captures,
}

/// The dialects that a service has used, one bit for each.
#[derive(Debug, Clone, Copy, Default)]
struct Dialects {
    seen: u16,
    is_zero_initialized: bool,
}

impl MetricRegistry {
    pub(super) fn new(registry: &Registry, limits: &Limits) -> Self {
        let series_limits = SeriesLimits::divide(limits);
        Self {
            services: HashMap::new(),
            alerting_codes: alerting_codes(registry),
            server_reports: HashMap::new(),
            withheld: HashMap::new(),
            groups: GroupTracker::new(),
            quotas: QuotaGauges::new(series_limits.quotas),
            events: Family::new(&names::EVENTS, series_limits.events),
            categories: Family::new(&names::CATEGORY_EVENTS, series_limits.categories),
            requests: Family::new(&names::REQUESTS, series_limits.fixed_limit(OUTCOMES.len())),
            durations: Family::new(&names::OPERATION_DURATION, series_limits.durations),
            quota_events: Family::new(&names::QUOTA_EVENTS, series_limits.quota_events),
            trust_denials: Family::new(&names::TRUST_DENIALS, series_limits.trust_denials),
            danger_denials: Family::new(&names::DANGER_DENIALS, series_limits.danger_denials),
            confirmations: Family::new(&names::CONFIRMATIONS, series_limits.fixed_limit(CONFIRMATIONS.len())),
            tokens: Family::new(&names::TOKEN_EVENTS, series_limits.fixed_limit(TOKENS.len())),
            findings: Family::new(&names::FINDINGS, series_limits.findings),
            new_groups: Family::new(&names::NEW_GROUPS, series_limits.fixed_limit(1)),
            over_budget: Family::new(&names::OVER_BUDGET, series_limits.fixed_limit(1)),
            unverified: Family::new(&names::UNVERIFIED_CALLS, series_limits.fixed_limit(1)),
            captures: Captures::default(),
            series_limits,
            max_operations: limits.operations,
        }
    }

    /// Adds the summary of a batch.
    pub(super) fn add(&mut self, summary: &BatchSummary) {
        for events in &summary.events {
            self.add_events(events);
        }
        // Reports of servers come first, so that reports of their callers are recognized as the same calls; and failures
        // of earlier calls before successes, which make up for them.
        for is_caller in [false, true] {
            for is_ok in [false, true] {
                let is_next = |calls: &&CallCounts| {
                    calls.is_caller == is_caller && (calls.outcome == Outcome::Ok) == is_ok
                };
                for calls in summary.calls.iter().filter(is_next) {
                    self.add_calls(calls, summary.arrival);
                }
            }
        }
        for (service, finding, count) in &summary.findings {
            let service = self.service_label(service);
            *self.findings.get_or_insert(&[service, finding.as_str()]) += count;
        }
        for report in &summary.quotas {
            self.add_quota(report, summary.arrival);
        }
        for denial in &summary.denials {
            self.add_denial(denial);
        }
        for (service, count) in &summary.over_budget {
            let service = self.service_label(service);
            *self.over_budget.get_or_insert(&[service]) += count;
        }
        for (group, service) in &summary.groups {
            if self.groups.is_new(*group, service) {
                self.count_new_group(service);
            }
        }
    }

    pub(super) fn count_new_group(&mut self, service: &str) {
        let service = self.service_label(service);
        *self.new_groups.get_or_insert(&[service]) += 1;
    }

    fn add_events(&mut self, events: &EventCounts) {
        let EventCounts { category, fault, kind, dialect, count, .. } = events;
        self.register_service(&events.service, Some(*dialect));
        let (service, code) = (self.service_label(&events.service), &*events.canonical);
        let (category, kind) = (category.as_str(), kind.as_str());
        *self.events.get_or_insert(&[service, category, code, kind, dialect.as_str()]) += count;
        // A probe is neither a failure nor an incident.
        if *fault != Some(Fault::Probe) {
            let fault = fault.map_or(UNKNOWN, Fault::as_str);
            *self.categories.get_or_insert(&[service, category, kind, fault]) += count;
        }
        for (family, states) in
            [(&mut self.confirmations, &CONFIRMATIONS[..]), (&mut self.tokens, &TOKENS[..])]
        {
            if let Some((state, _)) = states.iter().find(|(_, codes)| codes.contains(&code)) {
                *family.get_or_insert(&[service, state]) += count;
            }
        }
    }

    fn add_calls(&mut self, calls: &CallCounts, arrival: i64) {
        let operation = &*calls.operation;
        if calls.is_caller {
            if self
                .server_reports
                .get(operation)
                .is_some_and(|last| arrival.saturating_sub(*last) < SERVER_REPORT_TTL_US)
            {
                return;
            }
        } else if self.server_reports.len() < self.max_operations
            || self.server_reports.contains_key(operation)
        {
            self.server_reports.insert(operation.into(), arrival);
        }
        self.register_service(&calls.service, Some(calls.dialect));
        let service = self.service_label(&calls.service);
        let outcome = match calls.outcome {
            Outcome::Ok | Outcome::InputRequired => "ok",
            Outcome::Pending => "pending",
            Outcome::Failed => "failed",
            Outcome::Hidden => "hidden",
        };
        let count =
            if outcome == "ok" { pay_back(&mut self.withheld, service, calls.count) } else { calls.count };
        if calls.late_failures > 0 {
            *self.withheld.entry(service.into()).or_default() += calls.late_failures;
        }
        *self.requests.get_or_insert(&[service, outcome]) += count + calls.late_failures;
        *self.unverified.get_or_insert(&[service]) += calls.unverified;
        if calls.outcome != Outcome::Pending {
            self.captures.add(service, calls.count, calls.unverified);
        }
        if calls.durations.count > 0 {
            self.durations.get_or_insert(&[service, operation]).add(&calls.durations);
        }
    }

    fn add_quota(&mut self, report: &QuotaReport, arrival: i64) {
        let service = self.service_label(&report.service);
        // The other levels begin at 0, so that alerts can watch them from now on.
        for level in QuotaLevel::ALL {
            *self.quota_events.get_or_insert(&[service, &report.metric, level.as_str()]) +=
                if *level == report.level { report.count } else { 0 };
        }
        self.quotas.record(service, report, arrival);
    }

    fn add_denial(&mut self, denial: &Denial) {
        let (service, operation) = (self.service_label(&denial.service), &*denial.operation);
        match &denial.cause {
            DenialCause::Trust { required, actual } => {
                *self.trust_denials.get_or_insert(&[service, operation, required, actual]) += denial.count;
            }
            DenialCause::Danger { level } => {
                *self.danger_denials.get_or_insert(&[service, operation, level]) += denial.count;
            }
        }
    }

    /// Returns the label value of a service: its name if it is registered, else [`OTHER`].
    fn service_label<'s>(&self, service: &'s str) -> &'s str {
        if self.services.contains_key(service) { service } else { OTHER }
    }

    /// Registers a service and its dialect. Its series begin at 0 before its first event.
    pub(super) fn register_service(&mut self, service: &str, dialect: Option<Dialect>) {
        if !self.services.contains_key(service) {
            if self.services.len() >= self.series_limits.services {
                return;
            }
            let is_zero_initialized = self.services.len() < MAX_ZERO_INITIALIZED_SERVICES;
            self.services.insert(service.into(), Dialects { seen: 0, is_zero_initialized });
            if is_zero_initialized {
                self.initialize_series(service);
            }
        }
        let Some((dialects, dialect)) = self.services.get_mut(service).zip(dialect) else { return };
        let bit = 1 << dialect as u16;
        let is_new = dialects.seen & bit == 0;
        dialects.seen |= bit;
        if is_new && dialects.is_zero_initialized {
            self.initialize_code_series(service, dialect);
        }
    }

    fn initialize_series(&mut self, service: &str) {
        for (category, faults) in USUAL_FAULTS {
            let faults = faults.iter().map(|fault| fault.as_str()).chain([UNKNOWN]);
            for fault in faults {
                self.categories.get_or_insert(&[
                    service,
                    category.as_str(),
                    EventKind::Error.as_str(),
                    fault,
                ]);
            }
        }
        self.unverified.get_or_insert(&[service]);
        for outcome in OUTCOMES {
            self.requests.get_or_insert(&[service, outcome]);
        }
        for (state, _) in CONFIRMATIONS {
            self.confirmations.get_or_insert(&[service, state]);
        }
        for (state, _) in TOKENS {
            self.tokens.get_or_insert(&[service, state]);
        }
        self.findings.get_or_insert(&[service, Finding::UnregisteredCode.as_str()]);
        self.new_groups.get_or_insert(&[service]);
        self.over_budget.get_or_insert(&[service]);
    }

    fn initialize_code_series(&mut self, service: &str, seen: Dialect) {
        for (dialect, category, kind, code) in &self.alerting_codes {
            if *dialect == seen {
                self.events.get_or_insert(&[
                    service,
                    category.as_str(),
                    code,
                    kind.as_str(),
                    dialect.as_str(),
                ]);
            }
        }
    }

    /// Removes quotas that have expired.
    pub(super) fn expire(&mut self, now: i64) {
        self.quotas.expire(now);
    }

    /// Returns every metric with its series.
    pub(super) fn collect(&self) -> Vec<MetricFamily> {
        let mut families: Vec<_> = self.counters().map(Family::counters).into();
        families.push(self.durations.collect(&names::OPERATION_DURATION, |durations, series| {
            series.set_histogram(proto_values::histogram(durations));
            true
        }));
        families.extend(self.quotas.collect());
        families
    }

    /// Returns the unverified calls of each service.
    pub(super) fn captures(&self) -> &Captures {
        &self.captures
    }

    fn counters(&self) -> [&Family<u64>; 12] {
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
            &self.unverified,
        ]
    }

    /// Returns the number of series.
    pub(super) fn series(&self) -> usize {
        let counters: usize = self.counters().into_iter().map(Family::len).sum();
        counters + HISTOGRAM_LINES * self.durations.len() + self.quotas.series()
    }

    /// Returns how often labels had to be replaced, by metric.
    pub(super) fn capped(&self) -> Vec<(&'static str, u64)> {
        let mut capped: Vec<_> = self.counters().into_iter().map(Family::capped).collect();
        capped.extend([self.durations.capped(), self.quotas.capped()]);
        capped
    }
}

/// Returns the registered codes of the categories that have alerts.
fn alerting_codes(registry: &Registry) -> Vec<(Dialect, Category, EventKind, Box<str>)> {
    let is_alerting = |category: &Category| ALERTING_CATEGORIES.contains(category);
    let entries = registry.entries().iter().filter(|entry| is_alerting(&entry.meaning.category));
    let mut alerting_codes: Vec<_> = entries
        .map(|entry| {
            // A code that comes with a successful call is a warning.
            let kind = if entry.http_status == Some(200) { EventKind::Warning } else { EventKind::Error };
            (entry.dialect, entry.meaning.category, kind, Box::from(entry.canonical.as_str()))
        })
        .collect();
    alerting_codes.sort_by(|left, right| (left.0 as u8, &left.3).cmp(&(right.0 as u8, &right.3)));
    alerting_codes.dedup_by(|left, right| (left.0, &left.3) == (right.0, &right.3));
    alerting_codes
}
