//! Lines of standard input, and what is passed on of them.

use super::{Bench, PATIENCE, line};
use crate::whole_program::server::{Server, ask};
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
    while status()["stdin"]["lines"] != 2003 {
        assert!(began.elapsed() < PATIENCE, "{}", status()["stdin"]);
        std::thread::sleep(Duration::from_millis(50));
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
