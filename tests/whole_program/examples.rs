//! The senders and the library example of `examples/`, run against a real server as their comments say.

use super::http_sql::rows;
use super::server::Server;
use super::support::{Folder, program, root};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs an example against a server, and expects it to succeed.
#[track_caller]
fn run(mut command: Command, server: &Server) -> Output {
    let url = format!("http://{}", server.address("otlp_http"));
    let output = command
        .env("FAULTLINE_URL", &url)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &url)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {output:?}");
    output
}

fn example(name: &str) -> PathBuf {
    root().join("examples").join(name)
}

/// Checks that the three envelopes of the senders are stored: a success, an open failure and a hidden one.
#[track_caller]
fn check_envelopes(server: &Server, output: &Output, service: &str) {
    let answer: Value = serde_json::from_slice(&output.stdout).expect("the response of the server");
    assert_eq!((&answer["accepted"], &answer["events"]), (&json!(3), &json!(2)), "{answer}");
    assert_eq!(
        rows(server, "SELECT service, operation, category, hidden FROM errors ORDER BY operation"),
        [
            json!({"service": service, "operation": "delete_note", "category": "PERMISSION", "hidden": true}),
            json!({"service": service, "operation": "read_note", "category": "NOT_FOUND", "hidden": false}),
        ]
    );
    let calls = rows(server, "SELECT sum(calls) AS calls FROM traffic");
    assert_eq!(calls, [json!({"calls": 3})]);
}

#[test]
fn envelopes_from_python() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let mut command = Command::new("python3");
    command.arg(example("send_envelopes.py"));
    let output = run(command, &server);
    check_envelopes(&server, &output, "example-python");
}

/// Node.js before 22.18 does not run TypeScript, so the types are stripped first, by the tool that builds the web page.
#[test]
fn envelopes_from_typescript() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let script = folder.path().join("send_envelopes.mjs");
    let esbuild = root().join("target/web/node_modules/.bin/esbuild");
    assert!(esbuild.exists(), "esbuild is missing: run ./tests/run, which installs it into target/web");
    let stripped = Command::new(esbuild)
        .arg(example("send_envelopes.ts"))
        .arg(format!("--outfile={}", script.display()))
        .output()
        .expect("esbuild runs");
    assert!(stripped.status.success(), "{stripped:?}");
    let mut command = Command::new("node");
    command.arg(script);
    let output = run(command, &server);
    check_envelopes(&server, &output, "example-typescript");
}

#[test]
fn spans_from_python() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let python = root().join("target/clients/bin/python");
    assert!(python.exists(), "the Python clients are missing: run ./tests/run, which installs them");
    let mut command = Command::new(python);
    command.arg(example("send_spans.py"));
    let output = run(command, &server);
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    let (_, query) = said.split_once("faultline sql \"").expect("a query");
    let (query, _) = query.rsplit_once('"').expect("a query");
    assert_eq!(rows(&server, query), [json!({"canonical": "RATE_LIMIT_QUOTA_EXHAUSTED", "hidden": true})]);
}

/// The library finds in the example log what the server finds in it.
#[test]
fn lines_through_the_library() {
    let folder = Folder::new();
    let server = super::http_sql::with_example(&folder);
    let example = Path::new(program()).parent().expect("a folder").join("examples/classify_lines");
    assert!(example.exists(), "{} is missing: run cargo build --examples", example.display());
    let log = std::fs::File::open(root().join("examples/app.ndjson")).expect("the example log");
    let output = Command::new(example).stdin(log).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    let count = |kind: &str| said.lines().filter(|line| line.starts_with(kind)).count();
    for kind in ["error", "warning", "audit"] {
        let query = format!("SELECT count(*) AS n FROM events WHERE kind = '{kind}'");
        assert_eq!(rows(&server, &query), [json!({"n": count(&format!("{kind} "))})], "{kind}");
    }
    let calls = rows(&server, "SELECT sum(calls) AS n FROM traffic")[0]["n"].clone();
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with(&format!("{calls} calls, ")), "{calls} calls: {last}");
}
