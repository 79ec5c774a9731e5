//! The list of all metrics, to which each crate contributes its own.

use metrics::{Metric, MetricKind};
use std::collections::HashSet;

/// Returns all metrics, in the order of `docs/metrics.md`.
pub(crate) fn all_metrics() -> impl Iterator<Item = &'static Metric> {
    let lists =
        [collector::metrics::names::ALL, store::metrics::ALL, query::metrics::ALL, auth::metrics::ALL];
    lists.into_iter().flatten()
}

#[test]
fn names_follow_the_conventions_and_are_used_once() {
    let mut names = HashSet::new();
    for Metric { name, kind, help, .. } in all_metrics() {
        assert!(names.insert(name), "{name} is there twice");
        assert!(name.starts_with("faultline_") && help.ends_with('.'), "{name}");
        assert_eq!(name.ends_with("_total"), *kind == MetricKind::Counter, "{name}");
    }
}

#[test]
fn a_group_has_one_metric_for_each_key_of_the_status() {
    let mut keys = HashSet::new();
    for metric in all_metrics() {
        assert!(keys.insert((metric.group.name, metric.status_key())), "{}", metric.name);
    }
}
