//! Hostile senders against the real `faultline serve`, on both ports that take telemetry in.
//!
//! What is guaranteed: whatever comes, the process lives, its resident memory stays under [`MEMORY`], good
//! requests beside the bad ones are served, and every refusal says what was wrong and what to do, and is
//! counted by its reason.

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

/// What the process may take, whatever is sent to it: half a gibibyte, and what the code of the query engine weighs when it
/// is built without optimisation.
const MEMORY: u64 = (512 + 96) << 20;

/// The remedy of each cause, as a sender must find it in the answer.
const REMEDIES: [(&str, &str); 11] = [
    ("bad_compression", "send whole gzip or zstd data, or none and no Content-Encoding"),
    ("bad_parameter", "correct or leave out the parameter"),
    ("busy", "retry after the given time"),
    ("not_found", "use /v1/envelopes, /v1/traces or /v1/logs"),
    ("too_large", "send smaller batches"),
    ("too_slow", "send the body without long pauses"),
    ("unreadable", "send what the content type says"),
    ("wrong_encoding", "use gzip, zstd or no compression"),
    ("wrong_method", "use POST"),
    ("wrong_signal", "send traces, logs and metrics only"),
    ("wrong_type", "set Content-Type to a type that this path reads"),
];

fn remedy(cause: &str) -> &'static str {
    REMEDIES.iter().find(|(word, _)| *word == cause).expect("a known cause").1
}

/// Refusals that were sent on purpose, by source and cause.
#[derive(Default)]
struct Sent(Map<String, Value>);

impl Sent {
    fn add(&mut self, source: &str, cause: &str) {
        let causes = self.0.entry(source).or_insert_with(|| json!({}));
        causes[cause] = json!(causes[cause].as_u64().unwrap_or(0) + 1);
    }

    /// The status page shows exactly what was sent.
    #[track_caller]
    fn is_counted(&self, server: &Server) {
        let status = server.status();
        for source in ["envelopes", "otlp_traces", "otlp_logs"] {
            let sent = self.0.get(source).cloned().unwrap_or_else(|| json!({}));
            assert_eq!(status["sources"][source]["refused"], sent, "{source}");
        }
    }
}

/// After everything: both ports take what is good, nothing has panicked, and memory stayed under its bound.
#[track_caller]
fn is_unharmed(server: &Server) {
    assert_eq!(server.get("/healthz").is(200).body, b"ok\n");
    good_lines(server);
    let answered = grpc::call(server, &grpc::Call::of(&protobuf::good_span()));
    assert_eq!((answered.http, answered.grpc), (200, Some(0)), "{answered:?}");
    assert_eq!(server.status()["panics"], 0);
    let (_, peak) = server.resident();
    tell(&format!("peak {} MiB", peak >> 20));
    assert!(peak < MEMORY, "resident memory reached {} MiB", peak >> 20);
}

/// Two failures, taken in.
#[track_caller]
fn good_lines(server: &Server) -> Answer {
    let answer = server.post_lines(&lines(&[HIDDEN, OPEN])).is(200);
    assert_eq!(answer.json()["events"], 2);
    answer
}

/// A figure for whoever runs the tests with `--nocapture`.
fn tell(figure: &str) {
    eprintln!("{}: {figure}", std::thread::current().name().unwrap_or_default());
}
