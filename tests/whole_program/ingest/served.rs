//! Tests of loading into a running server, and into servers that are full, unreachable, killed and restarted.

use super::*;
use crate::whole_program::server::{Server, allow_flushing, forbid_flushing};
use std::time::{Duration, Instant};

fn url(server: &Server) -> String {
    format!("http://{}", server.address("otlp_http"))
}

/// Returns the ports of a server, so that the next one is found at the same addresses.
fn ports(server: &Server) -> [String; 2] {
    ["--listen-otlp-http".to_owned(), server.address("otlp_http").to_string()]
}

#[test]
fn a_server_takes_files_and_knows_them() {
    let bench = Bench::new();
    let server = Server::start(&bench.folder);
    let url = url(&server);
    let record = "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32002,\"message\":\"?\"},\"request_id\":\"r9000\"}\n";
    let file = bench.file("a.log", format!("[INFO] starting\n{}{record}", log(0..3000)));
    let packed = bench.file("b.gz", gzip(log(3000..3100).as_bytes()));
    let options = ["--to", &url, "--service", "a b&c", "--dialect", "erlmcp", "--format", "json"];
    let run = bench.ingest(&[&options[..], &[&file, &packed]].concat()).ends_with(0);
    let told: Value = serde_json::from_str(&run.out).unwrap();
    let counts = ["lines", "events", "rejected"].map(|name| told[name].as_u64().unwrap());
    assert_eq!(counts, [3102, 3101, 1], "{}", run.out);
    assert_eq!(told["categories"], serde_json::json!({"NOT_FOUND": 3101}));
    assert!(run.err.contains(&format!("{file}:1: ")), "{}", run.err);
    let mut expected = each(0..3100, 1);
    expected.extend(each(9000..9001, 1));
    bench.stores(&expected);
    let events = bench.events();
    let defaulted = events.iter().find(|event| event["request_id"] == "r9000").unwrap();
    assert_eq!((&defaulted["service"], &defaulted["dialect"]), (&"a b&c".into(), &"erlmcp".into()));
    let envelopes = &server.status()["sources"]["envelopes"];
    assert_eq!(envelopes["received_events"], serde_json::json!({"NOT_FOUND": 3101}));
    assert!(
        envelopes["received_bytes"].as_u64().unwrap() * 4 < envelopes["decompressed_bytes"].as_u64().unwrap(),
        "compressed"
    );
    let run = bench.ingest(&["--to", &url, &file]).ends_with(1);
    assert!(run.err.contains("already ingested"), "{}", run.err);
    bench.ingest(&["--to", &url, "--again", &packed]).ends_with(0);
    expected.extend(each(3000..3100, 2));
    bench.stores(&expected);
    let ledgers: Vec<_> = std::fs::read_dir(bench.folder.path().join("state/faultline")).unwrap().collect();
    assert_eq!(ledgers.len(), 2, "one file for a server, and its lock: {ledgers:?}");
}

#[test]
fn nobody_listens() {
    let bench = Bench::new();
    let server = Server::start(&bench.folder);
    let url = url(&server);
    assert!(server.stop().success());
    let file = bench.file("a.log", log(0..5));
    let began = Instant::now();
    let run = bench.ingest(&["--to", &url, &file]).ends_with(1);
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "an address that is wrong from the start is not waited for"
    );
    let words = [format!("cannot reach {url}"), "refused".to_owned(), "the same command goes on".to_owned()];
    assert!(words.iter().all(|words| run.err.contains(words)), "{}", run.err);
    assert!(run.out.lines().any(|row| row.starts_with(&file) && row.ends_with("failed")), "{}", run.out);
}

/// Another program listens on that address.
#[test]
fn somebody_else_listens() {
    let bench = Bench::new();
    let server = Server::start(&bench.folder);
    let web = format!("http://{}", server.address("web"));
    let run = bench.ingest(&["--to", &web, &bench.file("a.log", log(0..5))]).ends_with(1);
    assert!(run.err.contains("answered 404") && run.err.contains(&web), "{}", run.err);
}

/// Scenario: the server is full, as nothing can be flushed; somebody mends that, and the same command is run again.
#[test]
fn a_full_server_is_waited_for_and_then_said() {
    let bench = Bench::new();
    forbid_flushing(&bench.folder);
    let server = Server::start_with(&bench.folder, &["--wal-bytes", "8MiB"]);
    let ports = ports(&server);
    let file = bench.file("a.log", too_much(0..40_000));
    let began = Instant::now();
    let run = bench.ingest(&["--to", &url(&server), "--wait", "2", &file]).ends_with(1);
    assert!(began.elapsed() >= Duration::from_secs(1), "it was asked again");
    let words =
        ["nothing was taken for 2 s", "answered 503", "raise --wal-bytes", "the same command goes on"];
    assert!(words.iter().all(|words| run.err.contains(words)), "{}", run.err);
    assert!(server.status()["sources"]["envelopes"]["rejected_requests"]["wal_full"].as_u64().unwrap() > 1);
    assert!(server.stop().success());
    allow_flushing(&bench.folder);
    let server = Server::start_with(&bench.folder, &ports.each_ref().map(String::as_str));
    bench.ingest(&["--to", &url(&server), &file]).ends_with(0);
    bench.stores(&each(0..40_000, 1));
}

/// Scenario: the server is killed under the ingest, and comes back a moment later at the same address.
/// Guarantee: the ingest goes on by itself, and every line is stored once.
#[test]
fn a_server_that_is_killed_and_comes_back() {
    let bench = Bench::new();
    let mut server = Server::start(&bench.folder);
    let ports = ports(&server);
    let file = bench.file("a.log", log(0..12_000));
    let child = bench.spawn(&["--to", &url(&server), &file]);
    for _ in 0..2 {
        let began = Instant::now();
        let taken =
            |server: &Server| server.status()["sources"]["envelopes"]["accepted_records"].as_u64().unwrap();
        while taken(&server) == 0 {
            assert!(began.elapsed() < Duration::from_secs(60), "nothing arrives");
            std::thread::sleep(Duration::from_millis(2));
        }
        server.kill();
        std::thread::sleep(Duration::from_millis(100));
        server = Server::start_with(&bench.folder, &ports.each_ref().map(String::as_str));
    }
    let run = ended(child).ends_with(0);
    assert!(run.out.contains("ingested"), "{}", run.out);
    bench.stores(&each(0..12_000, 1));
}
