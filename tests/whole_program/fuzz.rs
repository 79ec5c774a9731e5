//! Fuzzing for a bounded time: real lines, broken in many ways.
//!
//! Runs for `FAULTLINE_FUZZ_SECONDS` (2 unless set; `tests/run` gives it longer) from a seed that is printed
//! with a failure, so that it can be run again with `FAULTLINE_FUZZ_SEED`.

use super::support::root;
use classifier::{
    Call, Classifier, Event, HashKey, Limits, RecordOrigin, Registry, Rules, Sink, UnrecognizedReason,
};
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A secret that must never come out. It is planted last and as a word of its own, because half a token, or one that is
/// joined to a word, is not a secret.
const CANARY: &str = " conf_CANARY4711 ";

/// The maximum time for a record in a debug build on a busy machine. A record that hangs takes longer.
const PATIENCE: Duration = Duration::from_secs(20);

/// The generator `xorshift64*`, which is small and gives the same numbers everywhere.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit.max(1) as u64).expect("a small number")
    }
}

/// Returns every event as JSON.
#[derive(Default)]
struct Events(Vec<String>);

impl Sink for Events {
    fn event(&mut self, event: &Event<'_>) {
        let mut json = String::new();
        event.write_json(&mut json, Some(1));
        self.0.push(json);
    }
    fn call(&mut self, call: &Call<'_>) {
        self.0.push(format!("\"{}\"", call.outcome));
    }
    fn unrecognized(&mut self, reason: UnrecognizedReason) {
        self.0.push(format!("\"{}\"", reason.as_str()));
    }
}

/// Returns the corpus and generated traffic, as lines.
fn lines() -> Vec<Vec<u8>> {
    let mut bytes = demo::lines(11, 2_000);
    for entry in fs::read_dir(root().join("tests/corpus")).expect("the corpus") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            bytes.extend(fs::read(path).expect("a corpus file"));
        }
    }
    bytes.split(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// Breaks a line in one way.
fn mutate(line: &mut Vec<u8>, others: &[Vec<u8>], random: &mut Random) {
    const PIECES: [&str; 11] = [
        "\"",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\\u0000",
        "null",
        "\"success\":false",
        "\"error\":{\"code\":-32002}",
    ];
    let at = random.below(line.len() + 1);
    match random.below(7) {
        0 if at < line.len() => line[at] = u8::try_from(random.below(256)).expect("a byte"),
        1 => line.truncate(at),
        2 => drop(line.splice(at..at, PIECES[random.below(PIECES.len())].bytes())),
        3 => {
            let end = at + random.below(line.len() - at + 1);
            line.drain(at..end);
        }
        4 => {
            let other = &others[random.below(others.len())];
            let from = random.below(other.len() + 1);
            line.splice(at..at, other[from..].iter().copied());
        }
        5 => *line = wrapped_in_text(line),
        _ => line.extend_from_within(at.min(line.len())..),
    }
}

/// Returns the line as JSON text in a wrapper, as loggers write it.
fn wrapped_in_text(line: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(line);
    format!("{{\"log\":{}}}", serde_json::to_string(&text).expect("text")).into_bytes()
}

fn run(classifier: &mut Classifier, line: &[u8]) -> Vec<String> {
    let mut events = Events::default();
    classifier.classify(
        line,
        &RecordOrigin { arrival: demo::START_MICROS, ..RecordOrigin::default() },
        &mut events,
    );
    events.0
}

/// There is never a panic or a hang; the result is always the same, valid JSON, and without the canary.
#[test]
fn broken_lines_do_no_harm() {
    let number = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let seconds = number("FAULTLINE_FUZZ_SECONDS").unwrap_or(2);
    let seed = number("FAULTLINE_FUZZ_SEED").unwrap_or(0x5eed_0000 + seconds);
    let lines = lines();
    let rules = Rules::new(Registry::builtin().expect("the registry"), HashKey::FIXED, Limits::default());
    let rules = Arc::new(rules);
    let mut used = Classifier::new(rules.clone());
    let mut random = Random(seed | 1);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut rounds = 0;
    while Instant::now() < end {
        let mut line = lines[random.below(lines.len())].clone();
        for _ in 0..=random.below(4) {
            mutate(&mut line, &lines, &mut random);
        }
        if random.below(4) == 0 {
            let at = random.below(line.len() + 1);
            line.splice(at..at, CANARY.bytes());
        }
        let start = Instant::now();
        let events = run(&mut used, &line);
        let context = || format!("seed {seed}, round {rounds}: {}", String::from_utf8_lossy(&line));
        assert!(start.elapsed() < PATIENCE, "took {:?}; {}", start.elapsed(), context());
        for event in &events {
            assert!(serde_json::from_str::<serde_json::Value>(event).is_ok(), "{event}\n{}", context());
            assert!(!event.contains("CANARY"), "{event}\n{}", context());
        }
        if rounds % 16 == 0 {
            assert_eq!(run(&mut Classifier::new(rules.clone()), &line), events, "{}", context());
        }
        rounds += 1;
    }
    assert!(rounds > 100, "only {rounds} rounds in {seconds} s");
}

/// A megabyte of text that makes a careless search start over at every word or sign. Such a search takes minutes; this
/// one takes a moment, even in a debug build.
#[test]
fn hostile_texts_take_no_longer_than_others() {
    let rules = Rules::new(Registry::builtin().expect("the registry"), HashKey::FIXED, Limits::default());
    let mut classifier = Classifier::new(Arc::new(rules));
    let patterns = [
        "sk-",
        "ghp_-",
        "eyJ-",
        "-44",
        "-co",
        ".co",
        "be-",
        "conf_.",
        "[token:",
        "token:[",
        "cookie:[",
        "password=[",
        "a@",
        "://a@",
        "Bearer ",
        "pwd:'",
        "\"password\":",
        "4111 ",
        "-----BEGIN ",
        "authorization: x ",
        "'a",
        "/a",
        "a.b/",
        "2001:",
        "retry after ",
        "not found ",
        "\\\\\"",
        "{",
        "x y ",
        "--password ",
        "mysql -p ",
        "-u a:",
        "<password>",
        "<password",
        "&lt;password&gt;",
        "%3D",
        "password%3D",
        "password%3A ",
        "%40",
        "%2540",
        "sig=",
        "?key=",
        "name:\"",
        "name:[",
        "name:'",
        "(\"",
        "[\"password\",",
        "password is ",
        "password for a ",
        "identified by ",
        "IDENTIFIED BY '",
        "hooks.slack.com/services/",
        "1//0",
        "MTA.",
        "pat.",
        "Q~",
        ":AA",
        "_ghp_",
        "a:b@",
        "4111.",
        "密码",
        "cookie: a=",
        "authorization: digest a=\"",
        "key: |\n",
        "password: {{",
        "password=${",
        "-us1",
        "secret: x ",
        "token token ",
        "Passwort ist a ",
        "value:",
    ];
    for pattern in patterns {
        let text = serde_json::to_string(&pattern.repeat(400_000 / pattern.len())).expect("text");
        let line = format!(r#"{{"success":false,"error":{{"message":{text},"details":{{"a":{text}}}}}}}"#);
        let start = Instant::now();
        assert!(!run(&mut classifier, line.as_bytes()).is_empty(), "{pattern}");
        assert!(start.elapsed() < PATIENCE, "{pattern} took {:?}", start.elapsed());
    }
}
