//! Senders that are slow on purpose: many connections that send their head or their body byte by byte, stop in the
//! middle, send nothing, or never read their responses.

use super::grpc::{self, Call};
use super::{good_lines, is_unharmed, protobuf, remedy};
use crate::whole_program::server::{Server, read_answer};
use crate::whole_program::support::{Folder, OPEN};
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// The time after which slow senders are disconnected, because heads and pauses in bodies may take ten seconds.
const WATCHED: Duration = Duration::from_secs(13);
/// The maximum time of a good request on a busy machine.
const IN_TIME: Duration = Duration::from_secs(5);

const BODY: &str = "POST /v1/envelopes HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{";

/// The slow senders of one test.
struct Slow {
    silent: Vec<TcpStream>,
    /// Sends a byte of a head now and then.
    heads: Vec<TcpStream>,
    /// Sends a byte of a body now and then.
    bodies: Vec<TcpStream>,
    /// Sends the beginning of a body, and nothing more.
    stalled: Vec<TcpStream>,
    /// Sends thousands of requests, and never reads the responses.
    deaf: Vec<TcpStream>,
}

fn open(server: &Server, port: &str, count: usize, begin: &str) -> Vec<TcpStream> {
    let connect = |_| {
        let mut stream = TcpStream::connect(server.address(port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
        let _ = stream.write_all(begin.as_bytes());
        stream
    };
    (0..count).map(connect).collect()
}

impl Slow {
    fn open(server: &Server) -> Self {
        let request =
            format!("POST /v1/envelopes HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{OPEN}", OPEN.len());
        let both = |count, begin| {
            [open(server, "otlp_http", count, begin), open(server, "otlp_grpc", count, begin)]
                .into_iter()
                .flatten()
        };
        Self {
            silent: both(30, "").collect(),
            heads: both(30, "P").chain(both(10, "PRI * HTTP")).collect(),
            bodies: open(server, "otlp_http", 60, BODY),
            stalled: open(server, "otlp_http", 40, BODY),
            deaf: open(server, "otlp_http", 4, &request.repeat(20_000)),
        }
    }

    fn drip(&mut self) {
        for stream in self.heads.iter_mut().chain(&mut self.bodies) {
            let _ = stream.write_all(b" ");
        }
    }

    fn count(&self) -> usize {
        [&self.silent, &self.heads, &self.bodies, &self.stalled, &self.deaf].map(Vec::len).iter().sum()
    }
}

/// More than two hundred slow senders, and good requests beside them on all ports, each answered in time. Whoever
/// never finishes a head is hung up on, whoever stops in a body is told so, and all of them are counted.
#[test]
fn slow_senders_are_let_go_and_nobody_waits_for_them() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let mut slow = Slow::open(&server);
    assert!(slow.count() > 240);
    let began = Instant::now();
    while began.elapsed() < WATCHED {
        slow.drip();
        in_time(|| drop(good_lines(&server)));
        in_time(|| assert_eq!(grpc::call(&server, &Call::of(&protobuf::good_span())).grpc, Some(0)));
        in_time(|| drop(server.get("/healthz").is(200)));
        std::thread::sleep(Duration::from_millis(150));
    }
    for mut stream in slow.silent.into_iter().chain(slow.heads) {
        let mut rest = Vec::new();
        let ended = stream.read_to_end(&mut rest).map_err(|error| error.kind());
        assert!(matches!(ended, Ok(_) | Err(std::io::ErrorKind::ConnectionReset)), "still open: {ended:?}");
        assert!(!rest.starts_with(b"HTTP/1.1 2"), "{rest:?}");
    }
    let stalled = slow.stalled.len();
    for mut stream in slow.stalled {
        let answer = first_answer(&mut stream);
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains(remedy("too_slow")), "{answer}");
    }
    let dripping = slow.bodies.len();
    drop((slow.bodies, slow.deaf));
    eventually(&server, "too_slow", stalled);
    eventually(&server, "gone", dripping);
    is_unharmed(&server);
}

#[track_caller]
fn in_time(work: impl FnOnce()) {
    let began = Instant::now();
    work();
    assert!(began.elapsed() < IN_TIME, "a good request took {:?}", began.elapsed());
}

/// Returns the first response on a connection that the server may keep open.
fn first_answer(stream: &mut TcpStream) -> String {
    let mut bytes = vec![0; 4096];
    let count = stream.read(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

/// A sender that disconnects is noticed soon, not at once.
#[track_caller]
fn eventually(server: &Server, cause: &str, count: usize) {
    let began = Instant::now();
    let refused = || server.status()["sources"]["envelopes"]["rejected_requests"][cause].as_u64();
    while refused() != Some(count as u64) {
        assert!(began.elapsed() < Duration::from_secs(20), "{cause}: {:?} and not {count}", refused());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Connections over the bound are closed at once and counted, and their places are free again when they go.
#[test]
fn more_connections_than_there_may_be_are_closed() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--limit-connections-per-address", "2000"]);
    let held = open(&server, "otlp_http", 1024, "P");
    let mut over = open(&server, "otlp_http", 20, "P");
    let closed = over
        .iter_mut()
        .filter_map(|stream| stream.read(&mut [0]).map_or(Some(()), |count| (count == 0).then_some(())))
        .count();
    assert_eq!(closed, 20);
    assert_eq!(server.status()["connections"]["otlp_http"]["rejected"], json!({"total": 20}));
    assert_eq!(
        grpc::call(&server, &Call::of(&protobuf::good_span())).grpc,
        Some(0),
        "the other port is free"
    );
    drop((held, over));
    let began = Instant::now();
    while read_answer_of_good(&server).is_none() {
        assert!(began.elapsed() < Duration::from_secs(10), "no place becomes free");
        std::thread::sleep(Duration::from_millis(20));
    }
    is_unharmed(&server);
}

fn read_answer_of_good(server: &Server) -> Option<u16> {
    let mut stream = TcpStream::connect(server.address("otlp_http")).ok()?;
    let length = OPEN.len();
    let request = format!(
        "POST /v1/envelopes HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{OPEN}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    read_answer(&mut stream).ok().map(|answer| answer.status)
}
