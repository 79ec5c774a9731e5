//! Abuse of HTTP/2 itself: frames that no library would send, written by hand.
//!
//! Some of it violates the protocol and must end the connection; some is allowed and must merely cost little. Either
//! way, the server continues to serve everyone else.

use super::{good_lines, is_unharmed};
use crate::whole_program::server::Server;
use crate::whole_program::support::Folder;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Returns the head of an export, as literals that are not stored in a header table.
fn head() -> Vec<u8> {
    let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    let fields = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "x")];
    fields
        .into_iter()
        .chain([("content-type", "application/grpc")])
        .flat_map(|(name, value)| literal(name, value))
        .collect()
}

fn literal(name: &str, value: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).ok().filter(|length| *length < 127).expect("short");
    [&[0, length(name)], name.as_bytes(), &[length(value)], value.as_bytes()].concat()
}

fn begun() -> Vec<u8> {
    [PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()
}

/// Returns frames for this many streams, each opened with `rest` after its head.
fn streams(count: u32, flags: u8, rest: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let stream = |number: u32| [frame(HEADERS, flags, number, &head()), rest(number)].concat();
    (0..count).flat_map(|number| stream(2 * number + 1)).collect()
}

/// Returns sequences of frames that violate the protocol: the server must end the connection.
fn against_the_rules() -> Vec<(&'static str, Vec<u8>)> {
    let one = streams(1, END_HEADERS, |_| Vec::new());
    let widest = 0x7fff_ffff_u32.to_be_bytes();
    let endless = frame(CONTINUATION, 0, 1, &literal("x-y", "z").repeat(100)).repeat(2_000);
    vec![
        ("no preface after all", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n".to_vec()),
        ("a head without an end", [begun(), frame(HEADERS, 0, 1, &head()), endless].concat()),
        ("a frame of 16 MiB", [begun(), vec![0xff, 0xff, 0xff, DATA, 0, 0, 0, 0, 1]].concat()),
        (
            "a window of more than there can be",
            [begun(), frame(WINDOW_UPDATE, 0, 0, &widest).repeat(2)].concat(),
        ),
        ("a window of nothing more", [begun(), frame(WINDOW_UPDATE, 0, 0, &[0; 4])].concat()),
        ("data on no stream", [begun(), frame(DATA, 0, 0, b"x")].concat()),
        ("data on a stream that is not open", [begun(), frame(DATA, 0, 99, b"x")].concat()),
        ("a stream of the server's", [begun(), frame(HEADERS, END_HEADERS, 2, &head())].concat()),
        ("a head in the middle of a head", [begun(), frame(HEADERS, 0, 1, &head()), one].concat()),
        (
            "a table entry that is not there",
            [begun(), frame(HEADERS, END_HEADERS, 1, &[0xff, 0xff, 0xff, 0x7f])].concat(),
        ),
        ("settings of half a setting", [begun(), frame(SETTINGS, 0, 0, &[0; 5])].concat()),
        (
            "rapid reset",
            [begun(), streams(5_000, END_HEADERS, |number| frame(RST_STREAM, 0, number, &[0, 0, 0, 8]))]
                .concat(),
        ),
    ]
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address("otlp_grpc")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Returns true when the server has disconnected, or announced it (GOAWAY).
fn is_ended(stream: &mut TcpStream) -> bool {
    let mut said = Vec::new();
    let mut buffer = [0; 16 << 10];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset || has_goaway(&said),
        }
        if has_goaway(&said) {
            return true;
        }
    }
}

fn has_goaway(mut said: &[u8]) -> bool {
    const GOAWAY: u8 = 7;
    while let Some((&[a, b, c, kind, ..], _)) = said.split_first_chunk::<9>() {
        if kind == GOAWAY {
            return true;
        }
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        said = said.get(9 + length..).unwrap_or_default();
    }
    false
}

/// A client that violates the protocol is disconnected, and no other.
#[test]
fn broken_rules_end_the_connection_and_nothing_else() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    for (name, bytes) in against_the_rules() {
        let mut stream = connect(&server);
        // The server may disconnect before it has received everything.
        let _ = stream.write_all(&bytes);
        assert!(is_ended(&mut stream), "{name}: the connection goes on");
    }
    is_unharmed(&server);
}

/// A connection that opens far more streams than it may, and sends no body on any: those over the bound are
/// refused one by one, the others wait for their time, and nobody else notices.
#[test]
fn stalled_streams_keep_nobody_waiting() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let _held = pour(&server, &streams(2_000, END_HEADERS, |_| Vec::new()));
    let began = Instant::now();
    good_lines(&server);
    is_unharmed(&server);
    assert!(began.elapsed() < Duration::from_secs(8), "they waited {:?}", began.elapsed());
}

/// Floods of frames that require a response, from clients that never read one: the server stops reading them instead of
/// buffering responses.
#[test]
fn floods_that_nobody_reads_the_answers_of_cost_nothing() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let before = server.resident().0;
    let no_window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    let call = |number| frame(DATA, END_STREAM, number, &[0, 0, 0, 0, 0]);
    let floods = [
        frame(SETTINGS, 0, 0, &[]).repeat(100_000),
        frame(PING, 0, 0, &[7; 8]).repeat(100_000),
        [no_window, streams(1_000, END_HEADERS, call)].concat(),
    ];
    let held: Vec<_> = (0..8).flat_map(|_| &floods).map(|flood| pour(&server, flood)).collect();
    good_lines(&server);
    let grown = server.resident().1.saturating_sub(before) >> 20;
    assert!(grown < 128, "{grown} MiB for {} connections", held.len());
    is_unharmed(&server);
}

/// Sends as much as can be sent without a long wait.
fn pour(server: &Server, flood: &[u8]) -> TcpStream {
    let mut stream = connect(server);
    stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let _ = stream.write_all(&begun());
    let _ = stream.write_all(flood);
    stream
}
