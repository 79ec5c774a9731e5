//! Tests that every flow is consistent, whatever the time between its lines.

use std::collections::BTreeMap;

use super::{Confirmations, LIFETIME_MICROS, story};
use crate::START_MICROS;
use crate::random::Random;

const CODES: &[&str] = &[
    "TOKEN_ISSUED",
    "TOKEN_VALIDATED",
    "TOKEN_REVOKED",
    "TOKEN_ALREADY_USED",
    "TOKEN_EXPIRED",
    "TOKEN_SCOPE_MISMATCH",
    "TOKEN_INVALID",
    "CONFIRMATION_REQUIRED",
    "CONFIRMATION_GRANTED",
];

/// The events of one token, with their times.
type History = Vec<(&'static str, i64)>;

/// Returns the histories of all tokens in 5,000 lines that are this many microseconds apart.
fn histories(pause_micros: i64) -> Vec<History> {
    let (mut confirmations, mut random) = (Confirmations::default(), Random::new(8));
    let mut histories = BTreeMap::<String, History>::new();
    for number in 0..5_000 {
        let (mut line, micros) = (String::new(), START_MICROS + number * pause_micros);
        confirmations.write(&mut random, micros, &mut line);
        let (_, token) = line.split_once("conf_").expect("every line names its token");
        let code = CODES.iter().find(|code| line.contains(*code)).expect("every line has a known code");
        histories.entry(token[..16].to_owned()).or_default().push((code, micros));
    }
    histories.into_values().collect()
}

fn position(history: &History, code: &str) -> Option<usize> {
    history.iter().position(|(event, _)| *event == code)
}

fn check(history: &History) {
    let (first, issued_at) = history[0];
    assert_eq!(first, "TOKEN_ISSUED");
    if let Some(redeemed) = position(history, "TOKEN_VALIDATED") {
        assert!(position(history, "CONFIRMATION_GRANTED").is_some_and(|granted| granted < redeemed));
        assert!(history[redeemed].1 < issued_at + LIFETIME_MICROS);
    }
    if let Some(replayed) = position(history, "TOKEN_ALREADY_USED") {
        assert!(position(history, "TOKEN_VALIDATED").is_some_and(|redeemed| redeemed < replayed));
    }
    if let Some(expired) = position(history, "TOKEN_EXPIRED") {
        assert!(history[expired].1 >= issued_at + LIFETIME_MICROS);
        assert!(position(history, "TOKEN_VALIDATED").is_none());
    }
}

#[test]
fn flows_are_consistent_at_every_rate_of_lines() {
    for pause_micros in [1_000, 125_000, 20_000_000] {
        histories(pause_micros).iter().for_each(check);
    }
}

#[test]
fn every_code_occurs_at_the_usual_rate_of_lines() {
    let histories = histories(125_000);
    for code in CODES {
        assert!(histories.iter().any(|history| position(history, code).is_some()), "{code}");
    }
}

#[test]
fn an_operation_succeeds_after_its_token_was_redeemed() {
    let mut random = Random::new(8);
    let stories = (0..50).map(|_| story(&mut random, START_MICROS, false));
    let redeemed: Vec<_> =
        stories.filter(|lines| lines.iter().any(|line| line.1.contains("TOKEN_VALIDATED"))).collect();
    assert!(redeemed.len() > 10, "{}", redeemed.len());
    for lines in redeemed {
        let after = lines.iter().skip_while(|(_, line)| !line.contains("TOKEN_VALIDATED")).nth(1);
        let is_success = |line: &str| line.replace('\\', "").contains(r#""success":true"#);
        assert!(after.is_some_and(|(_, line)| is_success(line)), "{lines:?}");
        assert!(lines.is_sorted_by_key(|(micros, _)| *micros));
    }
}
