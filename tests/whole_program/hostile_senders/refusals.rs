//! A table of requests that are rejected over HTTP, each with its status, its reason, its remedy and its counter.

use super::bodies::{self, MIB};
use super::{NO_LINE_REMEDY, Sent, is_unharmed, remedy};
use crate::whole_program::server::{Answer, Server, ask, read_answer};
use crate::whole_program::support::{Folder, OPEN};
use std::io::Write;
use std::net::{Shutdown, TcpStream};

const ENVELOPES: &str = "/v1/envelopes";
const NDJSON: (&str, &str) = ("Content-Type", "application/x-ndjson");
const PROTOBUF: (&str, &str) = ("Content-Type", "application/x-protobuf");
const JSON: (&str, &str) = ("Content-Type", "application/json");
const GZIP: (&str, &str) = ("Content-Encoding", "gzip");
const ZSTD: (&str, &str) = ("Content-Encoding", "zstd");

/// A request, and its expected outcome.
struct Case {
    request: (&'static str, &'static str, Vec<(&'static str, &'static str)>, Vec<u8>),
    status: u16,
    cause: &'static str,
}

fn case(
    path: &'static str,
    headers: &[(&'static str, &'static str)],
    body: impl Into<Vec<u8>>,
    (status, cause): (u16, &'static str),
) -> Case {
    Case { request: ("POST", path, headers.to_vec(), body.into()), status, cause }
}

const BAD_COMPRESSION: (u16, &str) = (400, "bad_compression");
const TOO_LARGE: (u16, &str) = (413, "too_large");
const UNREADABLE: (u16, &str) = (400, "unreadable");
const BAD_PARAMETER: (u16, &str) = (400, "bad_parameter");
const WRONG_TYPE: (u16, &str) = (415, "wrong_type");
const WRONG_ENCODING: (u16, &str) = (415, "wrong_encoding");

fn compressed() -> Vec<Case> {
    let good = bodies::gzip(OPEN.as_bytes());
    let cut = good[..good.len() - 5].to_vec();
    let mut wrong_sum = good.clone();
    let at = wrong_sum.len() - 6;
    wrong_sum[at] ^= 1;
    vec![
        case(ENVELOPES, &[NDJSON, GZIP], bodies::gzip_bomb(), TOO_LARGE),
        case(ENVELOPES, &[NDJSON, ZSTD], bodies::zstd_bomb(), TOO_LARGE),
        case("/v1/logs", &[PROTOBUF, ZSTD], bodies::zstd_bomb(), TOO_LARGE),
        case(ENVELOPES, &[NDJSON, ZSTD], bodies::zstd_window(), BAD_COMPRESSION),
        case(ENVELOPES, &[NDJSON, GZIP], [&good[..], b"and more"].concat(), BAD_COMPRESSION),
        case(ENVELOPES, &[NDJSON, GZIP], cut, BAD_COMPRESSION),
        case(ENVELOPES, &[NDJSON, GZIP], wrong_sum, BAD_COMPRESSION),
        case(ENVELOPES, &[NDJSON, GZIP], OPEN, BAD_COMPRESSION),
        case(ENVELOPES, &[NDJSON, ZSTD], good.clone(), BAD_COMPRESSION),
        case("/v1/traces", &[PROTOBUF, GZIP], *b"\x0a\x00", BAD_COMPRESSION),
        case(ENVELOPES, &[NDJSON, ("Content-Encoding", "br")], good.clone(), WRONG_ENCODING),
        case(ENVELOPES, &[NDJSON, ("Content-Encoding", "gzip, gzip")], good.clone(), WRONG_ENCODING),
        case(ENVELOPES, &[NDJSON, GZIP, GZIP], good, WRONG_ENCODING),
        case("/v1/logs", &[JSON, ("Content-Encoding", "deflate")], "{}", WRONG_ENCODING),
    ]
}

/// The body is announced and never sent: the request is rejected without reading any of it.
fn announced() -> Vec<Case> {
    vec![
        case(ENVELOPES, &[NDJSON, ("Content-Length", "67108865")], "", TOO_LARGE),
        case(ENVELOPES, &[NDJSON, GZIP, ("Content-Length", "16777217")], "", TOO_LARGE),
        case("/v1/traces", &[PROTOBUF, ("Content-Length", "9223372036854775807")], "", TOO_LARGE),
        case("/v1/logs", &[JSON, ZSTD, ("Content-Length", "16777217")], "", TOO_LARGE),
    ]
}

fn unreadable() -> Vec<Case> {
    vec![
        case(ENVELOPES, &[NDJSON], "", UNREADABLE),
        case(ENVELOPES, &[NDJSON], " \n\n ", UNREADABLE),
        case("/v1/traces", &[PROTOBUF], *b"\x0a\xff\xff\xff\xff\x7f", UNREADABLE),
        case("/v1/traces", &[PROTOBUF], [&b"\x0a"[..], &[0xff; 10]].concat(), UNREADABLE),
        case("/v1/traces", &[PROTOBUF], *b"\x0b\x0c", UNREADABLE),
        case("/v1/logs", &[PROTOBUF], *b"\x02\x00", UNREADABLE),
        case("/v1/logs", &[JSON], "[".repeat(100_000), UNREADABLE),
        case("/v1/traces", &[JSON], "{\"resourceSpans\":7}", UNREADABLE),
        case("/v1/traces", &[JSON], *b"\xff\xfe\0\0", UNREADABLE),
    ]
}

fn heads() -> Vec<Case> {
    let wrong = |path, content_type| case(path, &[("Content-Type", content_type)], OPEN, WRONG_TYPE);
    let key = |key| case(ENVELOPES, &[NDJSON, ("Idempotency-Key", key)], OPEN, BAD_PARAMETER);
    let query = |path| case(path, &[NDJSON], OPEN, BAD_PARAMETER);
    let mut cases = vec![
        wrong(ENVELOPES, "text/html"),
        wrong(ENVELOPES, "application/x-protobuf"),
        wrong("/v1/traces", "text/plain"),
        wrong("/v1/traces", "application/grpc"),
        wrong("/v1/logs", "application/x-ndjson"),
        wrong("/v1/logs", ""),
        key(""),
        key("two words"),
        key("k\u{e4}se"),
        query("/v1/envelopes?dialect=klingon"),
        query("/v1/envelopes?nothing=1"),
        query("/v1/envelopes?service=a&service=b"),
        query("/v1/envelopes?service="),
        query("/v1/envelopes?environment=%00%1b%5b2J"),
        case(ENVELOPES, &[NDJSON, ("Idempotency-Key", "a"), ("Idempotency-Key", "b")], OPEN, BAD_PARAMETER),
        case("/v1development/profiles", &[PROTOBUF], "", (404, "wrong_signal")),
        case("/v1/nothing", &[NDJSON], OPEN, (404, "not_found")),
        case("/../../etc/passwd", &[NDJSON], OPEN, (404, "not_found")),
    ];
    for (method, path) in [("GET", ENVELOPES), ("PUT", "/v1/traces"), ("DELETE", "/v1/logs")] {
        let mut case = case(path, &[JSON], "", (405, "wrong_method"));
        case.request.0 = method;
        cases.push(case);
    }
    cases
}

/// Returns the source under which rejections of a path are counted.
fn source_of(path: &str) -> &'static str {
    match path {
        "/v1/traces" | "/v1development/profiles" => "otlp_traces",
        "/v1/logs" => "otlp_logs",
        _ => "envelopes",
    }
}

/// Checks that the response has the status, the reason and the remedy, in the format of its protocol.
#[track_caller]
fn check(name: &str, answer: &Answer, status: u16, cause: &str) {
    let body = String::from_utf8_lossy(&answer.body);
    assert_eq!(answer.status, status, "{name}: {body}");
    let remedy = match (source_of(name), cause) {
        ("envelopes", "unreadable") => NO_LINE_REMEDY,
        _ => remedy(cause),
    };
    assert!(body.contains(remedy), "{name}: {body}");
    if source_of(name) == "envelopes" {
        let error = &answer.json()["error"];
        assert_eq!((&error["code"], &error["remedy"]), (&cause.into(), &remedy.into()), "{name}");
        assert!(error["message"].as_str().is_some_and(|message| message.len() > 10), "{name}: {body}");
    }
    assert_eq!(answer.header("retry-after"), None, "{name}: a retry changes nothing");
    assert_eq!(answer.header("allow").is_some(), status == 405, "{name}");
}

/// Every one of these is refused in the way that the table says and counted exactly once, a good request after
/// each one is served, and nothing of them is stored.
#[test]
fn every_refusal_has_a_reason_a_remedy_and_a_counter() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let mut sent = Sent::default();
    let cases: Vec<_> = [compressed(), announced(), unreadable(), heads()].into_iter().flatten().collect();
    let count = cases.len();
    for Case { request: (method, path, headers, body), status, cause } in cases {
        let answer = ask(server.address("otlp_http"), method, path, &headers, &body).expect(path);
        let path = path.split('?').next().unwrap_or_default();
        check(path, &answer, status, cause);
        sent.add(source_of(path), cause);
        server.post_lines(OPEN).is(200);
    }
    sent.is_counted(&server);
    assert_eq!(server.dump("events").len(), count, "the good ones, and nothing else");
    is_unharmed(&server);
}

fn head(headers: &str) -> String {
    format!(
        "POST /v1/envelopes HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/x-ndjson\r\n{headers}\r\n"
    )
}

/// Sends bytes as they are, and reads the response to its end.
fn raw(server: &Server, bytes: &[u8], then: impl FnOnce(&TcpStream)) -> Answer {
    let mut stream = TcpStream::connect(server.address("otlp_http")).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    // A server that has read enough may close the connection before everything is sent.
    let _ = stream.write_all(bytes);
    then(&stream);
    read_answer(&mut stream).expect("an answer")
}

/// Without an announced length, a body is refused while it streams: the sender cannot get all of it in.
#[test]
fn an_endless_body_is_cut_off_while_it_streams() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let chunk = [b"100000\r\n", &vec![b' '; MIB][..], b"\r\n"].concat();
    let answer = raw(&server, head("Transfer-Encoding: chunked\r\n").as_bytes(), |mut stream| {
        let taken = (0..400).take_while(|_| stream.write_all(&chunk).is_ok()).count();
        assert!((64..300).contains(&taken), "{taken} MiB were taken");
    });
    check(ENVELOPES, &answer, 413, "too_large");
    let mut sent = Sent::default();
    sent.add("envelopes", "too_large");
    sent.is_counted(&server);
    is_unharmed(&server);
}

/// Heads that contradict themselves, are too large or are no HTTP: answered and closed, never taken for two
/// requests. These are below the receivers: the HTTP library answers them, without a body.
#[test]
fn heads_that_are_no_heads_are_answered_and_closed() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let many: String = (0..500).map(|number| format!("x-{number}: y\r\n")).collect();
    let chunked = format!("{:x}\r\n{OPEN}\r\n0\r\n\r\n", OPEN.len());
    let length = OPEN.len();
    let table = [
        (head("Content-Length: 5\r\nContent-Length: 6\r\n"), OPEN, 400),
        (head("Content-Length: -1\r\n"), OPEN, 400),
        (head("Content-Length: +5\r\n"), OPEN, 400),
        (head("Content-Length: 99999999999999999999999\r\n"), OPEN, 400),
        (head("Transfer-Encoding: gzip\r\n"), OPEN, 400),
        (head(&many), OPEN, 431),
        (head(&format!("x: {}\r\n", "y".repeat(200_000))), OPEN, 431),
        ("\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03\r\n\r\n".to_owned(), "", 400),
        // The chunked encoding is used and the length is not, so nothing is left over as a second request.
        (head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n"), &chunked, 200),
        (head("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n"), &chunked, 200),
        (head(&format!("Content-Length: {length}\r\n")), &format!("{OPEN}POST /v1/envelopes HTTP/1.1"), 200),
    ];
    for (head, body, status) in &table {
        let answer = raw(&server, format!("{head}{body}").as_bytes(), |_| {});
        assert_eq!(answer.status, *status, "{} {}", &head[..head.len().min(200)], answer.head);
        let second = String::from_utf8_lossy(&answer.body).contains("HTTP/1.1");
        assert!(!second, "two answers to one request: {answer:?}");
    }
    assert_eq!(server.dump("events").len(), 3);
    is_unharmed(&server);
}

/// Half-closed connections: one that is closed after its request is answered; one that is closed in the middle
/// of its body is counted as gone.
#[test]
fn half_closed_connections_are_answered_or_counted() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let close = |stream: &TcpStream| stream.shutdown(Shutdown::Write).unwrap();
    let whole = format!("{}{OPEN}", head(&format!("Content-Length: {}\r\n", OPEN.len())));
    assert_eq!(raw(&server, whole.as_bytes(), close).is(200).json()["events"], 1);
    for body in ["", "{", OPEN] {
        let cut = format!("{}{body}", head("Content-Length: 1000\r\n"));
        let mut stream = TcpStream::connect(server.address("otlp_http")).unwrap();
        stream.write_all(cut.as_bytes()).unwrap();
        close(&stream);
        let _ = read_answer(&mut stream);
    }
    let mut sent = Sent::default();
    (0..3).for_each(|_| sent.add("envelopes", "gone"));
    sent.is_counted(&server);
    assert_eq!(server.dump("events").len(), 1);
    is_unharmed(&server);
}
