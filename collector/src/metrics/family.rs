//! The series of one metric, in a bounded number.
//!
//! Label values come from senders, who could send a million different ones. Invariant: a service has at most
//! `per_service` series, and all services together have at most `total` and those of the service `_other`; what does
//! not fit is still counted, with the label value `_other`.

use super::names::{DYNAMIC_LABELS, OTHER};
use super::proto_values;
use metrics::Metric;
use prometheus::proto::{LabelPair, MetricFamily};
use std::collections::HashMap;

/// The separator between the label values of a series; it is removed from the values themselves.
const SEPARATOR: char = '\u{1f}';
/// The length, in bytes, to which label values are cut.
const MAX_VALUE_BYTES: usize = 128;

/// The limit on the series of a metric.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesLimit {
    /// The series of one service.
    pub(super) per_service: usize,
    /// The series of all services.
    pub(super) total: usize,
}

impl SeriesLimit {
    /// Returns the limit in proportion to another whole. The limit of one service grows with the whole, but does not
    /// shrink with it.
    pub(super) const fn scaled(self, whole: usize, of: usize) -> Self {
        let total = scaled(self.total, whole, of);
        let per_service = scaled(self.per_service, whole, of);
        Self {
            per_service: if per_service > self.per_service { per_service } else { self.per_service },
            total,
        }
    }
}

const fn scaled(part: usize, whole: usize, of: usize) -> usize {
    let scaled = part as u128 * whole as u128 / of as u128;
    if scaled > usize::MAX as u128 { usize::MAX } else { scaled as usize }
}

/// The series of one metric, each with its value. The first label is the service.
#[derive(Debug)]
pub(super) struct Family<V> {
    metric: &'static Metric,
    limit: SeriesLimit,
    /// The values, by the joined label values.
    series: HashMap<Box<str>, V>,
    by_service: HashMap<Box<str>, usize>,
    /// The number of times that a label value had to be replaced.
    capped: u64,
    /// The joined label values of the series that is being looked up; kept to reuse its memory.
    key: String,
}

impl<V: Default> Family<V> {
    pub(super) fn new(metric: &'static Metric, limit: SeriesLimit) -> Self {
        Self {
            metric,
            limit,
            series: HashMap::new(),
            by_service: HashMap::new(),
            capped: 0,
            key: String::new(),
        }
    }

    /// Returns the value of a series. It is created if the limit allows; else the value of the overflow series is
    /// returned.
    pub(super) fn get_or_insert(&mut self, values: &[&str]) -> &mut V {
        let service = values.first().copied().unwrap_or_default();
        self.build_key(values);
        if !self.series.contains_key(&*self.key) {
            let has_room = self.series.len() < self.limit.total;
            if !has_room || self.by_service.get(service).copied().unwrap_or(0) >= self.limit.per_service {
                self.build_overflow_key(values, has_room);
                self.capped += 1;
            }
        }
        if !self.series.contains_key(&*self.key) {
            let service = self.key.split(SEPARATOR).next().unwrap_or_default();
            *self.by_service.entry(service.into()).or_default() += 1;
        }
        self.series.entry(self.key.as_str().into()).or_default()
    }

    /// Builds the key of the overflow series for a series beyond the limit: that of its service, or that of all
    /// services.
    fn build_overflow_key(&mut self, values: &[&str], has_room: bool) {
        let with_other = |from: usize| -> Vec<&str> {
            let labels = self.metric.labels.iter().zip(values).enumerate();
            let is_dynamic = |index: usize, label: &str| index >= from && DYNAMIC_LABELS.contains(&label);
            labels.map(|(at, (label, value))| if is_dynamic(at, label) { OTHER } else { *value }).collect()
        };
        let (of_service, of_all) = (with_other(1), with_other(0));
        self.build_key(&of_service);
        if !has_room && !self.series.contains_key(&*self.key) {
            self.build_key(&of_all);
        }
    }

    fn build_key(&mut self, values: &[&str]) {
        self.key.clear();
        for (index, value) in values.iter().enumerate() {
            if index > 0 {
                self.key.push(SEPARATOR);
            }
            let value = &value[..value.floor_char_boundary(MAX_VALUE_BYTES)];
            self.key.extend(value.chars().filter(|character| *character != SEPARATOR));
        }
    }

    /// Removes the series for which `is_kept` returns false.
    pub(super) fn retain(&mut self, mut is_kept: impl FnMut(&mut V) -> bool) {
        let by_service = &mut self.by_service;
        self.series.retain(|values, value| {
            let keeps = is_kept(value);
            if !keeps
                && let Some(count) = values.split(SEPARATOR).next().and_then(|of| by_service.get_mut(of))
            {
                *count -= 1;
            }
            keeps
        });
        self.by_service.retain(|_, count| *count > 0);
    }

    pub(super) fn len(&self) -> usize {
        self.series.len()
    }

    pub(super) fn capped(&self) -> (&'static str, u64) {
        (self.metric.name, self.capped)
    }

    pub(super) fn metric(&self) -> &'static Metric {
        self.metric
    }

    /// Returns the series for export: those to which `write` gives a value.
    pub(super) fn collect(
        &self,
        metric: &Metric,
        write: impl Fn(&V, &mut prometheus::proto::Metric) -> bool,
    ) -> MetricFamily {
        let exported = self.series.iter().filter_map(|(values, value)| {
            let mut series = series(metric, values.split(SEPARATOR));
            write(value, &mut series).then_some(series)
        });
        let mut family = empty(metric);
        family.set_metric(exported.collect());
        family
    }
}

/// Returns a metric without series.
pub(super) fn empty(metric: &Metric) -> MetricFamily {
    let mut family = MetricFamily::default();
    family.set_name(metric.name.to_owned());
    family.set_help(metric.help.to_owned());
    family.set_field_type(proto_values::metric_type(metric.kind));
    family
}

/// Returns a series without a value.
pub(super) fn series<'v>(
    metric: &Metric,
    values: impl IntoIterator<Item = &'v str>,
) -> prometheus::proto::Metric {
    let label = |(name, value): (&&str, &str)| {
        let mut label = LabelPair::default();
        label.set_name((*name).to_owned());
        label.set_value(value.to_owned());
        label
    };
    prometheus::proto::Metric::from_label(metric.labels.iter().zip(values).map(label).collect())
}

#[cfg(test)]
mod tests {
    use super::super::names;
    use super::*;

    fn values(family: &Family<u64>) -> Vec<(String, u64)> {
        let mut values: Vec<_> =
            family.series.iter().map(|(key, value)| (key.replace(SEPARATOR, " "), *value)).collect();
        values.sort();
        values
    }

    fn expect(family: &Family<u64>, expected: &[(&str, u64)]) {
        let found = values(family);
        let found: Vec<_> = found.iter().map(|(key, value)| (key.as_str(), *value)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_does_not_fit_is_counted_as_other() {
        let mut family = Family::<u64>::new(&names::QUOTA_EVENTS, SeriesLimit { per_service: 2, total: 5 });
        for metric in ["a", "b", "c", "d", "a"] {
            *family.get_or_insert(&["one", metric, "pause"]) += 1;
        }
        expect(&family, &[("one _other pause", 2), ("one a pause", 2), ("one b pause", 1)]);
        for service in ["two", "three", "four", "five"] {
            *family.get_or_insert(&[service, "a", "warning"]) += 1;
        }
        *family.get_or_insert(&["one", "e", "pause"]) += 1;
        *family.get_or_insert(&["one", "e", "warning"]) += 1;
        expect(
            &family,
            &[
                ("_other _other warning", 3),
                ("one _other pause", 3),
                ("one a pause", 2),
                ("one b pause", 1),
                ("three a warning", 1),
                ("two a warning", 1),
            ],
        );
        assert_eq!(family.capped(), ("faultline_quota_events_total", 6));
    }

    #[test]
    fn room_that_is_given_back_is_used_again() {
        let mut family = Family::<u64>::new(&names::QUOTA_USAGE, SeriesLimit { per_service: 1, total: 2 });
        *family.get_or_insert(&["one", "a"]) = 1;
        *family.get_or_insert(&["one", "b"]) = 2;
        expect(&family, &[("one _other", 2), ("one a", 1)]);
        family.retain(|_| false);
        *family.get_or_insert(&["one", "b"]) = 3;
        expect(&family, &[("one b", 3)]);
    }

    #[test]
    fn values_are_cut_and_never_run_into_each_other() {
        let mut family = Family::<u64>::new(&names::QUOTA_USAGE, SeriesLimit { per_service: 9, total: 9 });
        *family.get_or_insert(&[&"ü".repeat(100), "a\u{1f}b"]) = 1;
        assert_eq!(values(&family)[0].0, format!("{} ab", "ü".repeat(64)));
        let exported = family.counters();
        assert_eq!(exported.get_metric()[0].get_label()[1].value(), "ab");
    }
}
