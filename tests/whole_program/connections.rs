//! Limits on connections: no address can take them all, idle ones are closed, and probes are answered when all are
//! taken.

use super::server::{Answer, Server, ask};
use super::support::{Folder, OPEN};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(120);

/// Opens connections with an incomplete request.
fn hold(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    let open = |_| {
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.write_all(b"G").expect("a byte");
        stream
    };
    (0..count).map(open).collect()
}

/// Sends a request from another address of this machine. Returns the status, or 0 when the connection is closed.
fn status_from(source: &str, url: &str) -> u16 {
    let output = Command::new("curl")
        .args(["--silent", "--output", "/dev/null", "--write-out", "%{http_code}", "--max-time", "10"])
        .args(["--interface", source, url])
        .output()
        .expect("curl runs: run ./tests/run, which installs it");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a status")
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn connections(server: &Server, source: &str) -> Value {
    let url = format!("http://{}/api/v1/status", server.address("web"));
    let output = Command::new("curl").args(["--silent", "--interface", source, &url]).output().expect("curl");
    serde_json::from_slice::<Value>(&output.stdout)
        .map(|status| status["connections"]["web"].clone())
        .unwrap_or_default()
}

/// Scenario: one address opens as many connections as it may, then more; another address comes; then all are taken.
/// Guarantee: the address that has its share is refused, others are served; probes are answered throughout, and on the
/// connections that are kept for them nothing else is; what is refused is counted by why; places become free again.
#[test]
fn one_address_does_not_take_all_connections() {
    let folder = Folder::new();
    let bounds =
        ["--limit-connections", "20", "--limit-connections-per-address", "15", "--limit-head-timeout", "10m"];
    let server = Server::start_with(&folder, &bounds);
    let (web, http) = (server.address("web"), server.address("otlp_http"));
    let probe = |path: &str| -> Answer { ask(web, "GET", path, &[], b"").expect("an answer") };
    let held = hold(web, 15);
    until("the share is taken", || probe("/api/v1/status").status == 503);
    for _ in 0..40 {
        probe("/healthz").is(200);
        probe("/readyz").is(200);
    }
    let told = probe("/api/v1/status").is(503).json();
    assert!(
        told["error"]["remedy"].as_str().is_some_and(|text| text.contains("--limit-connections")),
        "{told}"
    );
    let url = format!("http://{web}/api/v1/status");
    assert_eq!(status_from("127.0.0.2", &url), 200, "another address has its own share");
    let counted = connections(&server, "127.0.0.2");
    assert!(counted["reserved"].as_u64().is_some_and(|reserved| reserved > 80), "{counted}");
    let others: Vec<_> = (3..8).map(|last| curl_that_waits(&format!("127.0.0.{last}"), web)).collect();
    until("all are taken", || status_from("127.0.0.9", &url) == 503);
    assert_eq!(status_from("127.0.0.9", &format!("http://{web}/healthz")), 200);
    drop(others);
    drop(held);
    until("places are free again", || probe("/api/v1/status").status == 200);

    // The other listeners have no probes, so they close excess connections.
    let held = hold(http, 15);
    let refused = || {
        let closed = TcpStream::connect(http).and_then(|mut stream| stream.read(&mut [0]));
        matches!(closed, Ok(0) | Err(_))
    };
    assert!(refused());
    assert_eq!(
        probe("/api/v1/status").is(200).json()["connections"]["otlp_http"]["rejected"],
        json!({"address": 1})
    );
    let metrics = String::from_utf8(probe("/metrics").body).expect("text");
    assert!(
        metrics.contains("faultline_connections_rejected_total{protocol=\"otlp_http\",reason=\"address\"} 1"),
        "{metrics}"
    );
    drop(held);
    until("places are free again", || {
        let answer =
            ask(http, "POST", "/v1/envelopes", &[("Content-Type", "application/x-ndjson")], OPEN.as_bytes());
        answer.is_ok_and(|answer| answer.status == 200)
    });
}

/// Holds a connection of another address open.
struct Held(std::process::Child);

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn curl_that_waits(source: &str, address: SocketAddr) -> Held {
    let url = format!("http://{address}/api/v1/tail");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--no-buffer", "--interface", source, &url]).stdout(std::process::Stdio::null());
    // The connection that checked whether all are taken may have had the last one for a moment.
    curl.args(["--retry", "100", "--retry-delay", "1"]);
    Held(curl.spawn().expect("curl"))
}

/// Guarantee: an idle connection is closed, over HTTP and PostgreSQL; of PostgreSQL, too, one address has its share.
#[test]
fn idle_connections_end_and_postgres_has_bounds_of_its_own() {
    let folder = Folder::new();
    let bounds =
        ["--limit-idle-timeout", "1s", "--query-idle", "15s", "--query-connections-per-address", "2"];
    let server = Server::start_with(&folder, &bounds);
    let mut stream = TcpStream::connect(server.address("web")).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n").expect("a request");
    let mut said = String::new();
    stream.read_to_string(&mut said).expect("the server hangs up");
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");

    let port = server.address("postgres").port();
    let address = format!("host=127.0.0.1 port={port} user=x dbname=faultline");
    let psql = || {
        let mut command = Command::new("psql");
        command.args(["--no-psqlrc", "-Atw", &address]).stderr(std::process::Stdio::piped());
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        command
    };
    let mut sessions: Vec<_> = (0..2).map(|_| psql().spawn().expect("psql is missing")).collect();
    for session in &mut sessions {
        session.stdin.as_mut().expect("stdin").write_all(b"SELECT 7;\n").expect("a statement");
        let mut said = [0; 1];
        session.stdout.as_mut().expect("stdout").read_exact(&mut said).expect("it is connected");
        assert_eq!(&said, b"7");
    }
    let third = || {
        let output = psql().args(["-c", "SELECT 1"]).output().expect("psql");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    until("the share is taken", || third().contains("2 connections of this address"));
    let metrics = String::from_utf8(server.get("/metrics").is(200).body).expect("text");
    for series in [
        "faultline_connections{protocol=\"postgres\"} ",
        "faultline_connections_opened_total{protocol=\"postgres\"} ",
        "faultline_connections_rejected_total{protocol=\"postgres\",reason=\"address\"} ",
    ] {
        let line = metrics.lines().find_map(|line| line.strip_prefix(series));
        assert!(line.is_some_and(|count| count != "0"), "{series}: {line:?}");
    }
    // Their sessions end by themselves, and free their places.
    until("idle sessions end", || third().is_empty());
    let mut first = sessions.remove(0);
    first.stdin.take().expect("stdin").write_all(b"SELECT 1;\n").expect("a statement");
    let output = first.wait_with_output().expect("psql ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("was idle for 15 s"), "{said}");
    for mut session in sessions {
        let _ = session.kill();
        let _ = session.wait();
    }
    let metrics = String::from_utf8(server.get("/metrics").is(200).body).expect("text");
    let denied =
        metrics.lines().find(|line| line.starts_with("faultline_auth_denials_total{reason=\"connections\"}"));
    assert!(denied.is_some_and(|line| !line.ends_with(" 0")), "{denied:?}");
}
