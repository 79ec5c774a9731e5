//! Hostile calls over gRPC, and a client that sends them with message frames written by hand.

use super::protobuf::{deep_value, field, good_span, request, span_with};
use super::{Sent, bodies, is_unharmed, remedy};
use crate::whole_program::server::Server;
use crate::whole_program::support::Folder;
use bytes::Bytes;
use std::time::Duration;
use tokio::net::TcpStream;

const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
const LOGS: &str = "/opentelemetry.proto.collector.logs.v1.LogsService/Export";

/// One call.
#[derive(Clone)]
pub(super) struct Call {
    path: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    body: Vec<u8>,
    /// True if trailers follow the body; gRPC requests have none.
    trailers: bool,
}

impl Call {
    /// Returns an export of spans, as every exporter sends it.
    pub(super) fn of(message: &[u8]) -> Self {
        Self::with_body(framed(0, message))
    }

    fn with_body(body: Vec<u8>) -> Self {
        let headers = vec![("content-type", "application/grpc"), ("te", "trailers")];
        Self { path: TRACES, headers, body, trailers: false }
    }

    fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value));
        self
    }

    fn to(self, path: &'static str) -> Self {
        Self { path, ..self }
    }
}

fn framed(flag: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&[flag][..], &length.to_be_bytes(), message].concat()
}

/// The outcome of a call.
#[derive(Debug)]
pub(super) struct Answered {
    pub(super) http: u16,
    pub(super) grpc: Option<i32>,
    /// `grpc-message`, or the body of a response that is not gRPC.
    pub(super) message: String,
}

/// Sends a call over a connection of its own.
#[track_caller]
pub(super) fn call(server: &Server, call: &Call) -> Answered {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let address = server.address("otlp_grpc");
    let answered = async { tokio::time::timeout(Duration::from_secs(60), send(address, call)).await };
    runtime.block_on(answered).expect("an answer in time").expect("an answer")
}

async fn send(address: std::net::SocketAddr, call: &Call) -> Result<Answered, h2::Error> {
    let stream = TcpStream::connect(address).await.map_err(|_| h2::Reason::CONNECT_ERROR)?;
    let (client, connection) = h2::client::handshake(stream).await?;
    let connection = tokio::spawn(connection);
    let mut request = http::Request::post(format!("http://{address}{}", call.path));
    for (name, value) in &call.headers {
        request = request.header(*name, *value);
    }
    let request = request.body(()).expect("a request");
    let (response, mut body) = client.ready().await?.send_request(request, false)?;
    // A server that has read enough may have reset the stream.
    let _ = body.send_data(Bytes::from(call.body.clone()), !call.trailers);
    if call.trailers {
        let _ = body.send_trailers(http::HeaderMap::from_iter([(
            http::HeaderName::from_static("x-late"),
            http::HeaderValue::from_static("1"),
        )]));
    }
    let answered = read(response.await?).await;
    connection.abort();
    answered
}

async fn read(response: http::Response<h2::RecvStream>) -> Result<Answered, h2::Error> {
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    while let Some(data) = body.data().await {
        bytes.extend_from_slice(&data?);
    }
    let trailers = body.trailers().await?.unwrap_or_default();
    let find =
        |name: &str| head.headers.get(name).or(trailers.get(name)).and_then(|value| value.to_str().ok());
    let message =
        find("grpc-message").map_or_else(|| String::from_utf8_lossy(&bytes).into_owned(), unescaped);
    let grpc = find("grpc-status").and_then(|status| status.parse().ok());
    Ok(Answered { http: head.status.as_u16(), grpc, message })
}

/// Decodes percent escapes such as `%20`, as in `grpc-message`.
fn unescaped(text: &str) -> String {
    let mut parts = text.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(char::from(code.expect("two hex digits")));
        out.push_str(&part[2..]);
    }
    out
}

/// Calls that are rejected: the HTTP status, the gRPC status, and the cause.
fn table() -> Vec<(Call, u16, Option<i32>, &'static str)> {
    let good = good_span();
    let two = [framed(0, &good), framed(0, &good)].concat();
    let short = framed(0, &good)[..8].to_vec();
    let with = |body: Vec<u8>| Call::with_body(body);
    let gzip = |body: &[u8]| with(framed(1, body)).header("grpc-encoding", "gzip");
    let zstd = |body: &[u8]| with(framed(1, body)).header("grpc-encoding", "zstd");
    vec![
        (with(vec![0, 0xff, 0xff, 0xff, 0xff]), 200, Some(8), "too_large"),
        (with([&[0, 4, 0, 0, 1][..], &good].concat()), 200, Some(8), "too_large"),
        (zstd(&bodies::zstd_bomb()).to(LOGS), 200, Some(8), "too_large"),
        (with(framed(1, &good)), 200, Some(3), "unreadable"),
        (with(framed(7, &good)), 200, Some(3), "unreadable"),
        (with(two), 200, Some(3), "unreadable"),
        (with(short), 200, Some(3), "unreadable"),
        (with(Vec::new()).to(LOGS), 200, Some(3), "unreadable"),
        (Call::of(b"\x0a\xff\xff\xff\xff\x7f"), 200, Some(3), "unreadable"),
        (gzip(b"not gzip"), 200, Some(3), "bad_compression"),
        (Call::of(&good).header("grpc-encoding", "br"), 200, Some(12), "wrong_encoding"),
        (
            Call::of(&good)
                .to("/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"),
            200,
            Some(12),
            "wrong_signal",
        ),
        (Call::of(&good).to("/"), 200, Some(12), "wrong_signal"),
        (Call::of(&good).header("content-type", "application/json"), 415, None, "wrong_type"),
        (Call::of(&good).header("content-type", "application/grpc-web"), 415, None, "wrong_type"),
    ]
}

/// Every call of the table is rejected with its status, its reason and its remedy, and counted once; a good call after
/// each is accepted.
#[test]
fn every_refused_call_has_a_reason_a_remedy_and_a_counter() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let mut sent = Sent::default();
    let table = table();
    let count = table.len() as u64;
    for (refused, http, grpc, cause) in table {
        let answered = call(&server, &refused);
        assert_eq!((answered.http, answered.grpc), (http, grpc), "{cause}: {answered:?}");
        assert!(answered.message.contains(remedy(cause)), "{cause}: {answered:?}");
        assert!(answered.message.len() > remedy(cause).len() + 10, "what was wrong: {answered:?}");
        sent.add(if refused.path == LOGS { "otlp_logs" } else { "otlp_traces" }, cause);
        assert_eq!(call(&server, &Call::of(&good_span())).grpc, Some(0));
    }
    sent.is_counted(&server);
    assert_eq!(server.status()["sources"]["otlp_traces"]["accepted_records"], count);
    is_unharmed(&server);
}

/// Calls that are unusual but harmless: trailers after the body, a deeply nested value, a valid compressed message.
#[test]
fn odd_calls_are_taken() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let deep = request(&[span_with(&deep_value(20_000)), field(5, b"call")]);
    let with_trailers = Call { trailers: true, ..Call::of(&good_span()) };
    let compressed = Call::with_body(framed(1, &bodies::gzip(&good_span()))).header("grpc-encoding", "gzip");
    for odd in [with_trailers, Call::of(&deep), compressed] {
        let answered = call(&server, &odd);
        assert_eq!(answered.grpc, Some(0), "{answered:?}");
    }
    assert_eq!(server.status()["sources"]["otlp_traces"]["accepted_records"], 4);
    is_unharmed(&server);
}
