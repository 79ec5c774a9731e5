//! Tests of one `Idempotency-Key` with different requests: only one of them is acknowledged and stored.

use super::delta::{FLUSH_AT_ONCE, until_flushed};
use super::server::{Answer, Server, ask};
use super::support::{Folder, OPEN, WORKED, command, faultline, lines};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::io::Write;
use std::net::SocketAddr;

const NDJSON: (&str, &str) = ("Content-Type", "application/x-ndjson");
const CLIENTS: usize = 20;
const ROUNDS: usize = 40;

fn body(client: usize, round: usize) -> String {
    let code = format!("CODE_{client}_{round}");
    OPEN.replace("\"get\"", &format!("\"get\",\"request_id\":\"{code}\""))
}

fn post(address: SocketAddr, path: &str, key: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let headers = [&[NDJSON, ("Idempotency-Key", key)], headers].concat();
    ask(address, "POST", path, &headers, body).expect("an answer")
}

/// Returns the ids of the requests whose failures are stored.
fn stored(server: &Server) -> Vec<String> {
    let id = |event: &Value| event["request_id"].as_str().expect("an id").to_owned();
    let mut ids: Vec<String> = server.dump("events").iter().map(id).collect();
    ids.sort();
    ids
}

/// Scenario: twenty clients post forty times, each time another body under a key that all of them use; then each sends
/// what was acknowledged again, as it was, packed anew, and changed; before and after a kill, in the WAL and flushed.
/// Guarantee: what was acknowledged is stored once, the others get 422 with the reason and the remedy and leave
/// nothing, and each is counted.
#[test]
fn a_key_stands_for_one_request() {
    let folder = Folder::new();
    let mut server = Server::start_with(&folder, &FLUSH_AT_ONCE);
    let address = server.address("otlp_http");
    let clients: Vec<_> = (0..CLIENTS)
        .map(|client| {
            std::thread::spawn(move || {
                let post = |round: usize| {
                    let key = format!("round-{round}");
                    let answer = post(address, "/v1/envelopes", &key, &[], body(client, round).as_bytes());
                    (round, answer.status)
                };
                (0..ROUNDS).map(post).collect::<Vec<_>>()
            })
        })
        .collect();
    let mut acknowledged = Vec::new();
    for (client, told) in clients.into_iter().map(|client| client.join().expect("a client")).enumerate() {
        for (round, status) in told {
            assert!([200, 422].contains(&status), "{status}");
            (status == 200).then(|| acknowledged.push((client, round)));
        }
    }
    let mut ids: Vec<String> =
        acknowledged.iter().map(|(client, round)| format!("CODE_{client}_{round}")).collect();
    ids.sort();
    assert_eq!(acknowledged.len(), ROUNDS, "one of a key");
    assert_eq!(stored(&server), ids);
    let refused = server.status()["sources"]["envelopes"]["rejected_requests"]["key_reused"].clone();
    assert_eq!(refused, CLIENTS * ROUNDS - ROUNDS);
    for _ in 0..2 {
        for &(client, round) in acknowledged.iter().step_by(7) {
            check_known(&server, &format!("round-{round}"), &body(client, round));
        }
        until_flushed(&server);
        server.kill();
        server = Server::start_with(&folder, &FLUSH_AT_ONCE);
        assert_eq!(stored(&server), ids);
    }
}

/// The same request gets its response again; every other request with its key is rejected.
#[track_caller]
fn check_known(server: &Server, key: &str, body: &str) {
    let address = server.address("otlp_http");
    let gzip = ("Content-Encoding", "gzip");
    for level in [0, 9] {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
        encoder.write_all(body.as_bytes()).expect("memory");
        post(address, "/v1/envelopes", key, &[gzip], &encoder.finish().expect("memory")).is(200);
    }
    post(address, "/v1/envelopes", key, &[], body.as_bytes()).is(200);
    let changed = [
        ("/v1/envelopes", format!("{body}\n")),
        ("/v1/envelopes", WORKED.to_owned()),
        ("/v1/envelopes?service=other", body.to_owned()),
        ("/v1/envelopes?environment=staging", body.to_owned()),
        ("/v1/envelopes?dialect=erlmcp", body.to_owned()),
    ];
    for (path, body) in changed {
        let told = post(address, path, key, &[], body.as_bytes()).is(422).json();
        let says =
            |field: &str, words: &str| told["error"][field].as_str().is_some_and(|text| text.contains(words));
        assert!(says("code", "key_reused") && says("message", "another body"), "{told}");
        assert!(says("remedy", "another Idempotency-Key"), "{told}");
    }
}

/// Guarantee: a key belongs to the token that sent it, and stays with it when the token is replaced under its name.
#[test]
fn a_token_has_keys_of_its_own() {
    let folder = Folder::new();
    let file = folder.path().join("tokens.toml").to_str().expect("a path").to_owned();
    let tokens = ["a", "b"].map(|name| {
        let made = faultline(&["token", "new", "--name", name, "--scope", "ingest", "--tokens", &file]);
        format!("Bearer {}", made.ends_with(0).out.trim())
    });
    let post = |server: &Server, token: &str, id: usize| {
        let headers = [("Authorization", token)];
        let body = lines(&[&body(id, 0)]);
        post(server.address("otlp_http"), "/v1/envelopes", "key", &headers, body.as_bytes()).status
    };
    let mut server = Server::start_with(&folder, &["--tokens", &file]);
    for _ in 0..2 {
        for (id, token) in tokens.iter().enumerate() {
            assert_eq!((post(&server, token, id), post(&server, token, 7)), (200, 422));
        }
        server.kill();
        server = Server::start_with(&folder, &["--tokens", &file]);
    }
    assert_eq!(stored(&server), ["CODE_0_0", "CODE_1_0"]);
}

/// Scenario: a text is ingested to a server in pieces that end in other places than another run has cut it.
/// Guarantee: `faultline ingest` is not stopped by a key that stands for another piece, and every line is stored.
#[test]
fn ingest_goes_on_where_its_key_stands_for_another_piece() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let url = format!("http://{}", server.address("otlp_http"));
    let log = folder.path().join("app.log").to_str().expect("a path").to_owned();
    let ingest = |state: &str| {
        let run = command(&["ingest", "--to", &url, &log])
            .env("XDG_STATE_HOME", folder.path().join(state))
            .stderr(std::process::Stdio::piped())
            .output()
            .expect("it runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    };
    let text = |ids: std::ops::Range<usize>| ids.map(|id| body(id, 0) + "\n").collect::<String>();
    std::fs::write(&log, text(0..3)).expect("the log");
    ingest("one");
    std::fs::write(&log, text(0..6)).expect("the log");
    ingest("one");
    // Another run that does not know the first one's cuts sends all of it in one piece, with the same end.
    ingest("two");
    let mut ids = stored(&server);
    ids.dedup();
    assert_eq!(ids, (0..6).map(|id| format!("CODE_{id}_0")).collect::<Vec<_>>());
}
