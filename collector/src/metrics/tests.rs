//! What the meter makes of batches.

use super::counted::{Calls, Counted, Denial, Durations, Events, Why};
use super::meter::{Meter, Rooms};
use crate::limits::Limits;
use prometheus::TextEncoder;
use taxonomy::{Category, Dialect, Kind, Outcome, Registry};

fn meter() -> Meter {
    Meter::new(&Registry::builtin().unwrap(), &Limits::DEFAULT)
}

/// The lines of a metric that are not zero.
fn lines(meter: &Meter, metric: &str) -> Vec<String> {
    let families: Vec<_> = meter
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

fn calls(service: &str, is_caller: bool, count: u64) -> Calls {
    Calls {
        service: service.into(),
        operation: "pay".into(),
        dialect: Dialect::McpAql,
        outcome: Outcome::Ok,
        is_caller,
        count,
        durations: Durations { count, sum_us: 2_000 * count, within: [count; 14] },
    }
}

#[test]
fn a_call_that_both_sides_report_counts_once() {
    let mut meter = meter();
    let minute = 60_000_000;
    // The caller's report comes first, in the same batch.
    meter.add(&Counted {
        arrival: minute,
        calls: vec![calls("agent", true, 3), calls("orders", false, 3)],
        ..Counted::default()
    });
    meter.add(&Counted { arrival: 2 * minute, calls: vec![calls("agent", true, 2)], ..Counted::default() });
    assert_eq!(
        lines(&meter, "faultline_requests_total"),
        ["faultline_requests_total{service=\"orders\",outcome=\"ok\"} 3"]
    );
    // The server has not reported for a while: it may have been taken out.
    meter.add(&Counted { arrival: 20 * minute, calls: vec![calls("agent", true, 2)], ..Counted::default() });
    let of_agent = "faultline_requests_total{service=\"agent\",outcome=\"ok\"} 2";
    assert_eq!(lines(&meter, "faultline_requests_total")[0], of_agent);
    let sums = lines(&meter, "faultline_operation_duration_seconds");
    let sum = "faultline_operation_duration_seconds_sum{service=\"orders\",operation=\"pay\"} 0.006";
    assert!(sums.iter().any(|line| line == sum), "{sums:?}");
}

#[test]
fn services_past_the_bound_are_others() {
    let mut meter = meter();
    let events = (0..1_000).map(|number| Events {
        service: format!("s{number}").into(),
        canonical: "INTERNAL_ERROR".into(),
        category: Category::Internal,
        kind: Kind::Error,
        dialect: Dialect::McpAql,
        count: 2,
    });
    let denial = || Denial {
        service: "s999".into(),
        operation: "pay".into(),
        why: Why::Trust { required: "certified".into(), actual: "untested".into() },
        count: 1,
    };
    meter.add(&Counted { events: events.collect(), denials: vec![denial()], ..Counted::default() });
    let counted = lines(&meter, "faultline_category_events_total");
    assert_eq!(counted.len(), 401);
    assert_eq!(
        counted[0],
        "faultline_category_events_total{service=\"_other\",category=\"INTERNAL\",kind=\"error\"} 1200"
    );
    let denied = "faultline_trust_denials_total{service=\"_other\",operation=\"pay\",required_trust=\"certified\",actual_trust=\"untested\"} 1";
    assert_eq!(lines(&meter, "faultline_trust_denials_total"), [denied]);
}

/// Guarantee: whatever an operator sets, there are never more series than he allows; the default is as it was promised.
#[test]
fn series_are_shared_out_within_what_is_set() {
    for (series, services) in [(4_000, 1), (4_000, 100), (20_000, 400), (50_000, 1_250), (1_000_000, 25_000)]
    {
        let limits = Limits { series, services, ..Limits::DEFAULT };
        assert_eq!(limits.check(), Ok(()));
        let most = Rooms::within(&limits).most_series();
        assert!(
            most + 1_000 <= series && most > series / 3,
            "{series} series of {services} services: {most}"
        );
    }
    assert!(Limits { services: 1_251, ..Limits::DEFAULT }.check().is_err());
    assert!(Limits { series: 3_999, services: 1, ..Limits::DEFAULT }.check().is_err());
}

#[test]
fn as_many_series_as_possible_are_within_the_bound() {
    fill(meter(), 20_000);
    let limits = Limits { series: 8_000, services: 200, ..Limits::DEFAULT };
    fill(Meter::new(&Registry::builtin().unwrap(), &limits), 2_000);
}

fn fill(mut meter: Meter, at_least: usize) {
    for number in 0..20_000_u32 {
        let service: Box<str> = format!("s{}", number % 500).into();
        let operation: Box<str> = format!("o{number}").into();
        let dialect = Dialect::ALL[number as usize % Dialect::ALL.len()];
        let category = Category::ALL[number as usize % Category::ALL.len()];
        let kind = Kind::ALL[number as usize % Kind::ALL.len()];
        let canonical = format!("X_{number}").into();
        let durations = Durations { count: 1, ..Durations::default() };
        let calls = Calls { operation: operation.clone(), dialect, durations, ..calls(&service, false, 1) };
        let why = match number % 2 {
            0 => Why::Trust { required: operation.clone(), actual: operation.clone() },
            _ => Why::Danger { level: "forbidden".into() },
        };
        meter.add(&Counted {
            events: vec![Events { service: service.clone(), canonical, category, kind, dialect, count: 1 }],
            calls: vec![calls],
            denials: vec![Denial { service, operation, why, count: 1 }],
            ..Counted::default()
        });
    }
    let series = meter.series();
    let most = meter.rooms.most_series();
    assert!(series > at_least && series <= most, "{series} of {most}");
    let families =
        meter.collect().into_iter().filter(|family| !family.get_metric().is_empty()).collect::<Vec<_>>();
    let text = TextEncoder::new().encode_to_string(&families).unwrap();
    assert_eq!(text.lines().filter(|line| !line.starts_with('#')).count(), series);
}
