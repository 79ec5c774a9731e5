//! The summary of a batch of rows for the metrics: computed while its rows are in memory as Arrow arrays, and added
//! to the metrics when they are durable.
//!
//! Rows are compared by dictionary keys and never by text: within a batch, equal rows have the same few keys.

use super::batch_columns::{EventColumns, TrafficColumns};
use super::names::OTHER;
use arrow::array::{Array, AsArray, DictionaryArray, PrimitiveArray, RecordBatch};
use arrow::datatypes::{Float64Type, Int8Type, TimestampMicrosecondType};
use classifier::{Category, Dialect, EventKind, Fault, Finding, Outcome, QuotaLevel};
use std::collections::HashMap;
use store::rows::BUCKET_BOUNDS_US;

/// The number of groups that are distinguished in one batch, for each kind of count. Legitimate senders stay far
/// below it; names beyond it count as [`OTHER`].
const MAX_GROUPS: usize = 1 << 14;
/// The key of a row without a name, and the key of names that are not distinguished.
pub(super) const NO_KEY: i32 = -1;
pub(super) const OTHER_KEY: i32 = -2;

/// The counts that one batch adds to the metrics.
#[derive(Debug, Default)]
pub(crate) struct BatchSummary {
    /// The time at which the batch was closed, in microseconds since 1970.
    pub(super) arrival: i64,
    pub(super) events: Vec<EventCounts>,
    pub(super) calls: Vec<CallCounts>,
    pub(super) findings: Vec<(Box<str>, Finding, u64)>,
    /// The reports of quotas, in their order.
    pub(super) quotas: Vec<QuotaReport>,
    pub(super) denials: Vec<Denial>,
    /// Groups of errors, by fingerprint, with their service.
    pub(super) groups: Vec<(u64, Box<str>)>,
    /// The number of events without a row of their own, by service.
    pub(super) over_budget: Vec<(Box<str>, u64)>,
}

/// The number of events with the same attributes.
#[derive(Debug)]
pub(super) struct EventCounts {
    pub(super) service: Box<str>,
    pub(super) canonical: Box<str>,
    pub(super) category: Category,
    /// The party at fault; `None` if it is unknown.
    pub(super) fault: Option<Fault>,
    pub(super) kind: EventKind,
    pub(super) dialect: Dialect,
    pub(super) count: u64,
}

/// The number of calls with the same attributes, and their durations.
#[derive(Debug)]
pub(super) struct CallCounts {
    pub(super) service: Box<str>,
    pub(super) operation: Box<str>,
    pub(super) dialect: Dialect,
    pub(super) outcome: Outcome,
    /// True if the calls were reported by the caller.
    pub(super) is_caller: bool,
    pub(super) count: u64,
    /// The number of failures of calls that an earlier summary counted as successes.
    pub(super) late_failures: u64,
    /// The number of these calls that are taken for successes although the content of their reply was not captured.
    pub(super) unverified: u64,
    pub(super) durations: Durations,
}

impl CallCounts {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.late_failures += other.late_failures;
        self.unverified += other.unverified;
        self.durations.add(&other.durations);
    }
}

/// The distribution of the durations of calls.
#[derive(Debug, Clone, Default)]
pub(super) struct Durations {
    pub(super) count: u64,
    pub(super) sum_us: u64,
    /// The number of calls that took at most each of [`BUCKET_BOUNDS_US`].
    pub(super) bucket_counts: [u64; BUCKET_BOUNDS_US.len()],
}

impl Durations {
    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        for (mine, theirs) in self.bucket_counts.iter_mut().zip(other.bucket_counts) {
            *mine += theirs;
        }
    }
}

/// A report of a quota by an event.
#[derive(Debug)]
pub(super) struct QuotaReport {
    pub(super) service: Box<str>,
    pub(super) metric: Box<str>,
    pub(super) client: Box<str>,
    pub(super) level: QuotaLevel,
    pub(super) current: Option<f64>,
    pub(super) limit: Option<f64>,
    /// The time of the reset, in microseconds since 1970.
    pub(super) resets_at: Option<i64>,
    /// The number of events that made this report.
    pub(super) count: u64,
}

/// A denial because of a trust level that is too low, or because of danger.
#[derive(Debug)]
pub(super) struct Denial {
    pub(super) service: Box<str>,
    pub(super) operation: Box<str>,
    pub(super) cause: DenialCause,
    pub(super) count: u64,
}

#[derive(Debug)]
pub(super) enum DenialCause {
    Trust { required: Box<str>, actual: Box<str> },
    Danger { level: Box<str> },
}

impl BatchSummary {
    /// Summarizes the rows of a batch.
    pub(crate) fn new(arrival: i64, events: &RecordBatch, traffic: &RecordBatch) -> Self {
        let mut summary = Self { arrival, ..Self::default() };
        if events.num_rows() > 0
            && let Some(columns) = EventColumns::of(events)
        {
            summary.add_events(&columns);
        }
        if traffic.num_rows() > 0 {
            summary.add_traffic(traffic);
        }
        summary
    }

    fn add_events(&mut self, columns: &EventColumns<'_>) {
        let EventColumns { service, canonical, category, fault, kind, dialect, fingerprint, .. } = columns;
        let mut sums = GroupedCounts::new(2);
        let mut over_budget = GroupedCounts::new(1);
        let mut groups: HashMap<i32, i32> = HashMap::new();
        let better = columns.superseded_here();
        for row in 0..columns.rows {
            let count = columns.count_once(row, &better);
            if count == 0 {
                continue;
            }
            let names = [service, canonical, category, fault, kind, dialect];
            let keys = names.map(|names| names.key(row));
            sums.add(keys, count);
            if count > 1 {
                over_budget.add([service.key(row)], count - 1);
            }
            let is_news = kind.key(row) != EventKind::Audit as i32 && fault.key(row) != Fault::Probe as i32;
            if is_news && groups.len() < MAX_GROUPS {
                groups.entry(fingerprint.key(row)).or_insert_with(|| service.key(row));
            }
        }
        self.events = sums
            .into_iter()
            .map(|([service_number, code, category, fault, kind, dialect], count)| EventCounts {
                service: service.text(service_number),
                canonical: canonical.text(code),
                category: variant(Category::ALL, category).unwrap_or(Category::Unknown),
                fault: variant(Fault::ALL, fault),
                kind: variant(EventKind::ALL, kind).unwrap_or(EventKind::Error),
                dialect: variant(Dialect::ALL, dialect).unwrap_or(Dialect::Unknown),
                count,
            })
            .collect();
        self.over_budget =
            over_budget.into_iter().map(|([number], count)| (service.text(number), count)).collect();
        let group = |(number, of): (i32, i32)| {
            Some((u64::from_str_radix(&fingerprint.text(number), 16).ok()?, service.text(of)))
        };
        self.groups = groups.into_iter().filter_map(group).collect();
        self.add_findings(columns);
        self.add_quotas(columns);
        self.add_denials(columns);
    }

    fn add_findings(&mut self, columns: &EventColumns<'_>) {
        let findings = columns.findings;
        let Some(finding_keys) = findings.values().as_dictionary_opt::<Int8Type>().map(DictionaryArray::keys)
        else {
            return;
        };
        let mut sums = GroupedCounts::new(1);
        for row in 0..columns.rows {
            let ends = findings.value_offsets();
            for index in ends[row]..ends[row + 1] {
                let variant =
                    usize::try_from(index).map_or(NO_KEY, |index| i32::from(finding_keys.value(index)));
                sums.add([columns.service.key(row), variant], columns.count(row));
            }
        }
        let finding = |([service, finding], count): ([i32; 2], u64)| {
            Some((columns.service.text(service), variant(Finding::ALL, finding)?, count))
        };
        self.findings = sums.into_iter().filter_map(finding).collect();
    }

    fn add_quotas(&mut self, columns: &EventColumns<'_>) {
        let levels = columns.quota_level;
        if levels.null_count() == levels.len() {
            return;
        }
        let says_level = |row: &usize| levels.is_valid(*row) && columns.count(*row) > 0;
        for row in (0..columns.rows).filter(says_level).take(MAX_GROUPS) {
            let Some(level) = variant(QuotaLevel::ALL, i32::from(levels.value(row))) else { continue };
            // A plain "slow down" is a rate limit, not a quota.
            if level == QuotaLevel::Exceeded && columns.quota_metric.key(row) < 0 {
                continue;
            }
            let number = |keys: &PrimitiveArray<Float64Type>| {
                keys.is_valid(row).then(|| keys.value(row)).filter(|number| number.is_finite())
            };
            let seconds =
                |time: &PrimitiveArray<TimestampMicrosecondType>| time.is_valid(row).then(|| time.value(row));
            let after = number(columns.retry_after_s).map(|seconds| self.arrival + micros(seconds));
            self.quotas.push(QuotaReport {
                service: columns.service.text_at(row),
                metric: columns.quota_metric.text_at(row),
                client: columns.client.text_at(row),
                level,
                current: number(columns.quota_current),
                limit: number(columns.quota_limit),
                resets_at: seconds(columns.resets_at).or(after),
                count: columns.count(row),
            });
        }
    }

    fn add_denials(&mut self, columns: &EventColumns<'_>) {
        let EventColumns { required_trust, actual_trust, danger_level, canonical, .. } = columns;
        let denied = |row: &usize| {
            columns.category.key(*row) == Category::Permission as i32
                && columns.kind.key(*row) == EventKind::Error as i32
                && columns.count(*row) > 0
        };
        for row in (0..columns.rows).filter(denied).take(MAX_GROUPS) {
            let has_trust = required_trust.key(row) >= 0 || actual_trust.key(row) >= 0;
            let cause = match &*canonical.text_at(row) {
                // A call that waits for a confirmation is not denied yet.
                "CONFIRMATION_REQUIRED" => continue,
                "PERMISSION_DANGER_LEVEL_DENIED" => DenialCause::Danger { level: danger_level.text_at(row) },
                "PERMISSION_TRUST_LEVEL_INSUFFICIENT" => trust_denial(columns, row),
                _ if has_trust => trust_denial(columns, row),
                _ if danger_level.key(row) >= 0 => DenialCause::Danger { level: danger_level.text_at(row) },
                _ => continue,
            };
            let (service, operation) = (columns.service.text_at(row), columns.operation.text_at(row));
            self.denials.push(Denial { service, operation, cause, count: columns.count(row) });
        }
    }

    fn add_traffic(&mut self, traffic: &RecordBatch) {
        let Some(columns) = TrafficColumns::of(traffic) else { return };
        let mut indexes: HashMap<[i32; 5], usize, foldhash::fast::RandomState> = HashMap::default();
        for row in 0..traffic.num_rows() {
            let Some(mut calls) = columns.calls(row) else { continue };
            let mut keys = columns.keys(row);
            if self.calls.len() >= MAX_GROUPS && !indexes.contains_key(&keys) {
                keys[..2].fill(OTHER_KEY);
                (calls.service, calls.operation) = (OTHER.into(), OTHER.into());
            }
            match indexes.get(&keys) {
                Some(index) => self.calls[*index].add(&calls),
                None => {
                    indexes.insert(keys, self.calls.len());
                    self.calls.push(calls);
                }
            }
        }
    }
}

fn trust_denial(columns: &EventColumns<'_>, row: usize) -> DenialCause {
    DenialCause::Trust {
        required: columns.required_trust.text_at(row),
        actual: columns.actual_trust.text_at(row),
    }
}

/// Converts seconds to microseconds; numbers out of range are limited to 0 and a century.
fn micros(seconds: f64) -> i64 {
    const CENTURY: f64 = 3.2e9;
    (seconds.clamp(0.0, CENTURY) * 1e6) as i64
}

/// Returns the variant of a closed list with an index.
pub(super) fn variant<W: Copy>(all: &[W], index: i32) -> Option<W> {
    usize::try_from(index).ok().and_then(|index| all.get(index)).copied()
}

/// Counts events by their keys.
struct GroupedCounts<const N: usize> {
    sums: HashMap<[i32; N], u64, foldhash::fast::RandomState>,
    /// The keys of the previous row, and the number of consecutive events with them: the next row often has the same
    /// keys.
    last: ([i32; N], u64),
    /// The number of leading keys that represent names from senders.
    name_columns: usize,
}

impl<const N: usize> GroupedCounts<N> {
    fn new(name_columns: usize) -> Self {
        Self { sums: HashMap::default(), last: ([NO_KEY; N], 0), name_columns }
    }

    fn add(&mut self, keys: [i32; N], count: u64) {
        if self.last.0 == keys {
            self.last.1 += count;
            return;
        }
        self.flush_last();
        self.last = (keys, count);
    }

    fn flush_last(&mut self) {
        let (mut keys, count) = self.last;
        if count == 0 {
            return;
        }
        if self.sums.len() >= MAX_GROUPS && !self.sums.contains_key(&keys) {
            keys[..self.name_columns.min(N)].fill(OTHER_KEY);
        }
        *self.sums.entry(keys).or_default() += count;
    }

    fn into_iter(mut self) -> impl Iterator<Item = ([i32; N], u64)> {
        self.flush_last();
        self.sums.into_iter()
    }
}
