//! Operations that are reported by spans, so that metrics of the same calls do not count them twice.
//!
//! A service whose SDK sends both spans and metrics reports every call twice. Spans carry more, so they win: metrics
//! of an operation count only if no span of it came within five minutes.

use hashbrown::HashMap;
use std::sync::{Mutex, PoisonError};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The time after a span during which metrics of the same operation do not count, in microseconds.
const SPAN_REPORT_TTL_US: i64 = 300_000_000;
/// The largest number of operations; when it is reached, those whose time has passed are removed.
const MAX_OPERATIONS: usize = 16_384;

/// The time of the last span of each operation, by the hash of its service and name.
#[derive(Debug, Default)]
pub(super) struct SpanReports(Mutex<HashMap<u64, i64>>);

impl SpanReports {
    /// Records that a span of the operation came.
    pub(super) fn record(&self, service: Option<&str>, operation: Option<&str>, now: i64) {
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reports.len() >= MAX_OPERATIONS {
            reports.retain(|_, last| now.saturating_sub(*last) < SPAN_REPORT_TTL_US);
        }
        if reports.len() < MAX_OPERATIONS {
            reports.insert(key(service, operation), now);
        }
    }

    /// Reports whether a span of the operation came recently.
    pub(super) fn contains(&self, service: Option<&str>, operation: Option<&str>, now: i64) -> bool {
        let reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = reports.get(&key(service, operation));
        last.is_some_and(|last| now.saturating_sub(*last) < SPAN_REPORT_TTL_US)
    }
}

fn key(service: Option<&str>, operation: Option<&str>) -> u64 {
    let service = service.map_or(0, |service| xxh3_64(service.as_bytes()));
    xxh3_64_with_seed(operation.unwrap_or_default().as_bytes(), service)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_count_for_five_minutes() {
        let reports = SpanReports::default();
        reports.record(Some("crm"), Some("merge"), 0);
        assert!(reports.contains(Some("crm"), Some("merge"), SPAN_REPORT_TTL_US - 1));
        assert!(!reports.contains(Some("crm"), Some("merge"), SPAN_REPORT_TTL_US));
        assert!(!reports.contains(Some("crm"), Some("find"), 0));
        assert!(!reports.contains(None, Some("merge"), 0));
    }

    #[test]
    fn memory_is_bounded() {
        let reports = SpanReports::default();
        for number in 0..3 * MAX_OPERATIONS {
            reports.record(None, Some(&number.to_string()), i64::try_from(number).unwrap());
        }
        assert_eq!(reports.0.lock().unwrap().len(), MAX_OPERATIONS);
        reports.record(None, Some("late"), SPAN_REPORT_TTL_US * 2);
        assert!(reports.contains(None, Some("late"), SPAN_REPORT_TTL_US * 2));
    }
}
