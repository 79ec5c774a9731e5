//! Gauges of the usage of quotas.
//!
//! A gauge shows the last report, for a limited time: a quota that was reset, or that nobody has reported for an
//! hour, is not shown any more.

use super::batch_summary::QuotaReport;
use super::family::{Family, SeriesLimit};
use super::names::{OTHER, QUOTA_RESET, QUOTA_USAGE};
use classifier::QuotaLevel;
use prometheus::proto::MetricFamily;
use std::collections::HashMap;

/// The time without a report after which a quota is not shown any more, in microseconds.
const STALE_AFTER_US: i64 = 3_600_000_000;
/// The number of clients of one quota that are distinguished.
const MAX_CLIENTS: usize = 64;

/// The gauges of all quotas.
#[derive(Debug)]
pub(super) struct QuotaGauges(Family<Quota>);

/// One quota, with the last report of each client that uses it.
#[derive(Debug, Default)]
struct Quota(HashMap<Box<str>, QuotaSample>);

/// The last report of a client's usage.
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

    /// Reports whether the sample is outdated. A reset time that had passed when the report came does not expire it.
    fn is_expired(&self, now: i64) -> bool {
        let has_reset = self.resets_at.is_some_and(|reset| reset > self.received_at && reset <= now);
        has_reset || now.saturating_sub(self.received_at) > STALE_AFTER_US
    }
}

impl Quota {
    /// Returns the sample of the client with the highest usage.
    fn highest_usage(&self) -> Option<&QuotaSample> {
        let usage = |sample: &&QuotaSample| sample.usage.unwrap_or(-1.0);
        self.0.values().max_by(|left, right| usage(left).total_cmp(&usage(right)))
    }
}

impl QuotaGauges {
    pub(super) fn new(limit: SeriesLimit) -> Self {
        Self(Family::new(&QUOTA_USAGE, limit))
    }

    /// Records a report of a quota.
    pub(super) fn record(&mut self, service: &str, report: &QuotaReport, received_at: i64) {
        let clients = &mut self.0.get_or_insert(&[service, &report.metric]).0;
        let has_room = clients.len() < MAX_CLIENTS || clients.contains_key(&report.client);
        let client = if has_room { report.client.clone() } else { OTHER.into() };
        clients.insert(client, QuotaSample::of(report, received_at));
    }

    /// Removes samples that have expired.
    pub(super) fn expire(&mut self, now: i64) {
        self.0.retain(|quota| {
            quota.0.retain(|_, sample| !sample.is_expired(now));
            !quota.0.is_empty()
        });
    }

    /// Returns the number of series: each quota has a ratio and a reset time.
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
