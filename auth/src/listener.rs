//! The accept loop of every listener: it accepts connections, limits and counts them, and drains them at shutdown.
//!
//! A [`ConnectionHandler`] implements the protocol of a connection. The handler also performs the TLS handshake, with
//! [`Tls::accept`], because PostgreSQL clients negotiate TLS inside their protocol.
//!
//! Invariants:
//!
//! - A listener never has more connections than its [`ConnectionLimits`], in total and from one address.
//! - Every connection is counted as opened once and as closed once, however it ends.
//! - An `accept` that fails never makes the loop spin.
//! - A shutdown ends within [`ConnectionLimits::drain`].

mod stats;

use crate::tls::Tls;
use crate::{ConnectionLimit, ConnectionLimiter, ConnectionPermit};
pub use stats::{ConnectionStats, ProtocolStats};
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{sleep, timeout};

/// The first and the longest pause after a failed `accept`. When the process has no file handles left, only waiting
/// helps.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// The protocol of a listener. This is a closed list, which metrics use as a label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListenerProtocol {
    /// OTLP over gRPC.
    OtlpGrpc,
    /// OTLP and envelopes over HTTP.
    OtlpHttp,
    /// The web endpoint: SQL over HTTP, the web page, health, status and metrics.
    Web,
    /// SQL over the `PostgreSQL` protocol.
    Postgres,
    /// SQL over Arrow Flight.
    Flight,
}

impl ListenerProtocol {
    /// Every protocol.
    pub const ALL: [Self; 5] = [Self::OtlpGrpc, Self::OtlpHttp, Self::Web, Self::Postgres, Self::Flight];

    /// Returns the name of the listener, as it appears in `endpoints.json` and the metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OtlpGrpc => "otlp_grpc",
            Self::OtlpHttp => "otlp_http",
            Self::Web => "web",
            Self::Postgres => "postgres",
            Self::Flight => "flight",
        }
    }
}

/// A listening socket and its TLS configuration.
#[derive(Debug)]
pub struct Listener {
    /// The protocol of the socket.
    pub protocol: ListenerProtocol,
    /// The listening socket.
    pub socket: TcpListener,
    /// The TLS configuration, or `None` if connections are not encrypted.
    pub tls: Option<Arc<Tls>>,
}

/// The limits on the number of connections of a listener, and on the time that they may take to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// The maximum number of connections.
    pub total: usize,
    /// The maximum number of connections from one address.
    pub per_address: usize,
    /// Additional connections that are admitted when a limit is reached; the handler decides what they may do.
    pub reserve: Option<ReserveLimits>,
    /// The time that open connections have to end when the server stops. Then they are dropped.
    pub drain: Duration,
}

/// The limits on the number of connections in the reserve of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReserveLimits {
    /// The maximum number of connections.
    pub total: usize,
    /// The maximum number of connections from one address.
    pub per_address: usize,
}

/// A connection that was accepted and has not been read yet.
#[derive(Debug)]
pub struct Connection {
    /// The connected socket.
    pub stream: TcpStream,
    /// The address of the client.
    pub address: IpAddr,
    /// True if the connection belongs to the reserve.
    pub is_reserved: bool,
    /// The TLS configuration, or `None` if the connection is not encrypted.
    pub tls: Option<Arc<Tls>>,
    /// The permit of the listener. Dropping it early allows another connection.
    pub permit: ConnectionPermit,
    /// Becomes true when the server stops and the connection should end.
    pub closing: watch::Receiver<bool>,
}

/// Serves the connections of one listener.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// Serves one connection until it ends.
    fn handle(self: Arc<Self>, connection: Connection) -> impl Future<Output = ()> + Send;
}

/// Serves the connections of `listener` until `shutdown` completes. Then no more are accepted, open connections have
/// [`ConnectionLimits::drain`] to end, and the remaining ones are dropped.
pub async fn serve<H: ConnectionHandler>(
    listener: Listener,
    limits: ConnectionLimits,
    handler: H,
    stats: Arc<ConnectionStats>,
    shutdown: impl Future<Output = ()>,
) {
    let Listener { protocol, socket, tls } = listener;
    let mut accept_loop = AcceptLoop {
        handler: Arc::new(handler),
        protocol,
        tls,
        limiter: ConnectionLimiter::new(limits.total, limits.per_address),
        reserve: limits.reserve.map(|reserve| ConnectionLimiter::new(reserve.total, reserve.per_address)),
        stats,
        closing: watch::Sender::new(false),
        tasks: JoinSet::new(),
    };
    tokio::pin!(shutdown);
    tokio::select! {
        () = &mut shutdown => {}
        () = accept_loop.accept_all(&socket) => {}
    }
    drop(socket);
    accept_loop.drain(limits.drain).await;
}

struct AcceptLoop<H> {
    handler: Arc<H>,
    protocol: ListenerProtocol,
    tls: Option<Arc<Tls>>,
    limiter: Arc<ConnectionLimiter>,
    reserve: Option<Arc<ConnectionLimiter>>,
    stats: Arc<ConnectionStats>,
    closing: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl<H: ConnectionHandler> AcceptLoop<H> {
    async fn accept_all(&mut self, socket: &TcpListener) {
        let mut pause = BACK_OFF.0;
        loop {
            let accepted = tokio::select! {
                accepted = socket.accept() => accepted,
                Some(ended) = self.tasks.join_next() => {
                    report_panic(ended);
                    continue;
                }
            };
            match accepted {
                Ok((stream, peer)) => {
                    pause = BACK_OFF.0;
                    self.open(stream, peer.ip());
                }
                // The client disconnected before it was accepted, which is not an error of the server.
                Err(error) if is_disconnect(&error) => {}
                Err(error) => {
                    self.stats.of(self.protocol).count_accept_error();
                    let protocol = self.protocol.as_str();
                    tracing::warn!(%error, ?pause, protocol, "cannot accept connections");
                    sleep(pause).await;
                    pause = (pause * 2).min(BACK_OFF.1);
                }
            }
        }
    }

    /// Starts to serve a connection. When a limit is reached and the reserve is also full, the connection is closed at
    /// once, which is the cheapest response.
    fn open(&mut self, stream: TcpStream, address: IpAddr) {
        let stats = self.stats.of(self.protocol);
        let (permit, is_reserved) = match self.permit(address) {
            Ok(permit) => permit,
            Err(limit) => return stats.count_rejection(limit),
        };
        if is_reserved {
            stats.count_reserved();
        }
        let guard = OpenGuard::new(Arc::clone(&self.stats), self.protocol);
        let (tls, closing) = (self.tls.clone(), self.closing.subscribe());
        let connection = Connection { stream, address, is_reserved, tls, permit, closing };
        let handled = Arc::clone(&self.handler).handle(connection);
        self.tasks.spawn(async move {
            handled.await;
            drop(guard);
        });
    }

    /// Returns a permit, and true if the permit belongs to the reserve.
    fn permit(&self, address: IpAddr) -> Result<(ConnectionPermit, bool), ConnectionLimit> {
        self.limiter.try_acquire(address).map(|permit| (permit, false)).or_else(|limit| {
            let reserved = self.reserve.as_ref().and_then(|reserve| reserve.try_acquire(address).ok());
            reserved.map(|permit| (permit, true)).ok_or(limit)
        })
    }

    async fn drain(mut self, limit: Duration) {
        self.closing.send_replace(true);
        let drained = async {
            while let Some(ended) = self.tasks.join_next().await {
                report_panic(ended);
            }
        };
        if timeout(limit, drained).await.is_err() {
            let (protocol, open) = (self.protocol.as_str(), self.tasks.len());
            tracing::warn!(protocol, open, ?limit, "connections dropped at shutdown");
        }
        self.tasks.shutdown().await;
    }
}

/// Counts a connection as opened when it is made, and as closed when it is dropped.
struct OpenGuard {
    stats: Arc<ConnectionStats>,
    protocol: ListenerProtocol,
}

impl OpenGuard {
    fn new(stats: Arc<ConnectionStats>, protocol: ListenerProtocol) -> Self {
        stats.of(protocol).count_opened();
        Self { stats, protocol }
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.stats.of(self.protocol).count_closed();
    }
}

fn report_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection ended unexpectedly");
    }
}

fn is_disconnect(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests;
