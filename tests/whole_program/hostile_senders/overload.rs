//! Ten times the load: far more bodies at once than there is room for, from clients that follow the server's advice.

use super::bodies::MIB;
use super::{is_unharmed, remedy};
use crate::whole_program::server::{Server, ask};
use crate::whole_program::support::Folder;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

const CLIENTS: usize = 40;
const LINES: usize = 8;
/// The time for which a client retries.
const PATIENCE: Duration = Duration::from_secs(180);

/// Returns eight failures of almost a mebibyte each, which differ between clients.
fn body(client: usize, padding: &str) -> Vec<u8> {
    let line = |line: usize| {
        format!(
            r#"{{"success":false,"request_id":"{client}-{line}",{padding}"error":{{"code":"INTERNAL_ERROR","message":"x"}}}}"#
        )
    };
    (0..LINES).map(line).collect::<Vec<_>>().join("\n").into_bytes()
}

/// Sends until the request is accepted, and returns how often the client had to retry.
fn insist(server: &Server, client: usize, body: &[u8]) -> u64 {
    let key = format!("client-{client}");
    let headers = [("Content-Type", "application/x-ndjson"), ("Idempotency-Key", key.as_str())];
    let began = Instant::now();
    let mut refused = 0;
    while began.elapsed() < PATIENCE {
        let Ok(answer) = ask(server.address("otlp_http"), "POST", "/v1/envelopes", &headers, body) else {
            continue;
        };
        if answer.status == 200 {
            assert_eq!(answer.json()["events"], LINES);
            return refused;
        }
        assert_eq!(answer.status, 429, "{answer:?}");
        assert_eq!(answer.json()["error"]["remedy"], remedy("busy"));
        let seconds = answer.header("retry-after").expect("when to come back").parse().unwrap();
        assert!((1..=10).contains(&seconds));
        refused += 1;
        std::thread::sleep(Duration::from_secs(seconds));
    }
    panic!("client {client} was refused {refused} times");
}

/// 40 clients with 8 MiB each, more than three times what there is room for, and each tries again when it is told to:
/// some are refused with a time to come back, all are taken in the end, every batch is stored exactly once, health is
/// answered all the while, and memory stays under its bound.
#[test]
fn a_client_that_tries_again_loses_nothing() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    // White space costs a reader almost nothing: the memory is to be exhausted, not the processor.
    let padding = " ".repeat(MIB - 300);
    let refused = AtomicU64::new(0);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let health = scope.spawn(|| watch(&server, &done));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (server, padding, refused) = (&server, &padding, &refused);
                scope.spawn(move || {
                    let count = insist(server, client, &body(client, padding));
                    refused.fetch_add(count, Ordering::Relaxed);
                })
            })
            .collect();
        let all = clients.into_iter().all(|client| client.join().is_ok());
        done.store(true, Ordering::Relaxed);
        assert!(health.join().expect("health is answered") > 3);
        assert!(all, "a client was not served");
    });
    let refused = refused.into_inner();
    assert!(refused > 0, "320 MiB at once were no overload");
    let counted = &server.status()["sources"]["envelopes"]["rejected_requests"];
    assert_eq!(counted["busy"], refused, "{counted}");
    let events = server.dump("events");
    let ids: BTreeSet<_> = events.iter().map(|event| event["request_id"].as_str().unwrap()).collect();
    assert_eq!((events.len(), ids.len()), (CLIENTS * LINES, CLIENTS * LINES), "each once");
    super::tell(&format!("{refused} refusals"));
    is_unharmed(&server);
}

/// Requests health until everything is done, and returns the number of requests.
fn watch(server: &Server, done: &AtomicBool) -> usize {
    let mut answers = 0;
    while !done.load(Ordering::Relaxed) {
        let began = Instant::now();
        server.get("/healthz").is(200);
        assert!(began.elapsed() < Duration::from_secs(10), "health took {:?}", began.elapsed());
        answers += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    answers
}
