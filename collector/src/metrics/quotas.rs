//! How far quotas have got, as gauges.
//!
//! A gauge is what was said last, and only for so long: a quota that has started anew, or of which nobody has spoken for
//! an hour, is not shown any more.

use super::counted::QuotaWord;
use super::family::{Family, Room};
use super::names::{OTHER, QUOTA_RESET, QUOTA_USAGE};
use prometheus::proto::MetricFamily;
use std::collections::HashMap;
use taxonomy::QuotaLevel;

/// After so long without a word, nobody knows, in microseconds.
const STALE: i64 = 3_600_000_000;
/// Clients of one quota that are told apart.
const CLIENTS: usize = 64;

/// All quotas.
#[derive(Debug)]
pub(super) struct Quotas(Family<Quota>);

/// One quota, by the clients that use it.
#[derive(Debug, Default)]
struct Quota(HashMap<Box<str>, Reading>);

/// What was last said about a client's use.
#[derive(Debug, Clone, Copy)]
struct Reading {
    heard: i64,
    usage: Option<f64>,
    resets_at: Option<i64>,
}

impl Reading {
    fn of(word: &QuotaWord, heard: i64) -> Self {
        let share = word.current.zip(word.limit).map(|(current, limit)| current / limit);
        let share = share.filter(|share| share.is_finite() && *share >= 0.0);
        let nothing_left = (word.level == QuotaLevel::Exhausted).then_some(1.0);
        Self { heard, usage: share.or(nothing_left), resets_at: word.resets_at }
    }

    /// A reset that was over when we heard of it says nothing about what came after.
    fn is_over(&self, now: i64) -> bool {
        let has_reset = self.resets_at.is_some_and(|reset| reset > self.heard && reset <= now);
        has_reset || now.saturating_sub(self.heard) > STALE
    }
}

impl Quota {
    /// The client that has used most.
    fn fullest(&self) -> Option<&Reading> {
        let usage = |reading: &&Reading| reading.usage.unwrap_or(-1.0);
        self.0.values().max_by(|left, right| usage(left).total_cmp(&usage(right)))
    }
}

impl Quotas {
    pub(super) fn new(room: Room) -> Self {
        Self(Family::new(&QUOTA_USAGE, room))
    }

    /// Takes what was said about a quota.
    pub(super) fn hear(&mut self, service: &str, word: &QuotaWord, heard: i64) {
        let clients = &mut self.0.at(&[service, &word.metric]).0;
        let is_room = clients.len() < CLIENTS || clients.contains_key(&word.client);
        let client = if is_room { word.client.clone() } else { OTHER.into() };
        clients.insert(client, Reading::of(word, heard));
    }

    /// Forgets what is over.
    pub(super) fn expire(&mut self, now: i64) {
        self.0.retain(|quota| {
            quota.0.retain(|_, reading| !reading.is_over(now));
            !quota.0.is_empty()
        });
    }

    /// Each is a share and a time.
    pub(super) fn series(&self) -> usize {
        2 * self.0.len()
    }

    pub(super) fn capped(&self) -> (&'static str, u64) {
        self.0.capped()
    }

    pub(super) fn collect(&self) -> [MetricFamily; 2] {
        let seconds = |micros: i64| micros as f64 / 1e6;
        let usage = |quota: &Quota| quota.fullest()?.usage;
        let reset = |quota: &Quota| quota.fullest()?.resets_at.map(seconds);
        [self.0.gauges(&QUOTA_USAGE, usage), self.0.gauges(&QUOTA_RESET, reset)]
    }
}
