//! Tests of the metrics that the registry computes from batches.

use super::batch_summary::{BatchSummary, CallCounts, Denial, DenialCause, Durations, EventCounts};
use super::registry::{MetricRegistry, SeriesLimits};
use crate::limits::Limits;
use classifier::{Category, Dialect, EventKind, Fault, Outcome, Registry};
use prometheus::TextEncoder;

fn registry() -> MetricRegistry {
    MetricRegistry::new(&Registry::builtin().unwrap(), &Limits::DEFAULT)
}

/// Returns the exported lines of a metric that are not zero.
fn lines(registry: &MetricRegistry, metric: &str) -> Vec<String> {
    let families: Vec<_> = registry
        .collect()
        .into_iter()
        .filter(|family| family.name() == metric && !family.get_metric().is_empty())
        .collect();
    let text = TextEncoder::new().encode_to_string(&families).unwrap();
    let mut lines: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.ends_with(" 0"))
        .map(str::to_owned)
        .collect();
    lines.sort();
    lines
}

fn calls(service: &str, is_caller: bool, count: u64) -> CallCounts {
    CallCounts {
        service: service.into(),
        operation: "pay".into(),
        dialect: Dialect::McpAql,
        outcome: Outcome::Ok,
        is_caller,
        count,
        late_failures: 0,
        unverified: 0,
        durations: Durations { count, sum_us: 2_000 * count, bucket_counts: [count; 14] },
    }
}

#[test]
fn a_call_that_both_sides_report_counts_once() {
    let mut registry = registry();
    let minute = 60_000_000;
    // The caller's report comes first, in the same batch.
    registry.add(&BatchSummary {
        arrival: minute,
        calls: vec![calls("agent", true, 3), calls("orders", false, 3)],
        ..BatchSummary::default()
    });
    registry.add(&BatchSummary {
        arrival: 2 * minute,
        calls: vec![calls("agent", true, 2)],
        ..BatchSummary::default()
    });
    assert_eq!(
        lines(&registry, "faultline_requests_total"),
        ["faultline_requests_total{service=\"orders\",outcome=\"ok\"} 3"]
    );
    // The server has not reported for a while, so its instrumentation may have been removed.
    registry.add(&BatchSummary {
        arrival: 20 * minute,
        calls: vec![calls("agent", true, 2)],
        ..BatchSummary::default()
    });
    let of_agent = "faultline_requests_total{service=\"agent\",outcome=\"ok\"} 2";
    assert_eq!(lines(&registry, "faultline_requests_total")[0], of_agent);
    let sums = lines(&registry, "faultline_operation_duration_seconds");
    let sum = "faultline_operation_duration_seconds_sum{service=\"orders\",operation=\"pay\"} 0.006";
    assert!(sums.iter().any(|line| line == sum), "{sums:?}");
}

#[test]
fn services_past_the_bound_are_others() {
    let mut registry = registry();
    let events = (0..1_000).map(|number| EventCounts {
        service: format!("s{number}").into(),
        canonical: "INTERNAL_ERROR".into(),
        category: Category::Internal,
        fault: Some(Fault::Server),
        kind: EventKind::Error,
        dialect: Dialect::McpAql,
        count: 2,
    });
    let denial = || Denial {
        service: "s999".into(),
        operation: "pay".into(),
        cause: DenialCause::Trust { required: "certified".into(), actual: "untested".into() },
        count: 1,
    };
    registry.add(&BatchSummary {
        events: events.collect(),
        denials: vec![denial()],
        ..BatchSummary::default()
    });
    let counted = lines(&registry, "faultline_category_events_total");
    assert_eq!(counted.len(), 401);
    assert_eq!(
        counted[0],
        "faultline_category_events_total{service=\"_other\",category=\"INTERNAL\",kind=\"error\",fault=\"server\"} 1200"
    );
    let denied = "faultline_trust_denials_total{service=\"_other\",operation=\"pay\",required_trust=\"certified\",actual_trust=\"untested\"} 1";
    assert_eq!(lines(&registry, "faultline_trust_denials_total"), [denied]);
}

/// Whatever limits an operator sets, there are never more series than they allow.
#[test]
fn series_are_shared_out_within_what_is_set() {
    for (series, services) in [(4_000, 1), (4_000, 100), (20_000, 400), (50_000, 1_250), (1_000_000, 25_000)]
    {
        let limits = Limits { series, services, ..Limits::DEFAULT };
        assert_eq!(limits.check(), Ok(()));
        let max = SeriesLimits::divide(&limits).max_series();
        assert!(max + 1_000 <= series && max > series / 3, "{series} series of {services} services: {max}");
    }
    assert!(Limits { services: 1_251, ..Limits::DEFAULT }.check().is_err());
    assert!(Limits { series: 3_999, services: 1, ..Limits::DEFAULT }.check().is_err());
}

#[test]
fn as_many_series_as_possible_are_within_the_bound() {
    fill(registry(), 20_000);
    let limits = Limits { series: 8_000, services: 200, ..Limits::DEFAULT };
    fill(MetricRegistry::new(&Registry::builtin().unwrap(), &limits), 2_000);
}

fn fill(mut registry: MetricRegistry, at_least: usize) {
    for number in 0..20_000_u32 {
        let service: Box<str> = format!("s{}", number % 500).into();
        let operation: Box<str> = format!("o{number}").into();
        let dialect = Dialect::ALL[number as usize % Dialect::ALL.len()];
        let category = Category::ALL[number as usize % Category::ALL.len()];
        let kind = EventKind::ALL[number as usize % EventKind::ALL.len()];
        let canonical = format!("X_{number}").into();
        let durations = Durations { count: 1, ..Durations::default() };
        let calls =
            CallCounts { operation: operation.clone(), dialect, durations, ..calls(&service, false, 1) };
        let cause = match number % 2 {
            0 => DenialCause::Trust { required: operation.clone(), actual: operation.clone() },
            _ => DenialCause::Danger { level: "forbidden".into() },
        };
        registry.add(&BatchSummary {
            events: vec![EventCounts {
                service: service.clone(),
                canonical,
                category,
                fault: Fault::ALL.get(number as usize % (Fault::ALL.len() + 1)).copied(),
                kind,
                dialect,
                count: 1,
            }],
            calls: vec![calls],
            denials: vec![Denial { service, operation, cause, count: 1 }],
            ..BatchSummary::default()
        });
    }
    let series = registry.series();
    let max = registry.series_limits.max_series();
    assert!(series > at_least && series <= max, "{series} of {max}");
    let families =
        registry.collect().into_iter().filter(|family| !family.get_metric().is_empty()).collect::<Vec<_>>();
    let text = TextEncoder::new().encode_to_string(&families).unwrap();
    assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), series);
}

#[test]
fn a_probe_is_no_incident() {
    let mut registry = registry();
    let event = |fault| EventCounts {
        service: "crm".into(),
        canonical: "NOT_FOUND_OPERATION".into(),
        category: Category::NotFound,
        fault,
        kind: EventKind::Error,
        dialect: Dialect::Jsonrpc,
        count: 1,
    };
    registry.add(&BatchSummary {
        events: vec![event(Some(Fault::Probe)), event(Some(Fault::Caller)), event(None)],
        ..BatchSummary::default()
    });
    let line = |fault| {
        format!(
            "faultline_category_events_total{{service=\"crm\",category=\"NOT_FOUND\",kind=\"error\",fault=\"{fault}\"}} 1"
        )
    };
    assert_eq!(lines(&registry, "faultline_category_events_total"), [line("_unknown"), line("caller")]);
    let code = "faultline_events_total{service=\"crm\",category=\"NOT_FOUND\",code=\"NOT_FOUND_OPERATION\",kind=\"error\",dialect=\"jsonrpc\"} 3";
    assert_eq!(lines(&registry, "faultline_events_total"), [code]);
}

/// A counter cannot go back: the next success makes up for the one that turned out to be a failure.
#[test]
fn a_success_that_turned_out_to_be_a_failure_counts_once() {
    let mut registry = registry();
    let failed = |late_failures| CallCounts {
        outcome: Outcome::Failed,
        late_failures,
        durations: Durations::default(),
        ..calls("crm", false, 0)
    };
    let mut add = |counts| {
        registry.add(&BatchSummary { calls: counts, ..BatchSummary::default() });
        lines(&registry, "faultline_requests_total")
    };
    let line = |outcome: &str, count: u64| {
        format!("faultline_requests_total{{service=\"crm\",outcome=\"{outcome}\"}} {count}")
    };
    assert_eq!(add(vec![calls("crm", false, 2)]), [line("ok", 2)]);
    assert_eq!(add(vec![failed(1)]), [line("failed", 1), line("ok", 2)]);
    assert_eq!(add(vec![calls("crm", false, 3)]), [line("failed", 1), line("ok", 4)]);
    assert_eq!(add(vec![calls("crm", false, 2), failed(2)]), [line("failed", 3), line("ok", 4)]);
}

#[test]
fn tasks_are_told_apart_and_unverified_calls_count_by_service() {
    let mut registry = registry();
    let pending = CallCounts { outcome: Outcome::Pending, ..calls("crm", false, 4) };
    let unverified = CallCounts { unverified: 3, ..calls("crm", false, 3) };
    registry.add(&BatchSummary { calls: vec![pending, unverified], ..BatchSummary::default() });
    assert_eq!(
        lines(&registry, "faultline_requests_total"),
        [
            "faultline_requests_total{service=\"crm\",outcome=\"ok\"} 3",
            "faultline_requests_total{service=\"crm\",outcome=\"pending\"} 4",
        ]
    );
    assert_eq!(
        lines(&registry, "faultline_unverified_calls_total"),
        ["faultline_unverified_calls_total{service=\"crm\"} 3"]
    );
    let blind: Vec<_> = registry.captures().unverified().filter(|(_, capture)| capture.is_blind()).collect();
    assert_eq!(blind.len(), 1);
}
