//! What a batch of rows means for the metrics: summed while its rows stand in memory as Arrow arrays, and added to the
//! metrics when they are durable.
//!
//! Rows are never looked at as texts: names are numbers in a batch, so rows that are alike have the same few numbers.

use super::names::{OTHER, UNKNOWN};
use arrow::array::{Array, ArrayRef, AsArray, DictionaryArray, Int8Array, PrimitiveArray, RecordBatch};
use arrow::datatypes::{
    ArrowDictionaryKeyType, Float64Type, Int8Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use std::collections::HashMap;
use store::rows::BUCKET_BOUNDS_US;
use taxonomy::{Category, Dialect, Finding, Kind, Outcome, QuotaLevel};

/// Sums of one batch, of each sort. Nobody sends more by accident: names beyond that are not told apart.
const MOST: usize = 1 << 14;
/// The number of a row without a name, and that of names which are not told apart.
const NONE: i32 = -1;
const OTHERS: i32 = -2;

/// What one batch adds to the metrics.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// When it arrived, in microseconds since 1970.
    pub(super) arrival: i64,
    pub(super) events: Vec<Events>,
    pub(super) calls: Vec<Calls>,
    pub(super) findings: Vec<(Box<str>, Finding, u64)>,
    /// What was said about quotas, in the order it was.
    pub(super) quotas: Vec<QuotaWord>,
    pub(super) denials: Vec<Denial>,
    /// Groups of errors, with their service.
    pub(super) groups: Vec<(u64, Box<str>)>,
    /// Events without a row of their own, by service.
    pub(super) over_budget: Vec<(Box<str>, u64)>,
}

/// Events that are alike.
#[derive(Debug)]
pub(super) struct Events {
    pub(super) service: Box<str>,
    pub(super) canonical: Box<str>,
    pub(super) category: Category,
    pub(super) kind: Kind,
    pub(super) dialect: Dialect,
    pub(super) count: u64,
}

/// Calls that are alike.
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) service: Box<str>,
    pub(super) operation: Box<str>,
    pub(super) dialect: Dialect,
    pub(super) outcome: Outcome,
    /// Reported by the side that asked.
    pub(super) is_caller: bool,
    pub(super) count: u64,
    pub(super) durations: Durations,
}

impl Calls {
    fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.durations.add(&other.durations);
    }
}

/// How long calls took.
#[derive(Debug, Clone, Default)]
pub(super) struct Durations {
    pub(super) count: u64,
    pub(super) sum_us: u64,
    /// How many took at most each of [`BUCKET_BOUNDS_US`].
    pub(super) within: [u64; BUCKET_BOUNDS_US.len()],
}

impl Durations {
    pub(super) fn add(&mut self, other: &Self) {
        self.count += other.count;
        self.sum_us = self.sum_us.saturating_add(other.sum_us);
        for (mine, theirs) in self.within.iter_mut().zip(other.within) {
            *mine += theirs;
        }
    }
}

/// What an event says about a quota.
#[derive(Debug)]
pub(super) struct QuotaWord {
    pub(super) service: Box<str>,
    pub(super) metric: Box<str>,
    pub(super) client: Box<str>,
    pub(super) level: QuotaLevel,
    pub(super) current: Option<f64>,
    pub(super) limit: Option<f64>,
    /// In microseconds since 1970.
    pub(super) resets_at: Option<i64>,
    /// How often it was said.
    pub(super) count: u64,
}

/// A denial for want of trust, or because of danger.
#[derive(Debug)]
pub(super) struct Denial {
    pub(super) service: Box<str>,
    pub(super) operation: Box<str>,
    pub(super) why: Why,
    pub(super) count: u64,
}

#[derive(Debug)]
pub(super) enum Why {
    Trust { required: Box<str>, actual: Box<str> },
    Danger { level: Box<str> },
}

impl Counted {
    /// Sums the rows of a batch.
    pub(crate) fn new(arrival: i64, events: &RecordBatch, traffic: &RecordBatch) -> Self {
        let mut counted = Self { arrival, ..Self::default() };
        if events.num_rows() > 0
            && let Some(columns) = EventColumns::of(events)
        {
            counted.add_events(&columns);
        }
        if traffic.num_rows() > 0 {
            counted.add_traffic(traffic);
        }
        counted
    }

    fn add_events(&mut self, columns: &EventColumns<'_>) {
        let EventColumns { service, canonical, category, kind, dialect, fingerprint, .. } = columns;
        let mut sums = Sums::new(2);
        let mut over_budget = Sums::new(1);
        let mut groups: HashMap<i32, i32> = HashMap::new();
        for row in 0..columns.rows {
            let numbers = [
                service.number(row),
                canonical.number(row),
                category.number(row),
                kind.number(row),
                dialect.number(row),
            ];
            let count = columns.count(row);
            sums.add(numbers, count);
            if count > 1 {
                over_budget.add([service.number(row)], count - 1);
            }
            let is_audit = kind.number(row) == Kind::Audit as i32;
            if !is_audit && groups.len() < MOST {
                groups.entry(fingerprint.number(row)).or_insert_with(|| service.number(row));
            }
        }
        self.events = sums
            .into_iter()
            .map(|([service_number, code, category, kind, dialect], count)| Events {
                service: service.text(service_number),
                canonical: canonical.text(code),
                category: word(Category::ALL, category).unwrap_or(Category::Unknown),
                kind: word(Kind::ALL, kind).unwrap_or(Kind::Error),
                dialect: word(Dialect::ALL, dialect).unwrap_or(Dialect::Unknown),
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
        let Some(words) = findings.values().as_dictionary_opt::<Int8Type>().map(DictionaryArray::keys) else {
            return;
        };
        let mut sums = Sums::new(1);
        for row in 0..columns.rows {
            let ends = findings.value_offsets();
            for place in ends[row]..ends[row + 1] {
                let word = usize::try_from(place).map_or(NONE, |place| i32::from(words.value(place)));
                sums.add([columns.service.number(row), word], columns.count(row));
            }
        }
        let finding = |([service, finding], count): ([i32; 2], u64)| {
            Some((columns.service.text(service), word(Finding::ALL, finding)?, count))
        };
        self.findings = sums.into_iter().filter_map(finding).collect();
    }

    fn add_quotas(&mut self, columns: &EventColumns<'_>) {
        let levels = columns.quota_level;
        if levels.null_count() == levels.len() {
            return;
        }
        for row in (0..columns.rows).filter(|row| levels.is_valid(*row)).take(MOST) {
            let Some(level) = word(QuotaLevel::ALL, i32::from(levels.value(row))) else { continue };
            // A plain "slow down" is a rate limit, not a quota.
            if level == QuotaLevel::Exceeded && columns.quota_metric.number(row) < 0 {
                continue;
            }
            let number = |numbers: &PrimitiveArray<Float64Type>| {
                numbers.is_valid(row).then(|| numbers.value(row)).filter(|number| number.is_finite())
            };
            let seconds =
                |time: &PrimitiveArray<TimestampMicrosecondType>| time.is_valid(row).then(|| time.value(row));
            let after = number(columns.retry_after_s).map(|seconds| self.arrival + micros(seconds));
            self.quotas.push(QuotaWord {
                service: columns.service.at(row),
                metric: columns.quota_metric.at(row),
                client: columns.client.at(row),
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
            columns.category.number(*row) == Category::Permission as i32
                && columns.kind.number(*row) == Kind::Error as i32
        };
        for row in (0..columns.rows).filter(denied).take(MOST) {
            let has_trust = required_trust.number(row) >= 0 || actual_trust.number(row) >= 0;
            let why = match &*canonical.at(row) {
                // It waits for a yes, and is no denial yet.
                "CONFIRMATION_REQUIRED" => continue,
                "PERMISSION_DANGER_LEVEL_DENIED" => Why::Danger { level: danger_level.at(row) },
                "PERMISSION_TRUST_LEVEL_INSUFFICIENT" => trust(columns, row),
                _ if has_trust => trust(columns, row),
                _ if danger_level.number(row) >= 0 => Why::Danger { level: danger_level.at(row) },
                _ => continue,
            };
            let (service, operation) = (columns.service.at(row), columns.operation.at(row));
            self.denials.push(Denial { service, operation, why, count: columns.count(row) });
        }
    }

    fn add_traffic(&mut self, traffic: &RecordBatch) {
        let Some(columns) = TrafficColumns::of(traffic) else { return };
        let mut places: HashMap<[i32; 5], usize, foldhash::fast::RandomState> = HashMap::default();
        for row in 0..traffic.num_rows() {
            let Some(mut calls) = columns.calls(row) else { continue };
            let mut numbers = columns.numbers(row);
            if self.calls.len() >= MOST && !places.contains_key(&numbers) {
                numbers[..2].fill(OTHERS);
                (calls.service, calls.operation) = (OTHER.into(), OTHER.into());
            }
            match places.get(&numbers) {
                Some(place) => self.calls[*place].add(&calls),
                None => {
                    places.insert(numbers, self.calls.len());
                    self.calls.push(calls);
                }
            }
        }
    }
}

fn trust(columns: &EventColumns<'_>, row: usize) -> Why {
    Why::Trust { required: columns.required_trust.at(row), actual: columns.actual_trust.at(row) }
}

/// Seconds as microseconds; a number out of all bounds is cut to a century.
fn micros(seconds: f64) -> i64 {
    const CENTURY: f64 = 3.2e9;
    (seconds.clamp(0.0, CENTURY) * 1e6) as i64
}

/// A word of a closed list by its place.
fn word<W: Copy>(all: &[W], place: i32) -> Option<W> {
    usize::try_from(place).ok().and_then(|place| all.get(place)).copied()
}

/// How many events have the same numbers.
struct Sums<const N: usize> {
    sums: HashMap<[i32; N], u64, foldhash::fast::RandomState>,
    /// The numbers of the row before, and how many events had them in succession: more often than not, the next has them too.
    last: ([i32; N], u64),
    /// How many of the numbers stand for names that were sent.
    learnt: usize,
}

impl<const N: usize> Sums<N> {
    fn new(learnt: usize) -> Self {
        Self { sums: HashMap::default(), last: ([NONE; N], 0), learnt }
    }

    fn add(&mut self, numbers: [i32; N], count: u64) {
        if self.last.0 == numbers {
            self.last.1 += count;
            return;
        }
        self.keep();
        self.last = (numbers, count);
    }

    fn keep(&mut self) {
        let (mut numbers, count) = self.last;
        if count == 0 {
            return;
        }
        if self.sums.len() >= MOST && !self.sums.contains_key(&numbers) {
            numbers[..self.learnt.min(N)].fill(OTHERS);
        }
        *self.sums.entry(numbers).or_default() += count;
    }

    fn into_iter(mut self) -> impl Iterator<Item = ([i32; N], u64)> {
        self.keep();
        self.sums.into_iter()
    }
}

/// A column of names or of words of a closed list: a number for each row, and a text for each number.
struct Names<'b> {
    keys: Keys<'b>,
    texts: &'b arrow::array::StringArray,
}

enum Keys<'b> {
    Small(&'b PrimitiveArray<Int8Type>),
    Large(&'b PrimitiveArray<Int32Type>),
}

impl<'b> Names<'b> {
    fn of(batch: &'b RecordBatch, name: &str) -> Option<Self> {
        let column = batch.column_by_name(name)?;
        Self::of_keys(column, Keys::Large).or_else(|| Self::of_keys(column, Keys::Small))
    }

    fn of_keys<K: ArrowDictionaryKeyType>(
        column: &'b ArrayRef,
        keys: fn(&'b PrimitiveArray<K>) -> Keys<'b>,
    ) -> Option<Self> {
        let column = column.as_dictionary_opt::<K>()?;
        Some(Self { keys: keys(column.keys()), texts: column.values().as_string_opt::<i32>()? })
    }

    /// The number of a row; negative when it has none.
    #[inline]
    fn number(&self, row: usize) -> i32 {
        match self.keys {
            Keys::Small(keys) if keys.is_valid(row) => i32::from(keys.value(row)),
            Keys::Large(keys) if keys.is_valid(row) => keys.value(row),
            _ => NONE,
        }
    }

    fn text(&self, number: i32) -> Box<str> {
        let nameless = if number == OTHERS { OTHER } else { UNKNOWN };
        usize::try_from(number).map_or(nameless, |number| self.texts.value(number)).into()
    }

    fn at(&self, row: usize) -> Box<str> {
        self.text(self.number(row))
    }
}

/// The columns of events that metrics are made of.
struct EventColumns<'b> {
    rows: usize,
    service: Names<'b>,
    canonical: Names<'b>,
    category: Names<'b>,
    kind: Names<'b>,
    dialect: Names<'b>,
    fingerprint: Names<'b>,
    operation: Names<'b>,
    client: Names<'b>,
    required_trust: Names<'b>,
    actual_trust: Names<'b>,
    danger_level: Names<'b>,
    quota_metric: Names<'b>,
    quota_level: &'b Int8Array,
    quota_current: &'b PrimitiveArray<Float64Type>,
    quota_limit: &'b PrimitiveArray<Float64Type>,
    retry_after_s: &'b PrimitiveArray<Float64Type>,
    resets_at: &'b PrimitiveArray<TimestampMicrosecondType>,
    findings: &'b arrow::array::ListArray,
    represents: &'b PrimitiveArray<Int64Type>,
}

impl<'b> EventColumns<'b> {
    /// How many events a row stands for.
    #[inline]
    fn count(&self, row: usize) -> u64 {
        u64::try_from(self.represents.value(row)).unwrap_or(1)
    }

    fn of(events: &'b RecordBatch) -> Option<Self> {
        let names = |name| Names::of(events, name);
        let numbers = |name| events.column_by_name(name)?.as_primitive_opt::<Float64Type>();
        Some(Self {
            rows: events.num_rows(),
            service: names("service")?,
            canonical: names("canonical")?,
            category: names("category")?,
            kind: names("kind")?,
            dialect: names("dialect")?,
            fingerprint: names("fingerprint")?,
            operation: names("operation")?,
            client: names("client")?,
            required_trust: names("required_trust")?,
            actual_trust: names("actual_trust")?,
            danger_level: names("danger_level")?,
            quota_metric: names("quota_metric")?,
            quota_level: events.column_by_name("quota_level")?.as_dictionary_opt::<Int8Type>()?.keys(),
            quota_current: numbers("quota_current")?,
            quota_limit: numbers("quota_limit")?,
            retry_after_s: numbers("retry_after_s")?,
            resets_at: events.column_by_name("resets_at")?.as_primitive_opt()?,
            findings: events.column_by_name("findings")?.as_list_opt::<i32>()?,
            represents: events.column_by_name("represents")?.as_primitive_opt()?,
        })
    }
}

/// The columns of the histogram, in the order of their bounds.
fn buckets(traffic: &RecordBatch) -> Vec<&PrimitiveArray<Int64Type>> {
    let columns = traffic.schema_ref().fields().iter().zip(traffic.columns());
    columns
        .filter(|(field, _)| field.name().starts_with("took_at_most_"))
        .filter_map(|(_, column)| column.as_primitive_opt())
        .collect()
}

/// The columns of traffic that metrics are made of.
struct TrafficColumns<'b> {
    service: Names<'b>,
    operation: Names<'b>,
    dialect: Names<'b>,
    outcome: Names<'b>,
    span_kind: Names<'b>,
    calls: &'b PrimitiveArray<Int64Type>,
    timed: &'b PrimitiveArray<Int64Type>,
    duration_sum: &'b PrimitiveArray<Int64Type>,
    within: Vec<&'b PrimitiveArray<Int64Type>>,
}

impl<'b> TrafficColumns<'b> {
    fn of(traffic: &'b RecordBatch) -> Option<Self> {
        let names = |name| Names::of(traffic, name);
        let numbers = |name| traffic.column_by_name(name)?.as_primitive_opt::<Int64Type>();
        Some(Self {
            service: names("service")?,
            operation: names("operation")?,
            dialect: names("dialect")?,
            outcome: names("outcome")?,
            span_kind: names("span_kind")?,
            calls: numbers("calls")?,
            timed: numbers("timed_calls")?,
            duration_sum: numbers("duration_sum_us")?,
            within: buckets(traffic),
        })
    }

    /// What is alike about the calls of a row.
    fn numbers(&self, row: usize) -> [i32; 5] {
        let Self { service, operation, dialect, outcome, span_kind, .. } = self;
        [service, operation, dialect, outcome, span_kind].map(|names| names.number(row))
    }

    fn calls(&self, row: usize) -> Option<Calls> {
        let number = |numbers: &PrimitiveArray<Int64Type>| u64::try_from(numbers.value(row)).unwrap_or(0);
        let mut within = [0; BUCKET_BOUNDS_US.len()];
        for (count, column) in within.iter_mut().zip(&self.within) {
            *count = number(column);
        }
        let durations = Durations { count: number(self.timed), sum_us: number(self.duration_sum), within };
        Some(Calls {
            service: self.service.at(row),
            operation: self.operation.at(row),
            dialect: word(Dialect::ALL, self.dialect.number(row))?,
            outcome: word(Outcome::ALL, self.outcome.number(row))?,
            is_caller: matches!(&*self.span_kind.at(row), "client" | "producer"),
            count: number(self.calls),
            durations,
        })
    }
}
