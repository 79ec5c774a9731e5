//! Hostile senders against the real `faultline serve`, on both ports that take telemetry in.
//!
//! Guarantee: whatever is sent, the process survives, its resident memory stays below [`MEMORY`], good requests beside
//! the bad ones are served, and every rejection says what was wrong and what to do, and is counted by its reason.

mod bodies;
mod frames;
mod grpc;
mod overload;
mod protobuf;
mod records;
mod refusals;
mod slow;
mod worst;

use super::server::{Answer, Server};
use super::support::{HIDDEN, OPEN, lines};
use serde_json::{Map, Value, json};

/// The memory limit of the process: half a gibibyte, and the size of the query engine's code when it is built without
/// optimisation.
const MEMORY: u64 = (512 + 96) << 20;

/// The remedy for each cause, as the response must state it.
const REMEDIES: [(&str, &str); 11] = [
    ("bad_compression", "send whole gzip or zstd data, or none and no Content-Encoding"),
    ("bad_parameter", "correct or leave out the parameter"),
    ("busy", "retry after the given time"),
    ("not_found", "use /v1/envelopes, /v1/traces, /v1/logs or /v1/metrics"),
    ("too_large", "send smaller batches"),
    ("too_slow", "send the body without long pauses"),
    ("unreadable", "send what the content type says"),
    ("wrong_encoding", "use gzip, zstd or no compression"),
    ("wrong_method", "use POST"),
    ("wrong_signal", "send traces, logs and metrics only"),
    ("wrong_type", "set Content-Type to a type that this path reads"),
];

/// The remedy for a body of `/v1/envelopes` without a readable line.
const NO_LINE_REMEDY: &str = "send one JSON object a line, as in: curl http://127.0.0.1:4318/v1/envelopes \
                              -H 'Content-Type: application/x-ndjson' --data-binary @replies.ndjson";

fn remedy(cause: &str) -> &'static str {
    REMEDIES.iter().find(|(word, _)| *word == cause).expect("a known cause").1
}

/// The rejections that the test has caused, by source and cause.
#[derive(Default)]
struct Sent(Map<String, Value>);

impl Sent {
    fn add(&mut self, source: &str, cause: &str) {
        let causes = self.0.entry(source).or_insert_with(|| json!({}));
        causes[cause] = json!(causes[cause].as_u64().unwrap_or(0) + 1);
    }

    /// Checks that the status page counts exactly these rejections.
    #[track_caller]
    fn is_counted(&self, server: &Server) {
        let status = server.status();
        for source in ["envelopes", "otlp_traces", "otlp_logs"] {
            let sent = self.0.get(source).cloned().unwrap_or_else(|| json!({}));
            assert_eq!(status["sources"][source]["rejected_requests"], sent, "{source}");
        }
    }
}

/// Checks the end state: both ports accept good requests, nothing has panicked, and memory stayed below its limit.
#[track_caller]
fn is_unharmed(server: &Server) {
    assert_eq!(server.get("/healthz").is(200).body, b"ok\n");
    good_lines(server);
    let answered = grpc::call(server, &grpc::Call::of(&protobuf::good_span()));
    assert_eq!((answered.http, answered.grpc), (200, Some(0)), "{answered:?}");
    assert_eq!(server.status()["server"]["panics"], 0);
    let (_, peak) = server.resident();
    tell(&format!("peak {} MiB", peak >> 20));
    assert!(peak < MEMORY, "resident memory reached {} MiB", peak >> 20);
}

/// Sends two failures, which must be accepted.
#[track_caller]
fn good_lines(server: &Server) -> Answer {
    let answer = server.post_lines(&lines(&[HIDDEN, OPEN])).is(200);
    assert_eq!(answer.json()["events"], 2);
    answer
}

/// Prints a figure for runs with `--nocapture`.
fn tell(figure: &str) {
    eprintln!("{}: {figure}", std::thread::current().name().unwrap_or_default());
}
