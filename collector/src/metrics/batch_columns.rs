//! Typed views of the columns from which the metrics of a batch are computed.

use super::batch_summary::{CallCounts, Durations, NO_KEY, OTHER_KEY, variant};
use super::names::{OTHER, UNKNOWN};
use arrow::array::{Array, ArrayRef, AsArray, Int8Array, PrimitiveArray, RecordBatch};
use arrow::datatypes::{
    ArrowDictionaryKeyType, Float64Type, Int8Type, Int32Type, Int64Type, TimestampMicrosecondType,
};
use classifier::{Dialect, Outcome};
use std::collections::HashSet;
use store::rows::BUCKET_BOUNDS_US;

/// A dictionary column of names, or of values of a closed list: a key for each row, and a text for each key.
pub(super) struct DictionaryColumn<'b> {
    pub(super) keys: DictionaryKeys<'b>,
    pub(super) texts: &'b arrow::array::StringArray,
}

pub(super) enum DictionaryKeys<'b> {
    Small(&'b PrimitiveArray<Int8Type>),
    Large(&'b PrimitiveArray<Int32Type>),
}

impl<'b> DictionaryColumn<'b> {
    pub(super) fn of(batch: &'b RecordBatch, name: &str) -> Option<Self> {
        let column = batch.column_by_name(name)?;
        Self::with_keys(column, DictionaryKeys::Large)
            .or_else(|| Self::with_keys(column, DictionaryKeys::Small))
    }

    pub(super) fn with_keys<K: ArrowDictionaryKeyType>(
        column: &'b ArrayRef,
        keys: fn(&'b PrimitiveArray<K>) -> DictionaryKeys<'b>,
    ) -> Option<Self> {
        let column = column.as_dictionary_opt::<K>()?;
        Some(Self { keys: keys(column.keys()), texts: column.values().as_string_opt::<i32>()? })
    }

    /// Returns the key of a row; negative if the row has no value.
    #[inline]
    pub(super) fn key(&self, row: usize) -> i32 {
        match self.keys {
            DictionaryKeys::Small(keys) if keys.is_valid(row) => i32::from(keys.value(row)),
            DictionaryKeys::Large(keys) if keys.is_valid(row) => keys.value(row),
            _ => NO_KEY,
        }
    }

    pub(super) fn text(&self, number: i32) -> Box<str> {
        let nameless = if number == OTHER_KEY { OTHER } else { UNKNOWN };
        usize::try_from(number).map_or(nameless, |number| self.texts.value(number)).into()
    }

    pub(super) fn text_at(&self, row: usize) -> Box<str> {
        self.text(self.key(row))
    }
}

/// The columns of events from which metrics are computed.
pub(super) struct EventColumns<'b> {
    pub(super) rows: usize,
    pub(super) service: DictionaryColumn<'b>,
    pub(super) canonical: DictionaryColumn<'b>,
    pub(super) category: DictionaryColumn<'b>,
    pub(super) fault: DictionaryColumn<'b>,
    pub(super) kind: DictionaryColumn<'b>,
    pub(super) dialect: DictionaryColumn<'b>,
    pub(super) fingerprint: DictionaryColumn<'b>,
    pub(super) operation: DictionaryColumn<'b>,
    pub(super) client: DictionaryColumn<'b>,
    pub(super) required_trust: DictionaryColumn<'b>,
    pub(super) actual_trust: DictionaryColumn<'b>,
    pub(super) danger_level: DictionaryColumn<'b>,
    pub(super) quota_metric: DictionaryColumn<'b>,
    pub(super) quota_level: &'b Int8Array,
    pub(super) quota_current: &'b PrimitiveArray<Float64Type>,
    pub(super) quota_limit: &'b PrimitiveArray<Float64Type>,
    pub(super) retry_after_s: &'b PrimitiveArray<Float64Type>,
    pub(super) resets_at: &'b PrimitiveArray<TimestampMicrosecondType>,
    pub(super) findings: &'b arrow::array::ListArray,
    pub(super) represents: &'b PrimitiveArray<Int64Type>,
    pub(super) event_id: &'b arrow::array::StringArray,
    pub(super) supersedes: &'b arrow::array::StringArray,
}

impl<'b> EventColumns<'b> {
    /// Returns the number of events that a row represents.
    #[inline]
    pub(super) fn count(&self, row: usize) -> u64 {
        u64::try_from(self.represents.value(row)).unwrap_or(1)
    }

    /// Returns the ids of events of this batch that better reports in the same batch supersede.
    pub(super) fn superseded_here(&self) -> HashSet<&'b str> {
        let ids = self.supersedes;
        if ids.null_count() == ids.len() {
            return HashSet::new();
        }
        let named: HashSet<&str> = ids.iter().flatten().collect();
        self.event_id.iter().flatten().filter(|id| named.contains(id)).collect()
    }

    /// Returns the number of failures that a row adds to those already counted. A report that supersedes one of an
    /// earlier batch adds none; of two reports in this batch, only the better one counts.
    pub(super) fn count_once(&self, row: usize, superseded: &HashSet<&str>) -> u64 {
        let is_counted_elsewhere = superseded.contains(self.event_id.value(row))
            || self.supersedes.is_valid(row) && !superseded.contains(self.supersedes.value(row));
        if is_counted_elsewhere { 0 } else { self.count(row) }
    }

    pub(super) fn of(events: &'b RecordBatch) -> Option<Self> {
        let names = |name| DictionaryColumn::of(events, name);
        let numbers = |name| events.column_by_name(name)?.as_primitive_opt::<Float64Type>();
        Some(Self {
            rows: events.num_rows(),
            service: names("service")?,
            canonical: names("canonical")?,
            category: names("category")?,
            fault: names("fault")?,
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
            event_id: events.column_by_name("event_id")?.as_string_opt::<i32>()?,
            supersedes: events.column_by_name("supersedes")?.as_string_opt::<i32>()?,
        })
    }
}

/// Returns the histogram columns, in the order of their bounds.
pub(super) fn buckets(traffic: &RecordBatch) -> Vec<&PrimitiveArray<Int64Type>> {
    let columns = traffic.schema_ref().fields().iter().zip(traffic.columns());
    columns
        .filter(|(field, _)| field.name().starts_with("took_at_most_"))
        .filter_map(|(_, column)| column.as_primitive_opt())
        .collect()
}

/// The columns of traffic from which metrics are computed.
pub(super) struct TrafficColumns<'b> {
    pub(super) service: DictionaryColumn<'b>,
    pub(super) operation: DictionaryColumn<'b>,
    pub(super) dialect: DictionaryColumn<'b>,
    pub(super) outcome: DictionaryColumn<'b>,
    pub(super) span_kind: DictionaryColumn<'b>,
    pub(super) calls: &'b PrimitiveArray<Int64Type>,
    pub(super) failures: &'b PrimitiveArray<Int64Type>,
    pub(super) unverified: &'b PrimitiveArray<Int64Type>,
    pub(super) timed: &'b PrimitiveArray<Int64Type>,
    pub(super) duration_sum: &'b PrimitiveArray<Int64Type>,
    pub(super) bucket_counts: Vec<&'b PrimitiveArray<Int64Type>>,
}

impl<'b> TrafficColumns<'b> {
    pub(super) fn of(traffic: &'b RecordBatch) -> Option<Self> {
        let names = |name| DictionaryColumn::of(traffic, name);
        let numbers = |name| traffic.column_by_name(name)?.as_primitive_opt::<Int64Type>();
        Some(Self {
            service: names("service")?,
            operation: names("operation")?,
            dialect: names("dialect")?,
            outcome: names("outcome")?,
            span_kind: names("span_kind")?,
            calls: numbers("calls")?,
            failures: numbers("failures")?,
            unverified: numbers("unverified_calls")?,
            timed: numbers("timed_calls")?,
            duration_sum: numbers("duration_sum_us")?,
            bucket_counts: buckets(traffic),
        })
    }

    /// Returns the keys of the attributes that the calls of a row share.
    pub(super) fn keys(&self, row: usize) -> [i32; 5] {
        let Self { service, operation, dialect, outcome, span_kind, .. } = self;
        [service, operation, dialect, outcome, span_kind].map(|names| names.key(row))
    }

    pub(super) fn calls(&self, row: usize) -> Option<CallCounts> {
        let number = |numbers: &PrimitiveArray<Int64Type>| u64::try_from(numbers.value(row)).unwrap_or(0);
        let mut bucket_counts = [0; BUCKET_BOUNDS_US.len()];
        for (count, column) in bucket_counts.iter_mut().zip(&self.bucket_counts) {
            *count = number(column);
        }
        let durations =
            Durations { count: number(self.timed), sum_us: number(self.duration_sum), bucket_counts };
        Some(CallCounts {
            service: self.service.text_at(row),
            operation: self.operation.text_at(row),
            dialect: variant(Dialect::ALL, self.dialect.key(row))?,
            outcome: variant(Outcome::ALL, self.outcome.key(row))?,
            is_caller: matches!(&*self.span_kind.text_at(row), "client" | "producer" | "internal"),
            count: number(self.calls),
            late_failures: number(self.failures).saturating_sub(number(self.calls)),
            unverified: number(self.unverified),
            durations,
        })
    }
}
