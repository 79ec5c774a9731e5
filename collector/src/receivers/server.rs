//! The HTTP server of the listeners: HTTP/1.1 and HTTP/2 on one port, with or without TLS.
//!
//! [`auth::listener`] accepts the connections, limits and counts them, and drains them at shutdown. This module adds
//! two invariants: an idle connection holds its permit for a bounded time only, and a few connections are reserved for
//! health probes when all others are taken.

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

/// The number of connections that only health probes can use when all others are taken.
const RESERVE: ReserveLimits = ReserveLimits { total: 16, per_address: 6 };
/// The longest time that a reserved connection may stay open: probes send one short request.
const RESERVED_TIME: Duration = Duration::from_secs(2);
/// The interval of HTTP/2 keep-alive pings, and the time that a peer has to answer one.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(20);
/// The size of the buffer of an HTTP/1.1 connection, and so the largest request head.
const HEAD_BYTES: usize = 64 << 10;
/// The largest head of an HTTP/2 request, decompressed.
const HEADER_LIST_BYTES: u32 = 16 << 10;
/// The number of concurrent requests on one HTTP/2 connection.
const STREAMS: u32 = 256;
/// The HTTP/2 flow-control window: a peer can send a whole batch of the usual size without waiting.
const WINDOW_BYTES: u32 = 1 << 20;
/// The largest HTTP/2 frame. Larger frames are fewer, but each is buffered whole before it is processed.
const FRAME_BYTES: u32 = 64 << 10;
/// The response to a client that speaks HTTP/1.1 without TLS to a listener that requires TLS.
const IN_THE_CLEAR: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\
    {\"error\":{\"code\":\"tls_required\",\"message\":\"this listener speaks TLS\",\"remedy\":\"use https://\"}}\n";

/// The time such a client may keep sending before the connection is closed.
const HEARD_OUT: Duration = Duration::from_secs(1);

/// The meaning of a peer that closes its side of a connection while it waits for a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HalfClose {
    /// The peer has sent everything and still waits for the acknowledgement.
    Sender,
    /// The peer has disconnected and will not read the response.
    Reader,
}

/// The routes of a listener.
#[derive(Debug, Clone)]
pub struct Routes {
    /// All routes.
    pub all: Router,
    /// The routes of reserved connections; without them no connections are reserved.
    pub probes: Option<Router>,
}

impl From<Router> for Routes {
    fn from(all: Router) -> Self {
        Self { all, probes: None }
    }
}

/// Serves `routes` on `listener` until `shutdown` completes. Then it accepts no more connections, gives open requests
/// the time `Limits::drain` to finish, and drops the rest.
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
    /// The config of ordinary connections.
    usual: ConnectionConfig,
    /// The config of reserved connections.
    reserve: Option<ConnectionConfig>,
}

/// The router, protocol settings and timeouts of a connection.
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

/// Sends a response, then reads and discards input for a moment: closing at once would reset the connection before the
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
        let response = router.clone().call(request);
        async move {
            let response = response.await;
            drop(open);
            response
        }
    });
    let mut connection = pin!(config.builder.serve_connection(io, service));
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = heads.idle_for(config.idle_timeout) => None,
        // An error means that the server no longer exists.
        _ = closing.wait_for(|closing| *closing) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            // Open requests are finished, and no new ones are accepted.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    // An error here concerns only the peer; its requests were counted by their receiver.
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
        // `TimeoutStream` times request heads that have begun; this bounds the wait for their first byte.
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
