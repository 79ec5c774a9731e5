//! Tests of the guarantees of the world: it can be continued, its records are well formed, and its proportions are
//! plausible.

use super::cast::{CAST, Report};
use super::*;
use crate::START_MICROS;
use crate::dialect::Fault;
use crate::json_writer::JsonWriter;
use crate::record::Record;

const HOUR: i64 = 3_600_000_000;

fn signals(world: &World, count: u64) -> Vec<Signal> {
    let mut signals = Vec::new();
    world.calls(START_MICROS, START_MICROS + HOUR, count, &mut signals);
    signals
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok()
}

#[test]
fn the_same_seed_and_span_of_time_give_the_same_signals() {
    assert_eq!(signals(&World::new(1), 2_000), signals(&World::new(1), 2_000));
    assert_ne!(signals(&World::new(1), 2_000), signals(&World::new(2), 2_000));
}

#[test]
fn almost_every_line_is_a_record_and_no_slot_is_left_open() {
    let signals = signals(&World::new(5), 20_000);
    let lines: Vec<_> = signals
        .iter()
        .filter_map(|signal| match &signal.body {
            SignalBody::Line(line) => Some(line),
            SignalBody::Spans(_) | SignalBody::Logs(_) => None,
        })
        .collect();
    let noise = lines.iter().filter(|line| !is_json(line) && !line.starts_with("time=")).count();
    assert!((1..30).contains(&noise), "{noise}");
    for line in &lines {
        assert!(!line.contains('<') || line.contains("Arguments"), "{line}");
    }
    let telemetry = signals.len() - lines.len();
    assert!((2_000..6_000).contains(&telemetry), "{telemetry}");
}

#[test]
fn every_row_of_every_table_gives_a_valid_record() {
    for member in &CAST {
        let dialect = member.service.dialect;
        let shapes = dialect.successes.iter().chain(dialect.failures).chain([&dialect.outage]);
        for shape in shapes {
            let none = std::slice::from_ref(&Fault::NONE);
            for fault in if shape.faults.is_empty() { none } else { shape.faults } {
                let mut random = Random::new(1);
                let record =
                    Record { fault, ..Record::new(member.service, shape, &mut random, START_MICROS) };
                let mut line = String::new();
                record.expand(member.service.line, &mut JsonWriter::new(&mut line));
                let is_logfmt = line.starts_with("time=");
                let is_absent = member.report != Report::Line && line.is_empty();
                assert!(is_json(&line) || is_logfmt || is_absent, "{line}");
                assert!(!line.contains('<'), "{line}");
            }
        }
    }
}

#[test]
fn signals_come_when_their_call_does_or_a_few_minutes_later() {
    for signal in signals(&World::new(3), 20_000) {
        let after = signal.micros - START_MICROS;
        assert!((0..HOUR + HOUR / 12).contains(&after), "{signal:?}");
    }
}

/// Checks that the ledger fails between the first signal and the rollback, under another version than before and after.
#[test]
fn the_incident_has_a_beginning_and_an_end() {
    let world = World::new(9).with_incident(START_MICROS);
    let failed_share = |minute: i64| {
        let mut signals = Vec::new();
        let from = START_MICROS + minute * HOUR / 60;
        world.calls(from, from + HOUR / 60, 4_000, &mut signals);
        let of_ledger = signals.iter().filter_map(|signal| match &signal.body {
            SignalBody::Line(line) if line.contains("ledger-adapter") => Some(line),
            _ => None,
        });
        let (failed, all) = of_ledger.fold((0, 0), |(failed, all), line| {
            (failed + usize::from(line.contains(r#"success\":false"#)), all + 1)
        });
        failed * 100 / all
    };
    assert!(failed_share(0) < 15 && failed_share(9) < 15);
    assert!((3..7).all(|minute| failed_share(minute) > 40));
    assert!(INCIDENT_STEPS.is_sorted_by_key(|step| step.after_micros));
    assert!(INCIDENT_STEPS.last().is_some_and(|last| last.after_micros <= 600_000_000));
}
