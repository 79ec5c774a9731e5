//! How far quotas have got, as gauges.
//!
//! A gauge is what was said last, and only for so long: a quota that has started anew, or of which nobody has spoken for
//! an hour, is not shown any more.

use super::batch_summary::QuotaReport;
use super::family::{Family, SeriesLimit};
use super::names::{OTHER, QUOTA_RESET, QUOTA_USAGE};
use classifier::QuotaLevel;
use prometheus::proto::MetricFamily;
use std::collections::HashMap;

/// After so long without a report, nobody knows, in microseconds.
const STALE_AFTER_US: i64 = 3_600_000_000;
/// Clients of one quota that are told apart.
const MAX_CLIENTS: usize = 64;

/// All quotas.
#[derive(Debug)]
pub(super) struct QuotaGauges(Family<Quota>);

/// One quota, by the clients that use it.
#[derive(Debug, Default)]
struct Quota(HashMap<Box<str>, QuotaSample>);

/// What was last said about a client's use.
#[derive(Debug, Clone, Copy)]
struct QuotaSample {
    received_at: i64,
    usage: Option<f64>,
    resets_at: Option<i64>,
}

impl QuotaSample {
    fn of(report: &QuotaReport, received_at: i64) -> Self {
        let ratio = report.current.zip(report.limit).map(|(current, limit)| current / limit);
        let ratio = ratio.filter(|ratio| ratio.is_finite() && *ratio >= 0.0);
        let exhausted = (report.level == QuotaLevel::Exhausted).then_some(1.0);
        Self { received_at, usage: ratio.or(exhausted), resets_at: report.resets_at }
    }

    /// A reset that was over when we `received_at` of it says nothing about what came after.
    fn is_expired(&self, now: i64) -> bool {
        let has_reset = self.resets_at.is_some_and(|reset| reset > self.received_at && reset <= now);
        has_reset || now.saturating_sub(self.received_at) > STALE_AFTER_US
    }
}

impl Quota {
    /// The client that has used most.
    fn highest_usage(&self) -> Option<&QuotaSample> {
        let usage = |sample: &&QuotaSample| sample.usage.unwrap_or(-1.0);
        self.0.values().max_by(|left, right| usage(left).total_cmp(&usage(right)))
    }
}

impl QuotaGauges {
    pub(super) fn new(limit: SeriesLimit) -> Self {
        Self(Family::new(&QUOTA_USAGE, limit))
    }

    /// Takes what was said about a quota.
    pub(super) fn record(&mut self, service: &str, report: &QuotaReport, received_at: i64) {
        let clients = &mut self.0.get_or_insert(&[service, &report.metric]).0;
        let has_room = clients.len() < MAX_CLIENTS || clients.contains_key(&report.client);
        let client = if has_room { report.client.clone() } else { OTHER.into() };
        clients.insert(client, QuotaSample::of(report, received_at));
    }

    /// Forgets what is over.
    pub(super) fn expire(&mut self, now: i64) {
        self.0.retain(|quota| {
            quota.0.retain(|_, sample| !sample.is_expired(now));
            !quota.0.is_empty()
        });
    }

    /// Each is a ratio and a time.
    pub(super) fn series(&self) -> usize {
        2 * self.0.len()
    }

    pub(super) fn capped(&self) -> (&'static str, u64) {
        self.0.capped()
    }

    pub(super) fn collect(&self) -> [MetricFamily; 2] {
        let seconds = |micros: i64| micros as f64 / 1e6;
        let usage = |quota: &Quota| quota.highest_usage()?.usage;
        let reset = |quota: &Quota| quota.highest_usage()?.resets_at.map(seconds);
        [self.0.gauges(&QUOTA_USAGE, usage), self.0.gauges(&QUOTA_RESET, reset)]
    }
}
