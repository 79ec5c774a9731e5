//! The HTTP server of the listeners: HTTP/1.1 and HTTP/2 on one port, with or without TLS.
//!
//! [`auth::listener`] accepts the connections, limits and counts them, and drains them at shutdown. What must also hold
//! here: a connection that does nothing costs its permit for a bounded time, and health probes have a few connections
//! of their own when all others are taken.

mod timeout_stream;

use crate::Limits;
use auth::listener::{
    Connection, ConnectionHandler, ConnectionLimits, ConnectionStats, Listener, ReserveLimits, serve,
};
use auth::tls::{self, AlpnProtocol, FirstByte, Tls, TlsStream};
use axum::Router;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use timeout_stream::{OpenRequests, TimeoutStream};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tower::Service;

/// The connections that only health probes can use, when the others are taken.
const RESERVE: ReserveLimits = ReserveLimits { total: 16, per_address: 6 };
/// How long a connection of the reserve may take in all: probes send one short request.
const RESERVED_TIME: Duration = Duration::from_secs(2);
/// A silent HTTP/2 peer is asked for a sign of life this often, and has this long to give it.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);
/// A head, and the buffer of an HTTP/1.1 connection.
const HEAD_BYTES: usize = 64 << 10;
/// The head of an HTTP/2 request, decompressed.
const HEADER_LIST_BYTES: u32 = 16 << 10;
/// Requests at a time on one HTTP/2 connection.
const STREAMS: u32 = 256;
/// What an HTTP/2 peer may send ahead: a whole usual batch, without waiting for us.
const WINDOW_BYTES: u32 = 1 << 20;
/// Fewer, larger frames; a whole one is buffered before it is seen.
const FRAME_BYTES: u32 = 64 << 10;
/// The response to a client that speaks HTTP/1.1 without TLS to a listener that requires TLS.
const IN_THE_CLEAR: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\
    {\"error\":{\"code\":\"tls_required\",\"message\":\"this listener speaks TLS\",\"remedy\":\"use https://\"}}\n";

/// How long such a client may go on sending before the connection is closed.
const HEARD_OUT: Duration = Duration::from_secs(1);

/// What it means when a peer closes its side of a connection while it waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HalfClose {
    /// It has said everything, and still wants to know whether that is safe.
    Sender,
    /// It has gone, and nobody is left to read the answer.
    Reader,
}

/// What is served on a listener.
#[derive(Debug, Clone)]
pub struct Routes {
    /// Everything.
    pub all: Router,
    /// What the connections of the reserve are for; without it there is no reserve.
    pub probes: Option<Router>,
}

impl From<Router> for Routes {
    fn from(all: Router) -> Self {
        Self { all, probes: None }
    }
}

/// Serves `routes` on `listener` until `shutdown` is ready. Then no connection is accepted any more, requests
/// that were begun have `Limits::drain` to finish, and what is left is dropped.
pub async fn run(
    listener: Listener,
    routes: impl Into<Routes>,
    peer: HalfClose,
    limits: Limits,
    connections: Arc<ConnectionStats>,
    shutdown: impl Future<Output = ()>,
) {
    let server = HttpServer::new(routes.into(), peer, limits);
    let limits = ConnectionLimits {
        total: limits.connections,
        per_address: limits.connections_per_address,
        reserve: server.reserve.as_ref().map(|_| RESERVE),
        drain: limits.drain,
    };
    serve(listener, limits, server, connections, shutdown).await;
}

/// Serves the connections of one listener.
struct HttpServer {
    /// How usual connections are config.
    usual: ConnectionConfig,
    /// How connections of the reserve are config.
    reserve: Option<ConnectionConfig>,
}

/// How a connection is config.
struct ConnectionConfig {
    router: Router,
    builder: Builder<TokioExecutor>,
    head_timeout: Duration,
    idle_timeout: Duration,
}

impl HttpServer {
    fn new(routes: Routes, peer: HalfClose, limits: Limits) -> Self {
        let idle_timeout = limits.idle_timeout;
        let reserve = routes.probes.map(|router| {
            let mut builder = builder(peer, RESERVED_TIME);
            builder.http1().keep_alive(false);
            let head_timeout = limits.head_timeout.min(RESERVED_TIME);
            ConnectionConfig { router, builder, head_timeout, idle_timeout }
        });
        let (router, builder) = (routes.all, builder(peer, idle_timeout));
        let usual = ConnectionConfig { router, builder, head_timeout: limits.head_timeout, idle_timeout };
        Self { usual, reserve }
    }
}

impl ConnectionHandler for HttpServer {
    async fn handle(self: Arc<Self>, connection: Connection) {
        let Connection { stream, tls, is_reserved, closing, permit: _permit, .. } = connection;
        match self.reserve.as_ref().filter(|_| is_reserved) {
            Some(config) => {
                let served = serve_connection(stream, config, tls, closing);
                drop(timeout(RESERVED_TIME, served).await);
            }
            None => serve_connection(stream, &self.usual, tls, closing).await,
        }
    }
}

/// Serves one connection, after the TLS handshake if there is one.
async fn serve_connection(
    stream: TcpStream,
    config: &ConnectionConfig,
    tls: Option<Arc<Tls>>,
    mut closing: watch::Receiver<bool>,
) {
    // Responses are small and final: waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return serve_stream(stream, config, closing).await };
    let encrypted = tokio::select! {
        encrypted = encrypt(stream, &tls, config.head_timeout) => encrypted,
        _ = closing.wait_for(|closing| *closing) => return,
    };
    match encrypted {
        Ok(stream) => serve_stream(stream, config, closing).await,
        Err(error) => tracing::debug!(%error, "the TLS handshake failed"),
    }
}

/// Performs the TLS handshake. A client that speaks HTTP/1.1 without TLS gets a response that says so.
async fn encrypt(mut stream: TcpStream, tls: &Tls, limit: Duration) -> io::Result<TlsStream<TcpStream>> {
    match timeout(limit, tls::peek_first_byte(&stream)).await?? {
        FirstByte::Handshake => tls.accept(stream, AlpnProtocol::Http, limit).await,
        FirstByte::Nothing => Err(io::ErrorKind::UnexpectedEof.into()),
        FirstByte::Other => {
            tls.count_failure();
            timeout(limit, send_and_close(&mut stream, IN_THE_CLEAR.as_bytes())).await??;
            Err(io::Error::new(io::ErrorKind::InvalidData, "the client does not speak TLS"))
        }
    }
}

/// Sends a response, and reads what still comes for a moment: a plain close would reset the connection before the
/// client has read the response.
async fn send_and_close(stream: &mut TcpStream, text: &[u8]) -> io::Result<()> {
    stream.write_all(text).await?;
    stream.shutdown().await?;
    let hear_out = async {
        let mut scrap = [0; 4096];
        while stream.read(&mut scrap).await.is_ok_and(|read| read > 0) {}
    };
    drop(timeout(HEARD_OUT, hear_out).await);
    Ok(())
}

async fn serve_stream<S>(stream: S, config: &ConnectionConfig, mut closing: watch::Receiver<bool>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let heads = Arc::new(OpenRequests::default());
    let io = TokioIo::new(TimeoutStream::new(
        stream,
        config.head_timeout,
        config.idle_timeout,
        Arc::clone(&heads),
    ));
    let (router, begun) = (config.router.clone(), Arc::clone(&heads));
    let service = hyper::service::service_fn(move |request: http::Request<Incoming>| {
        let open = begun.begin();
        let answer = router.clone().call(request);
        async move {
            let answer = answer.await;
            drop(open);
            answer
        }
    });
    let mut connection = pin!(config.builder.serve_connection(io, service));
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = heads.idle_for(config.idle_timeout) => None,
        // An error means that the server has gone already.
        _ = closing.wait_for(|closing| *closing) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            // What was begun is finished, and nothing new is taken.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // An error here is about the peer, whose requests were counted by their receiver.
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended");
    }
}

fn builder(peer: HalfClose, idle: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .half_close(peer == HalfClose::Sender)
        // The stream itself watches heads that have begun; this bounds the wait for their first byte.
        .header_read_timeout(idle)
        .max_buf_size(HEAD_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEADER_LIST_BYTES)
        .max_frame_size(FRAME_BYTES)
        .initial_stream_window_size(WINDOW_BYTES)
        .initial_connection_window_size(WINDOW_BYTES);
    builder
}

#[cfg(test)]
mod tests;
