//! Connections: accepts them, encrypts them, bounds them, drains them. HTTP/1.1 and HTTP/2 on one port.
//!
//! What must always hold: there are never more than `Limits::connections` of them, and of one address never more than
//! `Limits::connections_per_address`; one that does nothing costs its slot for a bounded time; probes have a few
//! connections of their own when all others are taken; a failing `accept` never spins; and a shutdown ends within
//! `Limits::drain`.

mod watched;

use crate::Limits;
use access::tls::{self, Listener, Protocol, Tls, TlsStream};
use access::{PeerSlot, Peers};
use axum::Router;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::Service;
use watched::{Heads, Watched};

/// Connections that only probes can use, when the others are taken.
const RESERVED: usize = 16;
/// Of these, connections of one address.
const RESERVED_OF_ADDRESS: usize = 6;
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
/// The pause after a failed `accept`: doubles up to the second. Out of file handles, only time helps.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(1));

/// What a client is told that does not encrypt where it has to.
const IN_THE_CLEAR: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\
    {\"error\":{\"code\":\"tls_required\",\"message\":\"this listener speaks TLS\",\"remedy\":\"use https://\"}}\n";

/// How long such a client may go on before it has read that.
const HEARD_OUT: Duration = Duration::from_secs(1);

/// What became of connections. Shared with whoever exports it.
#[derive(Debug, Default)]
pub struct Connections {
    opened: AtomicU64,
    closed: AtomicU64,
    refused: [AtomicU64; Full::ALL.len()],
    reserved: AtomicU64,
    accept_errors: AtomicU64,
}

/// Why there is no place for a connection: a closed list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Full {
    /// `Limits::connections` are open.
    Total,
    /// `Limits::connections_per_address` of its address are.
    Address,
}

impl Full {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Total, Self::Address];

    /// A short, stable word: a metric label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Total => "total",
            Self::Address => "address",
        }
    }
}

impl Connections {
    /// Opened since the start.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.opened.load(Ordering::Relaxed)
    }

    /// Open now.
    #[must_use]
    pub fn open(&self) -> u64 {
        let closed = self.closed.load(Ordering::Relaxed);
        self.opened().saturating_sub(closed)
    }

    /// Closed at once because there were too many.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused_by_reason().iter().map(|(_, count)| count).sum()
    }

    /// The same by why.
    #[must_use]
    pub fn refused_by_reason(&self) -> [(Full, u64); Full::ALL.len()] {
        Full::ALL.map(|full| (full, self.refused[full as usize].load(Ordering::Relaxed)))
    }

    /// Let into the reserve of probes because there were too many.
    #[must_use]
    pub fn reserved(&self) -> u64 {
        self.reserved.load(Ordering::Relaxed)
    }

    /// Times that the system could not hand over a connection.
    #[must_use]
    pub fn accept_errors(&self) -> u64 {
        self.accept_errors.load(Ordering::Relaxed)
    }
}

/// What it means when a peer closes its side of a connection while it waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Peer {
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
    peer: Peer,
    limits: Limits,
    connections: Arc<Connections>,
    shutdown: impl Future<Output = ()>,
) {
    let Listener { socket, tls } = listener;
    let mut server = Server::new(routes.into(), peer, limits, connections, tls);
    tokio::pin!(shutdown);
    tokio::select! {
        () = &mut shutdown => {}
        () = server.accept_all(&socket) => {}
    }
    drop(socket);
    server.drain(limits.drain).await;
}

struct Server {
    /// How usual connections are served, and those of the reserve.
    usual: Arc<Served>,
    reserve: Option<Arc<Served>>,
    slots: Arc<Semaphore>,
    peers: Arc<Peers>,
    reserved: Arc<Semaphore>,
    /// Who has the reserve.
    reserved_peers: Arc<Peers>,
    connections: Arc<Connections>,
    tls: Option<Arc<Tls>>,
    /// Turns true when connections are to end.
    closing: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

/// How a connection is served.
struct Served {
    router: Router,
    builder: Builder<TokioExecutor>,
    head_timeout: Duration,
    idle_timeout: Duration,
    closing: watch::Receiver<bool>,
}

impl Server {
    fn new(
        routes: Routes,
        peer: Peer,
        limits: Limits,
        connections: Arc<Connections>,
        tls: Option<Arc<Tls>>,
    ) -> Self {
        let (closing, is_closing) = watch::channel(false);
        let served = |router: Router, builder: Builder<TokioExecutor>, head_timeout: Duration| Served {
            router,
            builder,
            head_timeout,
            idle_timeout: limits.idle_timeout,
            closing: is_closing.clone(),
        };
        let reserve = routes.probes.map(|probes| {
            let mut builder = builder(peer, RESERVED_TIME);
            builder.http1().keep_alive(false);
            Arc::new(served(probes, builder, limits.head_timeout.min(RESERVED_TIME)))
        });
        Self {
            usual: Arc::new(served(routes.all, builder(peer, limits.idle_timeout), limits.head_timeout)),
            reserve,
            slots: Arc::new(Semaphore::new(limits.connections)),
            peers: Peers::new(limits.connections_per_address),
            reserved: Arc::new(Semaphore::new(RESERVED)),
            reserved_peers: Peers::new(RESERVED_OF_ADDRESS),
            connections,
            tls,
            closing,
            tasks: JoinSet::new(),
        }
    }

    async fn accept_all(&mut self, listener: &TcpListener) {
        let mut pause = BACK_OFF.0;
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    pause = BACK_OFF.0;
                    self.open(stream, peer.ip());
                }
                // The peer had gone before we looked: nothing is wrong here.
                Err(error) if is_about_peer(&error) => {}
                Err(error) => {
                    self.connections.accept_errors.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(%error, ?pause, "cannot accept connections");
                    sleep(pause).await;
                    pause = (pause * 2).min(BACK_OFF.1);
                }
            }
            while self.tasks.try_join_next().is_some() {}
        }
    }

    /// Over the bounds, a connection is closed at once, which is the cheapest answer there is; unless there is a reserve
    /// for it.
    fn open(&mut self, stream: TcpStream, address: IpAddr) {
        let (slot, served) = match (self.slot(address), &self.reserve) {
            (Ok(slot), _) => (slot, &self.usual),
            (Err(full), reserve) => {
                let Some((served, slot)) = reserve.as_ref().zip(self.reserved_slot(address)) else {
                    self.connections.refused[full as usize].fetch_add(1, Ordering::Relaxed);
                    return;
                };
                self.connections.reserved.fetch_add(1, Ordering::Relaxed);
                (slot, served)
            }
        };
        self.connections.opened.fetch_add(1, Ordering::Relaxed);
        let is_reserved = slot.is_reserved;
        let open = Open { _slot: slot, connections: Arc::clone(&self.connections) };
        let connection = serve(stream, Arc::clone(served), self.tls.clone());
        self.tasks.spawn(async move {
            if is_reserved {
                drop(timeout(RESERVED_TIME, connection).await);
            } else {
                connection.await;
            }
            drop(open);
        });
    }

    fn slot(&self, address: IpAddr) -> Result<Slot, Full> {
        let peer = self.peers.enter(address).ok_or(Full::Address)?;
        let slot = Arc::clone(&self.slots).try_acquire_owned().map_err(|_| Full::Total)?;
        Ok(Slot { is_reserved: false, _held: (slot, peer) })
    }

    /// A place of the reserve: no address may hold all of that either.
    fn reserved_slot(&self, address: IpAddr) -> Option<Slot> {
        let peer = self.reserved_peers.enter(address)?;
        let slot = Arc::clone(&self.reserved).try_acquire_owned().ok()?;
        Some(Slot { is_reserved: true, _held: (slot, peer) })
    }

    async fn drain(mut self, limit: Duration) {
        self.closing.send_replace(true);
        let drained = async { while self.tasks.join_next().await.is_some() {} };
        if timeout(limit, drained).await.is_err() {
            tracing::warn!(open = self.connections.open(), ?limit, "connections dropped at shutdown");
        }
        self.tasks.shutdown().await;
    }
}

/// The place of a connection, given back when it is dropped.
struct Slot {
    is_reserved: bool,
    _held: (OwnedSemaphorePermit, PeerSlot),
}

/// Gives its slot back and is counted as closed however the connection ends.
struct Open {
    _slot: Slot,
    connections: Arc<Connections>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connections.closed.fetch_add(1, Ordering::Relaxed);
    }
}

/// One connection, encrypted if that is wanted; [`serve_stream`] does not notice.
async fn serve(stream: TcpStream, served: Arc<Served>, tls: Option<Arc<Tls>>) {
    // Answers are small and final: waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return serve_stream(stream, &served).await };
    let mut closing = served.closing.clone();
    let encrypted = tokio::select! {
        encrypted = encrypt(stream, &tls, served.head_timeout) => encrypted,
        _ = closing.wait_for(|closing| *closing) => return,
    };
    match encrypted {
        Ok(stream) => serve_stream(stream, &served).await,
        Err(error) => tracing::debug!(%error, "a connection could not be encrypted"),
    }
}

/// Shakes hands. Whoever speaks HTTP/1.1 in the clear is told in its own words what is wrong.
async fn encrypt(mut stream: TcpStream, tls: &Tls, limit: Duration) -> io::Result<TlsStream<TcpStream>> {
    let mut first = [0];
    if timeout(limit, stream.peek(&mut first)).await?? == 0 {
        // A probe that only wants to know whether somebody listens.
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    if first != [tls::FIRST_BYTE] {
        tls.count_failure();
        timeout(limit, tell(&mut stream, IN_THE_CLEAR.as_bytes())).await??;
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the peer does not speak TLS"));
    }
    tls.accept(stream, Protocol::Http, limit).await
}

/// Says something, and hears the peer out for a moment: a plain close would reset the connection before it is read.
async fn tell(stream: &mut TcpStream, text: &[u8]) -> io::Result<()> {
    stream.write_all(text).await?;
    stream.shutdown().await?;
    let hear_out = async {
        let mut scrap = [0; 4096];
        while stream.read(&mut scrap).await.is_ok_and(|read| read > 0) {}
    };
    drop(timeout(HEARD_OUT, hear_out).await);
    Ok(())
}

async fn serve_stream<S>(stream: S, served: &Served)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let heads = Arc::new(Heads::default());
    let io = TokioIo::new(Watched::new(stream, served.head_timeout, served.idle_timeout, Arc::clone(&heads)));
    let (router, begun) = (served.router.clone(), Arc::clone(&heads));
    let service = hyper::service::service_fn(move |request: http::Request<Incoming>| {
        let open = begun.begin();
        let answer = router.clone().call(request);
        async move {
            let answer = answer.await;
            drop(open);
            answer
        }
    });
    let mut connection = pin!(served.builder.serve_connection(io, service));
    let mut closing = served.closing.clone();
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = heads.idle_for(served.idle_timeout) => None,
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

fn builder(peer: Peer, idle: Duration) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .half_close(peer == Peer::Sender)
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

fn is_about_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

#[cfg(test)]
mod tests;
