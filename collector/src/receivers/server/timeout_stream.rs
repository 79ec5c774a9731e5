//! A connection's stream, `timeout_stream` for senders that hold it without sending.
//!
//! hyper times a head from the moment a connection falls idle, so one bound would have to serve both the idle
//! and the slow. Here a head is timed from its first byte. And when hyper closes a connection whose sender is
//! still writing (a body that was refused unread), what still comes is read and dropped for a moment: a plain
//! close would reset the connection, and the sender would never see why it was refused. A peer that does not read what
//! it is sent is let go after a while.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// How HTTP/2 begins.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A closed connection is read for this long, or this much, so that its answer is seen.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = 64 << 20;

/// Requests of one connection: how many were begun, and how many of those were answered.
#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    begun: AtomicU64,
    answered: AtomicU64,
}

/// A request that is being answered.
pub(super) struct RequestGuard(Arc<OpenRequests>);

impl OpenRequests {
    pub(super) fn begin(self: &Arc<Self>) -> RequestGuard {
        self.begun.fetch_add(1, Ordering::AcqRel);
        RequestGuard(Arc::clone(self))
    }

    /// Is ready when no request is open and none was begun for this long, or up to twice as long.
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

/// What the peer speaks.
enum DetectedProtocol {
    /// So many bytes of the preface came, and nothing else.
    Unknown(usize),
    Http1,
    /// Its frames are `timeout_stream` by hyper's pings.
    Http2,
}

pub(super) struct TimeoutStream<S> {
    stream: S,
    spoken: DetectedProtocol,
    head_timeout: Duration,
    heads: Arc<OpenRequests>,
    /// The requests that had begun when we last looked: one more means that a head is complete.
    begun: u64,
    /// Runs while a head is overdue; boxed because hyper wants streams that can move.
    overdue: Option<Pin<Box<Sleep>>>,
    lingering: Option<LingeringClose>,
    /// How long the peer may leave what we write unread.
    stall_timeout: Duration,
    /// Runs while it does.
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
        // A new connection has nothing to be idle about: its first head is due now.
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

    /// A head that is complete is not overdue.
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

    /// What became of a write: an error when the peer has not read for too long.
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

    /// `came` was read: the timer of its head starts, unless it belongs to a request that is being answered.
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
    /// Ready when the peer has closed its side too, or has had its time.
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
