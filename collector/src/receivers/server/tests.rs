//! Tests against a running server, of behaviour that needs a socket.

use super::*;
use crate::receivers::test_support::Fake;
use crate::{RejectionReason, Source};
use auth::ConnectionLimit;
use auth::listener::{ListenerProtocol, ProtocolStats};
use axum::body::Body;
use http_body_util::{BodyExt, Full};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

struct Running {
    address: SocketAddr,
    connections: Arc<ConnectionStats>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn start(router: Router, limits: Limits) -> Running {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = socket.local_addr().unwrap();
    let listener = Listener { protocol: ListenerProtocol::OtlpHttp, socket, tls: None };
    let connections = Arc::new(ConnectionStats::default());
    let (stop, stopped) = oneshot::channel();
    let shutdown = async {
        let _ = stopped.await;
    };
    let task =
        tokio::spawn(run(listener, router, HalfClose::Sender, limits, Arc::clone(&connections), shutdown));
    Running { address, connections, stop, task }
}

fn limits() -> Limits {
    Limits {
        head_timeout: Duration::from_millis(100),
        body_pause: Duration::from_millis(100),
        drain: Duration::from_millis(300),
        connections: 2,
        ..Limits::default()
    }
}

impl Running {
    fn counters(&self) -> &ProtocolStats {
        self.connections.of(ListenerProtocol::OtlpHttp)
    }
}

async fn send(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Returns everything that the server sends until it closes the connection.
async fn said(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let reading = stream.read_to_end(&mut bytes);
    timeout(Duration::from_secs(5), reading).await.expect("the server hangs up").unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads one response of a connection that stays open.
async fn response(stream: &mut TcpStream) -> String {
    let mut bytes = vec![0; 4096];
    let count = timeout(Duration::from_secs(5), stream.read(&mut bytes)).await.unwrap().unwrap();
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

const GOOD: &str = "POST /v1/envelopes HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}";

#[tokio::test]
async fn answers_and_stays_open_while_idle() {
    let fake = Fake::default();
    let server = start(fake.routers().http, limits()).await;
    let mut stream = send(server.address, GOOD).await;
    assert!(response(&mut stream).await.starts_with("HTTP/1.1 200"));
    // The connection is idle for longer than the head timeout, which applies only to heads that have begun.
    sleep(Duration::from_millis(300)).await;
    stream.write_all(GOOD.as_bytes()).await.unwrap();
    assert!(response(&mut stream).await.starts_with("HTTP/1.1 200"));
    assert_eq!(fake.submitted().len(), 2);
}

#[tokio::test]
async fn slow_heads_are_cut_off() {
    let server = start(Fake::default().routers().http, limits()).await;
    for begun in ["", "P", "PRI * HT", "POST /v1/envelopes HTTP/1.1\r\nhost:"] {
        let mut stream = send(server.address, begun).await;
        let begin = Instant::now();
        let _ = timeout(Duration::from_secs(5), stream.read_to_end(&mut Vec::new())).await.expect(begun);
        assert!(begin.elapsed() < Duration::from_secs(1), "{begun:?}");
    }
    // Sending a byte now and then does not help either, not even after a valid request.
    let mut stream = send(server.address, GOOD).await;
    response(&mut stream).await;
    let begin = Instant::now();
    let drip = async {
        while stream.write_all(b"P").await.is_ok() && begin.elapsed() < Duration::from_secs(4) {
            sleep(Duration::from_millis(20)).await;
        }
    };
    drip.await;
    assert!(begin.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn slow_bodies_are_answered_408() {
    let fake = Fake::with(limits());
    let server = start(fake.routers().http, limits()).await;
    let head = "POST /v1/envelopes HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{";
    let mut stream = send(server.address, head).await;
    assert!(response(&mut stream).await.starts_with("HTTP/1.1 408"));
    assert_eq!(fake.rejected(), [(Source::Envelopes, RejectionReason::TooSlow)]);
}

#[tokio::test]
async fn a_sender_that_hangs_up_is_counted_once() {
    let fake = Fake::default();
    let server = start(fake.routers().http, limits()).await;
    let head = "POST /v1/envelopes HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{";
    let stream = send(server.address, head).await;
    sleep(Duration::from_millis(50)).await;
    drop(stream);
    sleep(Duration::from_millis(50)).await;
    assert_eq!(fake.rejected(), [(Source::Envelopes, RejectionReason::Gone)]);
    assert_eq!(server.counters().open(), 0);
    assert_eq!(fake.room.available_permits(), fake.limits.inflight_bytes >> 10);
}

/// A sender that writes the whole of a body that was rejected unread still receives the reason.
#[tokio::test]
async fn a_refusal_reaches_a_sender_that_writes_on() {
    let server = start(Fake::default().routers().http, limits()).await;
    let length = 80 << 20;
    let head = format!("POST /v1/envelopes HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
    let mut stream = send(server.address, &head).await;
    stream.write_all(&vec![b' '; 20 << 20]).await.unwrap();
    let text = said(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 413") && text.contains("too_large"), "{text}");
}

#[tokio::test]
async fn heads_are_bounded() {
    let server = start(Fake::default().routers().http, limits()).await;
    let head = format!("POST / HTTP/1.1\r\nhost: x\r\nx: {}\r\n\r\n", "y".repeat(200 << 10));
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let _ = stream.write_all(head.as_bytes()).await;
    assert!(response(&mut stream).await.starts_with("HTTP/1.1 431"));
}

#[tokio::test]
async fn connections_over_the_bound_are_closed_and_counted() {
    let server =
        start(Fake::default().routers().http, Limits { head_timeout: Duration::from_secs(9), ..limits() })
            .await;
    let held = [send(server.address, "P").await, send(server.address, "P").await];
    sleep(Duration::from_millis(50)).await;
    let mut third = TcpStream::connect(server.address).await.unwrap();
    assert_eq!(said(&mut third).await, "");
    assert_eq!((server.counters().open(), server.counters().rejected_by(ConnectionLimit::Total)), (2, 1));
    drop(held);
    sleep(Duration::from_millis(50)).await;
    let mut fourth = send(server.address, GOOD).await;
    assert!(response(&mut fourth).await.starts_with("HTTP/1.1 200"));
    assert_eq!(server.counters().opened(), 3);
}

fn slow_router(time: Duration) -> Router {
    let slow = move || async move {
        sleep(time).await;
        "done"
    };
    Router::new().route("/", axum::routing::get(slow))
}

#[tokio::test]
async fn a_shutdown_lets_requests_finish() {
    let server = start(slow_router(Duration::from_millis(100)), limits()).await;
    let mut busy = send(server.address, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let mut idle = send(server.address, "").await;
    sleep(Duration::from_millis(30)).await;
    server.stop.send(()).unwrap();
    assert!(said(&mut busy).await.ends_with("done"));
    let _ = said(&mut idle).await;
    drop((busy, idle));
    timeout(Duration::from_secs(2), server.task).await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn a_shutdown_ends_when_its_time_is_over() {
    let server = start(slow_router(Duration::from_secs(60)), limits()).await;
    let _busy = send(server.address, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    sleep(Duration::from_millis(30)).await;
    server.stop.send(()).unwrap();
    let begin = Instant::now();
    timeout(Duration::from_secs(2), server.task).await.unwrap().unwrap();
    assert!(begin.elapsed() >= Duration::from_millis(290));
    assert_eq!(server.connections.of(ListenerProtocol::OtlpHttp).open(), 0);
}

#[tokio::test]
async fn a_panic_costs_one_connection() {
    let panics = || async { if true { panic!("on purpose") } else { "" } };
    let server = start(Router::new().route("/", axum::routing::get(panics)), limits()).await;
    for _ in 0..4 {
        let mut stream = send(server.address, "GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let _ = stream.read_to_end(&mut Vec::new()).await;
        sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((server.counters().opened(), server.counters().open()), (4, 0));
}

type Client = hyper::client::conn::http2::SendRequest<Body>;

async fn h2(address: SocketAddr) -> Client {
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let (client, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
    tokio::spawn(connection);
    client
}

fn grpc(address: SocketAddr, body: Body) -> http::Request<Body> {
    let uri = format!("http://{address}/opentelemetry.proto.collector.trace.v1.TraceService/Export");
    http::Request::post(uri).header("content-type", "application/grpc").body(body).unwrap()
}

#[tokio::test]
async fn grpc_over_prior_knowledge() {
    let fake = Fake::default();
    let server = start(fake.routers().grpc, limits()).await;
    let mut client = h2(server.address).await;
    // An HTTP/2 connection may be idle from the start.
    sleep(Duration::from_millis(300)).await;
    let message = vec![7; 3 << 20];
    let framed = crate::receivers::grpc_frame::framed(&message);
    let response = client.send_request(grpc(server.address, Body::new(Full::new(framed)))).await.unwrap();
    assert_eq!(response.status(), 200);
    let collected = response.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(collected.to_bytes(), &b"\0\0\0\0\0"[..]);
    assert_eq!(fake.submitted()[0].body, message);

    let rejected = Body::from(&b"\0\x7f\0\0\0"[..]);
    let response = client.send_request(grpc(server.address, rejected)).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "8");
}

#[tokio::test]
async fn a_reset_stream_is_counted() {
    let fake = Fake::default();
    let server = start(fake.routers().grpc, limits()).await;
    let mut client = h2(server.address).await;
    let stalled = crate::receivers::test_support::Script::of([
        crate::receivers::test_support::Step::Data(b"\0\0\0\0\x09a"),
        crate::receivers::test_support::Step::Wait(Duration::from_secs(60)),
    ]);
    let sending = client.send_request(grpc(server.address, Body::new(stalled)));
    let _ = timeout(Duration::from_millis(50), sending).await;
    drop(client);
    sleep(Duration::from_millis(100)).await;
    assert_eq!(fake.rejected(), [(Source::OtlpTraces, RejectionReason::Gone)]);
}

/// A peer that only answers pings cannot hold a connection forever; one that sends requests in time keeps it.
#[tokio::test]
async fn idle_http2_connections_are_closed() {
    let limits = Limits { idle_timeout: Duration::from_millis(300), ..limits() };
    let server = start(slow_router(Duration::ZERO), limits).await;
    let mut client = h2(server.address).await;
    let ask = |client: &mut Client| {
        let request = http::Request::get(format!("http://{}/", server.address)).body(Body::empty()).unwrap();
        client.send_request(request)
    };
    for _ in 0..4 {
        assert_eq!(ask(&mut client).await.unwrap().status(), 200);
        sleep(Duration::from_millis(150)).await;
    }
    let closed = async {
        while server.counters().open() > 0 || !client.is_closed() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(Duration::from_secs(10), closed).await.expect("the connection is closed");
}
