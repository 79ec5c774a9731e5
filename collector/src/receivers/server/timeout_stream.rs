//! The stream of a connection, with timeouts for peers that hold it without sending or reading.
//!
//! hyper times a request head from the moment a connection becomes idle, so one timeout would have to serve both idle
//! and slow peers. Here a head is timed from its first byte. When hyper closes a connection whose sender is still
//! writing (a body that was rejected unread), further input is read and discarded for a moment: closing at once would
//! reset the connection, and the sender would never see the reason. A peer that does not read its responses is
//! disconnected after a while.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The first bytes of every HTTP/2 connection.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A closed connection is read for at most this time and this many bytes, so that the peer can read its response.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 64 << 20;

/// The number of requests of one connection that were begun, and the number that were answered.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    begun: AtomicU64,
    answered: AtomicU64,
}

/// An open request; it counts as answered when this is dropped.
pub(super) struct RequestGuard(Arc<OpenRequests>);

impl OpenRequests {
    pub(super) fn begin(self: &Arc<Self>) -> RequestGuard {
        self.begun.fetch_add(1, Ordering::AcqRel);
        RequestGuard(Arc::clone(self))
    }

    /// Waits until no request is open and none has begun for `idle`; it may notice this up to one more `idle` later.
    pub(super) async fn idle_for(&self, idle: Duration) {
        loop {
            let before = self.begun();
            sleep(idle).await;
            if self.begun() == before && !self.any_open() {
                return;
            }
        }
    }

    fn begun(&self) -> u64 {
        self.begun.load(Ordering::Acquire)
    }

    fn any_open(&self) -> bool {
        self.answered.load(Ordering::Acquire) < self.begun()
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.0.answered.fetch_add(1, Ordering::AcqRel);
    }
}

/// The protocol of the peer.
enum DetectedProtocol {
    /// Only this many bytes of the HTTP/2 preface have arrived so far.
    Unknown(usize),
    Http1,
    /// HTTP/2, for which hyper's pings detect silent peers.
    Http2,
}

pub(super) struct TimeoutStream<S> {
    stream: S,
    spoken: DetectedProtocol,
    head_timeout: Duration,
    heads: Arc<OpenRequests>,
    /// The number of requests that had begun at the last check: an increase means that a head is complete.
    begun: u64,
    /// The timer of an incomplete request head; boxed because hyper requires streams that are `Unpin`.
    overdue: Option<Pin<Box<Sleep>>>,
    lingering: Option<LingeringClose>,
    /// The longest time that a write may wait for the peer to read.
    stall_timeout: Duration,
    /// The timer of a write that waits.
    stalled: Option<Pin<Box<Sleep>>>,
}

struct LingeringClose {
    until: Pin<Box<Sleep>>,
    left: usize,
}

impl<S> TimeoutStream<S> {
    pub(super) fn new(
        stream: S,
        head_timeout: Duration,
        stall_timeout: Duration,
        heads: Arc<OpenRequests>,
    ) -> Self {
        // A new connection must send its first head at once, so the timer starts now.
        let overdue = Some(Box::pin(sleep(head_timeout)));
        Self {
            stream,
            spoken: DetectedProtocol::Unknown(0),
            head_timeout,
            heads,
            begun: 0,
            overdue,
            lingering: None,
            stall_timeout,
            stalled: None,
        }
    }

    /// Stops the timer of the head if a request has begun since the last check.
    fn look(&mut self) {
        let begun = self.heads.begun();
        if begun != self.begun {
            self.begun = begun;
            self.overdue = None;
        }
    }

    fn poll_overdue(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.look();
        let Some(overdue) = &mut self.overdue else { return Poll::Pending };
        ready!(overdue.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "the head of a request did not come in time",
        )))
    }

    /// Returns the result of a write, or an error if the peer has not read for too long.
    fn unless_stalled<T>(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let stall_timeout = self.stall_timeout;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(stall_timeout)));
        ready!(stalled.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read what it is sent")))
    }

    /// Processes bytes that were read: starts the timer of a request head, unless a request is open or the peer uses
    /// HTTP/2.
    fn note(&mut self, came: &[u8]) {
        if let DetectedProtocol::Unknown(seen) = self.spoken {
            self.spoken = match PREFACE.get(seen..).and_then(|rest| rest.get(..came.len().min(rest.len()))) {
                Some(expected) if came.starts_with(expected) && expected.len() + seen < PREFACE.len() => {
                    DetectedProtocol::Unknown(seen + came.len())
                }
                Some(expected) if came.starts_with(expected) => DetectedProtocol::Http2,
                _ => DetectedProtocol::Http1,
            };
        }
        self.look();
        if matches!(self.spoken, DetectedProtocol::Http2) || self.heads.any_open() || came.is_empty() {
            self.overdue = None;
        } else if self.overdue.is_none() {
            self.overdue = Some(Box::pin(sleep(self.head_timeout)));
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Ready(Ok(())) => {
                self.note(buffer.filled().get(before..).unwrap_or_default());
                Poll::Ready(Ok(()))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => self.poll_overdue(cx),
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TimeoutStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.unless_stalled(cx, written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.unless_stalled(cx, flushed)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.unless_stalled(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.lingering = Some(LingeringClose { until: Box::pin(sleep(LINGER)), left: LINGER_BYTES });
        }
        let Self { stream, lingering, .. } = &mut *self;
        match lingering {
            Some(lingering) => lingering.poll(stream, cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

impl LingeringClose {
    /// Completes when the peer has closed its side too, or the limit of time or bytes is reached.
    fn poll(&mut self, stream: &mut (impl AsyncRead + Unpin), cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut scrap = [0; 16 << 10];
        while self.left > 0 && self.until.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut scrap);
            if ready!(Pin::new(&mut *stream).poll_read(cx, &mut buffer)).is_err()
                || buffer.filled().is_empty()
            {
                break;
            }
            self.left = self.left.saturating_sub(buffer.filled().len());
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    #[tokio::test]
    async fn a_peer_that_does_not_read_is_let_go() {
        let (ours, mut theirs) = duplex(16);
        let minute = Duration::from_secs(60);
        let mut timeout_stream = TimeoutStream::new(ours, minute, Duration::from_millis(200), Arc::default());
        timeout_stream.write_all(&[7; 16]).await.unwrap();
        theirs.read_exact(&mut [0; 16]).await.unwrap();
        timeout_stream.write_all(&[7; 16]).await.unwrap();
        let error = timeout_stream.write_all(&[7]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
