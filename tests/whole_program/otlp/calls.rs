//! The MUSTs of OTLP over gRPC: statuses as real clients see them, and frames that no SDK would send.

use super::client::{gzip, python, story, zstd};
use super::expected::check;
use super::start;
use super::wire::{Held, fields, request, span};
use crate::whole_program::server::Server;
use crate::whole_program::support::Folder;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// Makes one call with Google's own client, without a stub: with this many bytes, or with these bytes.
#[track_caller]
fn call(server: &Server, path: &str, size: &str, message: &[u8]) -> Value {
    python("call.py", &[&server.address("otlp_grpc").to_string(), path, size], message)
}

/// Returns a message in its frame.
fn frame(flag: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a short message");
    [&[flag][..], &length.to_be_bytes(), message].concat()
}

/// Sends frames over HTTP/2, and returns the head with the trailers, and the body.
fn post_frames(
    server: &Server,
    folder: &Folder,
    path: &str,
    headers: &[&str],
    frames: &[u8],
) -> (String, Vec<u8>) {
    let input = folder.file("frames", frames);
    let (head, body) = (folder.path().join("head"), folder.path().join("body"));
    let show = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    // A server may respond before all data is sent, and then end the stream; some versions of curl report that as a
    // failure.
    const ENDED_EARLY: Option<i32> = Some(92);
    for _ in 0..20 {
        let status = Command::new("curl")
            .args(["--silent", "--http2-prior-knowledge", "--max-time", "30", "--data-binary"])
            .args([&format!("@{input}"), "--dump-header", &show(&head), "--output", &show(&body)])
            .args(["-H", "content-type: application/grpc", "-H", "te: trailers"])
            .args(headers.iter().flat_map(|header| ["-H", header]))
            .arg(format!("http://{}{path}", server.address("otlp_grpc")))
            .status()
            .expect("curl runs: run ./tests/run, which installs it");
        assert!(status.success() || status.code() == ENDED_EARLY, "curl: {status}");
        if status.success() {
            break;
        }
    }
    (std::fs::read_to_string(&head).expect("a head"), std::fs::read(&body).unwrap_or_default())
}

#[track_caller]
fn grpc_status(head: &str) -> &str {
    let line = head.lines().find_map(|line| line.strip_prefix("grpc-status: "));
    line.unwrap_or_else(|| panic!("no status: {head}")).trim()
}

/// Each advertised message compression is read: the story comes out complete.
#[test]
fn every_message_compression() {
    type Compress = fn(&[u8]) -> Vec<u8>;
    let ways: [(&str, u8, Compress); 4] = [
        ("identity", 0, |bytes| bytes.to_vec()),
        ("gzip", 1, gzip),
        ("zstd", 1, zstd),
        // A sender may send an uncompressed message, whatever it announced.
        ("gzip", 0, |bytes| bytes.to_vec()),
    ];
    for (encoding, flag, compress) in ways {
        let folder = Folder::new();
        let server = start(&folder);
        let header = format!("grpc-encoding: {encoding}");
        for (path, message) in [(TRACES, &story().traces), (LOGS, &story().logs)] {
            let frames = frame(flag, &compress(message));
            let (head, body) = post_frames(&server, &folder, path, &[&header], &frames);
            assert_eq!((grpc_status(&head), &body[..]), ("0", &frame(0, b"")[..]), "{encoding}: {head}");
            assert!(head.contains("grpc-accept-encoding: identity,gzip,zstd"), "{head}");
        }
        check(&server, &story().told);
    }
}

/// Frames that cannot be read are `INVALID_ARGUMENT`, compressions that we do not know `UNIMPLEMENTED`; neither is
/// retried by senders.
#[test]
fn bad_frames_are_refused() {
    let folder = Folder::new();
    let server = start(&folder);
    let good = frame(0, &story().traces);
    for (name, header, frames, expected) in [
        ("no message", "x: y", Vec::new(), "3"),
        ("a cut message", "x: y", good[..good.len() - 1].to_vec(), "3"),
        ("two messages", "x: y", [&good[..], &good].concat(), "3"),
        ("compressed, and nobody says how", "x: y", frame(1, &gzip(&story().traces)), "3"),
        ("not the compression it says", "grpc-encoding: zstd", frame(1, &gzip(&story().traces)), "3"),
        ("an unknown flag", "x: y", frame(7, b""), "3"),
        ("not protobuf", "x: y", frame(0, b"\xff\xff\xff"), "3"),
        ("an unknown compression", "grpc-encoding: snappy", frame(1, b""), "12"),
    ] {
        let (head, body) = post_frames(&server, &folder, TRACES, &[header], &frames);
        assert_eq!((grpc_status(&head), body.len()), (expected, 0), "{name}: {head}");
        assert!(head.contains("grpc-message: "), "{name}: {head}");
    }
    assert!(server.dump("events").is_empty());
}

/// Services and methods that do not exist are `UNIMPLEMENTED`.
#[test]
fn unknown_calls_are_unimplemented() {
    let folder = Folder::new();
    let server = start(&folder);
    for path in [
        "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
        "/opentelemetry.proto.collector.trace.v1.TraceService/Import",
        "/no.such.Service/Call",
    ] {
        let answer = call(&server, path, "3", b"");
        assert_eq!(answer["code"], "UNIMPLEMENTED", "{path}: {answer}");
        assert_eq!((&answer["status"]["code"], &answer["retry_ms"]), (&json!(12), &Value::Null));
    }
}

/// A message over the limit is `RESOURCE_EXHAUSTED` **without** `RetryInfo`: with it, or as `OUT_OF_RANGE`, senders
/// would try again for ever. It is refused at its prefix,
/// so it costs no memory.
#[test]
fn a_message_that_is_too_large_is_not_to_be_retried() {
    let folder = Folder::new();
    let server = start(&folder);
    let (_, before) = server.resident();
    let answer = call(&server, TRACES, &((64 << 20) + 1).to_string(), b"");
    let (_, after) = server.resident();
    assert!(after < before + (16 << 20), "it grew from {before} to {after} bytes");
    assert_eq!(answer["code"], "RESOURCE_EXHAUSTED", "{answer}");
    assert_eq!((&answer["status"]["code"], &answer["details"]), (&json!(8), &json!([])));
    assert!(answer["message"].as_str().is_some_and(|said| said.contains("67108864")), "{answer}");
    // Zeros are not protobuf, but they are within the limit, which shows that the server is still healthy.
    assert_eq!(call(&server, TRACES, "1048576", b"")["code"], "INVALID_ARGUMENT");
    assert_eq!(
        server.status()["sources"]["otlp_traces"]["rejected_requests"],
        json!({"too_large": 1, "unreadable": 1})
    );
}

/// Malformed spans are told in `partial_success`, and cost only themselves; an empty request is a success.
#[test]
fn partial_success_over_grpc() {
    let folder = Folder::new();
    let server = start(&folder);
    assert_eq!(call(&server, TRACES, "-", b""), json!({"code": "OK", "answer": ""}));
    let torn = [span(3, &[]), vec![9 << 3 | 2, 100, 1]].concat();
    let answer = call(&server, TRACES, "-", &request(&[], &[span(1, &[]), torn, span(2, &[])]));
    assert_eq!(answer["code"], "OK", "{answer}");
    let answer = super::client::from_hex(answer["answer"].as_str().expect("an answer"));
    let [(1, Held::Bytes(partial))] = &fields(&answer)[..] else { panic!("{answer:?}") };
    assert_eq!(fields(partial)[0], (1, Held::Number(1)));
    assert_eq!(server.dump("events").len(), 2);
}

/// A client that sends plain HTTP to this port gets an HTTP error that says so.
#[test]
fn plain_http_is_answered_over_http() {
    let folder = Folder::new();
    let server = start(&folder);
    let address = server.address("otlp_grpc");
    let answer = crate::whole_program::server::ask(address, "POST", "/v1/traces", &[super::JSON], b"{}");
    let answer = answer.expect("an answer").is(415);
    assert!(String::from_utf8_lossy(&answer.body).contains("4318"), "{answer:?}");
}
