//! Tests of lines from standard input, and of the copy that is passed on.

use super::{Bench, PATIENCE, line};
use crate::whole_program::server::{Server, allow_flushing, ask, forbid_flushing};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Scenario: an application's output goes through a server with `--stdin --tee`.
/// Guarantee: every byte comes out as it went in, every line is stored, and the server goes on after the end.
#[test]
fn standard_input_is_stored_and_passed_on() {
    let bench = Bench::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_faultline"))
        .args(["serve", "--stdin", "--tee", "--stdin-service", "piped", "--data-dir"])
        .arg(bench.data_dir())
        .args(["--listen-otlp-grpc", "off", "--listen-otlp-http", "off", "--listen-postgres", "off"])
        .args(["--listen-flight", "off", "--listen-web", ":0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let mut text: String = (0..2000).map(|number| line(number) + "\n").collect();
    text.push_str("no JSON, passed on all the same\r\n\n{\n \"success\": true\n}\n");
    text.push_str(&line(2000));
    let mut input = child.stdin.take().expect("a pipe");
    let (sent, mut output) = (text.clone(), child.stdout.take().expect("a pipe"));
    let writing = std::thread::spawn(move || input.write_all(sent.as_bytes()).expect("it reads"));
    let mut passed = vec![0; text.len()];
    output.read_exact(&mut passed).expect("everything is passed on");
    assert!(passed == text.as_bytes());
    writing.join().expect("written");
    bench.stores_all(2001);
    let endpoints = std::fs::read(bench.data_dir().join("endpoints.json")).expect("it is ready");
    let endpoints: serde_json::Value = serde_json::from_slice(&endpoints).expect("JSON");
    let web = endpoints["web"].as_str().expect("it listens").parse().expect("an address");
    let status = || ask(web, "GET", "/api/v1/status", &[], b"").expect("an answer").json();
    let began = Instant::now();
    while status()["stdin"]["lines"]["stored"] != 2003 {
        assert!(began.elapsed() < PATIENCE, "{}", status()["stdin"]);
        std::thread::sleep(Duration::from_millis(50));
    }
    child.kill().expect("it still runs");
    let _ = child.wait();
}

/// Scenario: the log is full and cannot be flushed, so that nothing is stored any more, while an application goes on
/// writing through `--stdin --tee`; later there is room again.
/// Guarantee: every byte is passed on, though the application waits for five seconds at most, once; every line is
/// either stored or counted as dropped; and lines are stored again when there is room.
#[test]
fn what_finds_no_room_is_passed_on_and_counted() {
    let bench = Bench::new();
    forbid_flushing(&bench.folder);
    let mut child = Command::new(env!("CARGO_BIN_EXE_faultline"))
        .args(["serve", "--stdin", "--tee", "--wal-bytes", "1MiB", "--flush-after", "100ms", "--data-dir"])
        .arg(bench.data_dir())
        .args(["--listen-otlp-grpc", "off", "--listen-otlp-http", "off", "--listen-postgres", "off"])
        .args(["--listen-flight", "off", "--listen-web", ":0"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let mut input = child.stdin.take().expect("a pipe");
    let mut output = child.stdout.take().expect("a pipe");
    let total = 12_000;
    let text: String = (0..total).map(|number| line(number) + "\n").collect();
    let sent = text.clone();
    let writing = std::thread::spawn(move || {
        input.write_all(sent.as_bytes()).expect("it reads");
        input
    });
    let began = Instant::now();
    let mut passed = vec![0; text.len()];
    output.read_exact(&mut passed).expect("everything is passed on");
    assert!(passed == text.as_bytes());
    assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
    let mut input = writing.join().expect("written");
    let endpoints = std::fs::read(bench.data_dir().join("endpoints.json")).expect("it is ready");
    let endpoints: serde_json::Value = serde_json::from_slice(&endpoints).expect("JSON");
    let web = endpoints["web"].as_str().expect("it listens").parse().expect("an address");
    let get = |path: &str| ask(web, "GET", path, &[], b"").expect("an answer");
    let counts = || {
        let stdin = get("/api/v1/status").json()["stdin"].clone();
        let lines = |outcome: &str| stdin["lines"][outcome].as_u64().unwrap_or_default();
        (lines("stored"), lines("dropped"))
    };
    while counts().0 + counts().1 < total {
        assert!(began.elapsed() < PATIENCE, "{:?}", counts());
        std::thread::sleep(Duration::from_millis(50));
    }
    let (stored, dropped) = counts();
    assert!(stored + dropped == total && dropped > 0 && stored > 0, "{stored} stored, {dropped} dropped");
    let exported = String::from_utf8(get("/metrics").body).expect("UTF-8");
    for (outcome, count) in [("stored", stored), ("dropped", dropped)] {
        let series = format!("faultline_stdin_lines_total{{outcome=\"{outcome}\"}} {count}\n");
        assert!(exported.contains(&series), "{series}{exported}");
    }
    assert!(exported.contains(&format!("faultline_stdin_bytes_total {}\n", text.len())), "{exported}");

    allow_flushing(&bench.folder);
    let began = Instant::now();
    while counts().0 == stored {
        assert!(began.elapsed() < PATIENCE, "nothing is stored again: {:?}", counts());
        writeln!(input, "{}", line(total)).expect("it reads");
        std::thread::sleep(Duration::from_millis(250));
    }
    child.kill().expect("it still runs");
    let _ = child.wait();
}

/// Scenario: one file that was there before, of two services.
/// Guarantee: lines that name no service are of the one that the pattern names.
#[test]
fn a_pattern_names_the_service() {
    let bench = Bench::new();
    std::fs::write(bench.log("app.log"), line(0) + "\n").expect("a file");
    let server: Server = bench.serve();
    bench.stores_all(1);
    let events = server.dump("events");
    assert_eq!((&events[0]["service"], &events[0]["source"]), (&"orders".into(), &"files".into()));
    let said = server.said();
    assert!(server.stop().success(), "{said}");
}
