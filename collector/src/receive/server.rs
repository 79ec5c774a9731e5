//! Connections: accepts them, encrypts them, bounds them, drains them. HTTP/1.1 and HTTP/2 on one port.
//!
//! What must always hold: there are never more than `Limits::connections` of them; one that does nothing costs
//! its slot for a bounded time; a failing `accept` never spins; and a shutdown ends within `Limits::drain`.

mod watched;

use crate::Limits;
use access::tls::{self, Listener, Protocol, Tls, TlsStream};
use axum::Router;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tower::Service;
use watched::{Heads, Watched};

/// An idle HTTP/1.1 connection is kept this long: exporters send every few seconds, or once a minute.
const IDLE: Duration = Duration::from_secs(75);
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
    refused: AtomicU64,
    accept_errors: AtomicU64,
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

    /// Closed at once because `Limits::connections` were open.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
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

/// Serves `router` on `listener` until `shutdown` is ready. Then no connection is accepted any more, requests
/// that were begun have `Limits::drain` to finish, and what is left is dropped.
pub async fn run(
    listener: Listener,
    router: Router,
    peer: Peer,
    limits: Limits,
    connections: Arc<Connections>,
    shutdown: impl Future<Output = ()>,
) {
    let Listener { socket, tls } = listener;
    let mut server = Server::new(router, peer, limits, connections, tls);
    tokio::pin!(shutdown);
    tokio::select! {
        () = &mut shutdown => {}
        () = server.accept_all(&socket) => {}
    }
    drop(socket);
    server.drain(limits.drain).await;
}

struct Server {
    router: Router,
    limits: Limits,
    builder: Arc<Builder<TokioExecutor>>,
    slots: Arc<Semaphore>,
    connections: Arc<Connections>,
    tls: Option<Arc<Tls>>,
    graceful: GracefulShutdown,
    tasks: JoinSet<()>,
}

impl Server {
    fn new(
        router: Router,
        peer: Peer,
        limits: Limits,
        connections: Arc<Connections>,
        tls: Option<Arc<Tls>>,
    ) -> Self {
        Self {
            router,
            limits,
            builder: Arc::new(builder(peer)),
            slots: Arc::new(Semaphore::new(limits.connections)),
            connections,
            tls,
            graceful: GracefulShutdown::new(),
            tasks: JoinSet::new(),
        }
    }

    async fn accept_all(&mut self, listener: &TcpListener) {
        let mut pause = BACK_OFF.0;
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    pause = BACK_OFF.0;
                    self.open(stream);
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

    /// Over the bound, a connection is closed at once: the cheapest answer there is.
    fn open(&mut self, stream: TcpStream) {
        let Ok(slot) = Arc::clone(&self.slots).try_acquire_owned() else {
            self.connections.refused.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.connections.opened.fetch_add(1, Ordering::Relaxed);
        let open = Open { _slot: slot, connections: Arc::clone(&self.connections) };
        let connection = serve(
            stream,
            self.router.clone(),
            Arc::clone(&self.builder),
            self.limits,
            self.graceful.watcher(),
            self.tls.clone(),
        );
        self.tasks.spawn(async move {
            connection.await;
            drop(open);
        });
    }

    async fn drain(mut self, limit: Duration) {
        if timeout(limit, self.graceful.shutdown()).await.is_err() {
            tracing::warn!(open = self.connections.open(), ?limit, "connections dropped at shutdown");
        }
        self.tasks.shutdown().await;
    }
}

/// Gives its slot back and is counted as closed however the connection ends.
struct Open {
    _slot: OwnedSemaphorePermit,
    connections: Arc<Connections>,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.connections.closed.fetch_add(1, Ordering::Relaxed);
    }
}

/// One connection, encrypted if that is wanted; [`serve_stream`] does not notice.
async fn serve(
    stream: TcpStream,
    router: Router,
    builder: Arc<Builder<TokioExecutor>>,
    limits: Limits,
    watcher: Watcher,
    tls: Option<Arc<Tls>>,
) {
    // Answers are small and final: waiting to fill a packet only delays them.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else { return serve_stream(stream, router, &builder, limits, watcher).await };
    match encrypt(stream, &tls, limits.head_timeout).await {
        Ok(stream) => serve_stream(stream, router, &builder, limits, watcher).await,
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

async fn serve_stream<S>(
    stream: S,
    router: Router,
    builder: &Builder<TokioExecutor>,
    limits: Limits,
    watcher: Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let heads = Arc::new(Heads::default());
    let io = TokioIo::new(Watched::new(stream, limits.head_timeout, Arc::clone(&heads)));
    let service = hyper::service::service_fn(move |request: http::Request<Incoming>| {
        let open = heads.begin();
        let answer = router.clone().call(request);
        async move {
            let answer = answer.await;
            drop(open);
            answer
        }
    });
    // An error here is about the peer, whose requests were counted by their receiver.
    if let Err(error) = watcher.watch(builder.serve_connection(io, service)).await {
        tracing::debug!(%error, "connection ended");
    }
}

fn builder(peer: Peer) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .half_close(peer == Peer::Sender)
        // The stream itself watches heads that have begun; this bounds the wait for their first byte.
        .header_read_timeout(IDLE)
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
