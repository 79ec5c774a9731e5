//! Tests of the guarantees of the traffic: the same bytes for the same seed, every shape, valid lines, and the right
//! proportions.

use crate::dialect::{Fault, Shape};
use crate::random::Random;
use crate::record::Record;
use crate::services::{SERVICES, Service};
use crate::vocabulary::VOCABULARY;
use crate::{MALFORMED_ONE_IN, Mix, START_MICROS, Traffic, lines};

fn text(mut traffic: Traffic, count: usize) -> String {
    let mut log = Vec::new();
    for _ in 0..count {
        traffic.next_line(&mut log);
    }
    String::from_utf8(log).expect("a log is UTF-8")
}

/// Returns everyday traffic without malformed lines.
fn well_formed(seed: u64) -> Traffic {
    Traffic { malformed_one_in: u64::MAX, ..Traffic::new(seed) }
}

/// Returns the 64-bit FNV-1a hash.
fn hash(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn is_json(line: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(line).is_ok()
}

fn is_logfmt(line: &str) -> bool {
    line.starts_with("time=") && line.contains(" level=") && line.contains(" request_id=")
}

/// Texts that only failures, warnings and audit events contain, once a nested envelope is unescaped.
const PROBLEM_MARKS: &[&str] = &[
    r#""success":false"#,
    r#""success":"false""#,
    r#""error":"#,
    r#""isError":true"#,
    r#""warnings":["#,
    r#""audit":true"#,
    r#""status":"failed""#,
    r#""status":4"#,
    r#""status":5"#,
    r#""statusCode":4"#,
    r#""statusCode":5"#,
    " status=4",
    " status=5",
];

fn is_problem(line: &str) -> bool {
    let unescaped = line.replace(r#"\""#, r#"""#);
    PROBLEM_MARKS.iter().any(|mark| unescaped.contains(mark))
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    assert_eq!(lines(11, 2_000), lines(11, 2_000));
    assert_ne!(lines(11, 2_000), lines(12, 2_000));
    assert_eq!(lines(11, 2_000), text(Traffic::new(11).at(START_MICROS), 2_000).as_bytes());
}

#[test]
fn a_clone_replays_from_its_position() {
    let mut traffic = Traffic::new(4);
    traffic.next_line(&mut Vec::new());
    assert_eq!(text(traffic.clone(), 100), text(traffic, 100));
}

/// Holds the output stable. A change of a table changes this hash, which is fine; mention it in the commit.
#[test]
fn the_bytes_match_the_golden_file() {
    let log = lines(7, 20_000);
    let golden = include_str!("tests/golden.ndjson");
    assert!(log.starts_with(golden.as_bytes()), "{}", String::from_utf8_lossy(&log[..golden.len()]));
    assert_eq!(hash(&log), 0xbcd9_647d_6079_80fd, "{:#018x}", hash(&log));
}

#[test]
fn lines_average_about_390_bytes() {
    let mean = lines(1, 200_000).len() / 200_000;
    assert!((370..=410).contains(&mean), "{mean}");
}

#[test]
fn every_line_parses_except_the_malformed_ones() {
    for line in text(well_formed(3), 40_000).lines() {
        assert!(is_json(line) || is_logfmt(line), "{line}");
    }
    let count = 60_000;
    let log = text(Traffic::new(3), count);
    let malformed = log.lines().filter(|line| !is_json(line) && !is_logfmt(line)).count() as u64;
    let expected = count as u64 / MALFORMED_ONE_IN;
    assert!((expected / 2..=expected * 2).contains(&malformed), "{malformed}");
}

#[test]
fn half_of_everyday_lines_and_all_lines_of_the_failure_mix_are_problems() {
    let count = 50_000;
    let share =
        |traffic| text(traffic, count).lines().filter(|line| is_problem(line)).count() * 1_000 / count;
    let everyday = share(well_formed(5));
    assert!((485..=515).contains(&everyday), "{everyday}");
    let failures = Traffic { malformed_one_in: u64::MAX, ..Traffic::with_mix(5, Mix::FailuresOnly) };
    assert_eq!(share(failures), 1_000);
}

#[test]
fn time_advances_by_a_few_milliseconds_with_each_line() {
    let mut traffic = Traffic::new(6).at(START_MICROS);
    let mut log = Vec::new();
    for _ in 0..1_000 {
        let before = traffic.micros;
        traffic.next_line(&mut log);
        assert!((1_000..=9_000).contains(&(traffic.micros - before)));
    }
    let first = String::from_utf8_lossy(&log[..60]);
    assert!(first.contains("2026-11-01T00:00:00.000Z") || first.contains("1793491200000"), "{first}");
}

#[test]
fn every_shape_occurs_within_20_000_lines() {
    let log = String::from_utf8(lines(9, 20_000)).expect("a log is UTF-8");
    for mark in include_str!("tests/shapes.txt").lines() {
        assert!(log.contains(mark), "nothing like this in 20,000 lines: {mark}");
    }
}

#[test]
fn vocabulary_is_sorted_by_slot() {
    assert!(VOCABULARY.is_sorted_by(|(before, _), (after, _)| before < after));
}

#[test]
fn every_row_of_every_table_gives_a_valid_line() {
    for service in SERVICES {
        let dialect = service.dialect;
        let shapes = dialect.successes.iter().chain(dialect.failures).chain(dialect.warnings);
        for shape in shapes.chain([&dialect.outage]) {
            check_shape(service, shape);
        }
    }
}

fn check_shape(service: &'static Service, shape: &'static Shape) {
    let faults = if shape.faults.is_empty() { std::slice::from_ref(&Fault::NONE) } else { shape.faults };
    for fault in faults {
        for seed in 0..20 {
            let mut line = String::new();
            Record { fault, ..Record::new(service, shape, &mut Random::new(seed), START_MICROS) }
                .write(&mut line);
            assert!(is_json(&line) || is_logfmt(&line), "{line}");
            assert!(!line.contains('<'), "a slot without a value: {line}");
        }
    }
}
