//! The worst known cases: bodies within every size limit that yield as much as they can, many at once, while the buffer
//! is full.

use super::bodies::{self, MIB, batch, fill};
use super::{good_lines, is_unharmed};
use crate::whole_program::server::Server;
use crate::whole_program::support::Folder;
use std::time::{Duration, Instant};

const NDJSON: (&str, &str) = ("Content-Type", "application/x-ndjson");

fn post(server: &Server, body: &str) -> u16 {
    server.post("/v1/envelopes", &[NDJSON], body.as_bytes()).status
}

/// Sends bodies all at once, and returns the response to each.
fn at_once(server: &Server, bodies: &[&str]) -> Vec<u16> {
    std::thread::scope(|scope| {
        let sent: Vec<_> = bodies.iter().map(|body| scope.spawn(|| post(server, body))).collect();
        sent.into_iter().map(|sent| sent.join().expect("an answer")).collect()
    })
}

/// Returns records of 64 KiB of context and sixteen failures: the stored data is sixteen times as large as the request.
fn amplifying(bytes: usize) -> String {
    fill(&heavy(16), bytes)
}

/// Returns a failure with 60 KB of context.
fn heavy(items: usize) -> String {
    batch(&format!(r#""x":"{}","#, "y".repeat(60_000)), items)
}

/// Fills the buffer with records of an ordinary size, as far as they are not flushed at once.
fn fill_hot(server: &Server) {
    let body = fill(&heavy(1), 6 * MIB);
    for _ in 0..9 {
        assert_eq!(post(server, &body), 200);
    }
}

/// Bodies that yield many times what they hold, ten of them at once while the hot buffer is full: memory stays
/// under its bound, and a small request beside them does not wait for any of them.
#[test]
fn bodies_that_yield_many_times_what_they_hold_are_bounded() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    fill_hot(&server);
    let (most, too_much) = (amplifying(7 * MIB / 2), amplifying(6 * MIB));
    let answers = std::thread::scope(|scope| {
        let bodies =
            [&most, &too_much, &most, &too_much, &most, &too_much, &most, &too_much].map(String::as_str);
        let server = &server;
        let giants = scope.spawn(move || at_once(server, &bodies));
        let began = Instant::now();
        while !giants.is_finished() {
            let asked = Instant::now();
            good_lines(server);
            assert!(
                asked.elapsed() < Duration::from_secs(5),
                "it waited {:?} behind giants",
                asked.elapsed()
            );
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(100));
        }
        giants.join().expect("answers")
    });
    assert!(answers.iter().all(|status| [200, 413, 429].contains(status)), "{answers:?}");
    assert!(answers.contains(&200) && answers.contains(&413), "{answers:?}");
    is_unharmed(&server);
}

/// Every call a row of its own, ids as long as they may be repeated with every event of a record, and records
/// with as many events as one may have.
#[test]
fn rows_of_every_kind_are_weighed() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let calls = |count: usize| -> String {
        (0..count).map(|call| format!("{{\"success\":true,\"operation\":\"{call}\"}}\n")).collect()
    };
    let id = "i".repeat(256);
    let ids = format!(r#""request_id":"{id}","session_id":"{id}","trace_id":"{id}","span_id":"{id}","#);
    let long_ids = fill(&batch(&ids, 16_000), 8 * MIB);
    let failures = fill("{\"success\":false,\"error\":\"x\"}\n", 8 * MIB);
    for (body, status) in [(calls(100_000), 200), (calls(300_000), 413), (long_ids, 413), (failures, 413)] {
        assert_eq!(post(&server, &body), status);
    }
    is_unharmed(&server);
}

/// The largest bodies there may be, one after the other and compressed: what they leave behind is given back.
#[test]
fn the_largest_bodies_leave_nothing_behind() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let (fresh, _) = server.resident();
    let line = format!("{{\"success\":true,\"x\":\"{}\"}}\n", "y".repeat(MIB - 100));
    let largest = fill(&line, 64 * MIB);
    let compressed = bodies::zstd(line.as_bytes()).repeat(63);
    for _ in 0..2 {
        assert_eq!(post(&server, &largest), 200);
        let headers = [NDJSON, ("Content-Encoding", "zstd")];
        assert_eq!(server.post("/v1/envelopes", &headers, &compressed).is(200).json()["accepted"], 63);
    }
    is_unharmed(&server);
    let held = server.resident().0.saturating_sub(fresh);
    assert!(held < 160 << 20, "{} MiB are still held", held >> 20);
}

/// The heaviest found: compressed bodies of the largest size, all of them failures, one after the other beside as
/// many others as there is room for, while the hot buffer is full.
#[test]
fn giants_beside_a_full_room_are_bounded() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    fill_hot(&server);
    let giant = bodies::zstd(fill(&heavy(1), 63 * MIB).as_bytes());
    let other = fill(&format!("{{\"success\":true,\"x\":\"{}\"}}\n", "z".repeat(900_000)), 7 * MIB);
    std::thread::scope(|scope| {
        let server = &server;
        let giants = (0..3).map(|_| (&giant[..], Some(("Content-Encoding", "zstd"))));
        let others = (0..14).map(|_| (other.as_bytes(), None));
        for (body, encoding) in giants.chain(others) {
            scope.spawn(move || {
                let headers: Vec<_> = [NDJSON].into_iter().chain(encoding).collect();
                let answer = server.post("/v1/envelopes", &headers, body);
                assert!([200, 429].contains(&answer.status), "{answer:?}");
                assert_eq!(answer.header("retry-after").is_some(), answer.status == 429);
            });
        }
    });
    is_unharmed(&server);
}
