//! Collects the body of a request within its limits.
//!
//! Invariants: bytes are buffered only after permits for them were acquired, so that all bodies together stay under
//! `Limits::inflight_bytes`; a sender holds permits for the bytes that it has sent, not for those that it announced;
//! and every wait has a timeout.

use super::grpc_frame::{Frame, PREFIX};
use crate::pipeline::Encoding;
use crate::{Limits, Rejection, RejectionReason};
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use http_body::Body;
use http_body_util::BodyExt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};

/// The number of bytes that one permit stands for.
const PERMIT_BYTES: usize = 1 << 10;
/// Permits are acquired for this many bytes at a time, so that a body of many small frames does not acquire them in
/// many small steps.
const STEP_BYTES: usize = 64 << 10;
/// The largest initial capacity of the buffer, whatever length was announced.
const FIRST_BUFFER_BYTES: usize = 1 << 20;

/// The limits of a body.
pub(crate) struct Bounds {
    /// The largest number of bytes it may have.
    pub(crate) limit: usize,
    /// The number of bytes that the sender announced.
    pub(crate) announced: Option<u64>,
    /// Set if the body is one gRPC frame, whose first bytes give its length.
    pub(crate) frame: Option<Frame>,
}

impl Bounds {
    /// Returns the limits of a body over plain HTTP.
    pub(crate) fn of_http(headers: &HeaderMap, encoding: Encoding, limits: &Limits) -> Self {
        let limit = match encoding {
            Encoding::Identity => limits.body_bytes,
            Encoding::Gzip | Encoding::Zstd => limits.compressed_bytes,
        };
        let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        Self { limit, announced, frame: None }
    }

    /// Rejects a body whose announced length is too large, before any of it is read.
    pub(crate) fn check_announced(&self) -> Result<(), Rejection> {
        match self.announced {
            Some(bytes) if bytes > self.limit as u64 => Err(too_large(bytes, self.limit)),
            _ => Ok(()),
        }
    }
}

/// Collects the whole body; returns it with the permits for its memory.
pub(crate) async fn collect<B>(
    body: B,
    bounds: Bounds,
    limits: &Limits,
    room: &Arc<Semaphore>,
) -> Result<(Bytes, Vec<OwnedSemaphorePermit>), Rejection>
where
    B: Body<Data = Bytes>,
{
    let mut body = pin!(body);
    let deadline = Instant::now() + limits.body_timeout;
    let mut collecting = Collecting::new(bounds, limits, room);
    loop {
        let pause = (Instant::now() + limits.body_pause).min(deadline);
        let frame = match timeout_at(pause, body.frame()).await {
            Ok(Some(Ok(frame))) => frame,
            Ok(Some(Err(_))) => return Err(gone()),
            Ok(None) => return Ok(collecting.finish()),
            Err(_) => return Err(too_slow(collecting.length(), Instant::now() >= deadline, limits)),
        };
        if let Ok(data) = frame.into_data() {
            collecting.push(data).await?;
        }
    }
}

/// The part of a body that has arrived.
struct Collecting<'a> {
    bounds: Bounds,
    /// True once a frame prefix was read: `bounds.limit` is then the exact length of the one frame.
    exact: bool,
    admission_wait: Duration,
    retry_after: Duration,
    room: &'a Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
    /// The first frame of data. Most bodies have only one, which is then not copied.
    first: Bytes,
    /// All frames of data, once there is a second one.
    joined: BytesMut,
}

impl<'a> Collecting<'a> {
    fn new(bounds: Bounds, limits: &Limits, room: &'a Arc<Semaphore>) -> Self {
        let Limits { admission_wait, retry_after, .. } = *limits;
        Self {
            bounds,
            exact: false,
            admission_wait,
            retry_after,
            room,
            held: None,
            first: Bytes::new(),
            joined: BytesMut::new(),
        }
    }

    fn length(&self) -> usize {
        self.first.len() + self.joined.len()
    }

    fn bytes(&self) -> &[u8] {
        if self.joined.is_empty() { &self.first } else { &self.joined }
    }

    async fn push(&mut self, data: Bytes) -> Result<(), Rejection> {
        if data.is_empty() {
            return Ok(());
        }
        let length = self.length() + data.len();
        if length > self.bounds.limit {
            return Err(self.too_long(length));
        }
        self.take_room(length).await?;
        self.keep(data);
        self.read_prefix()
    }

    fn keep(&mut self, data: Bytes) {
        if self.length() == 0 {
            self.first = data;
            return;
        }
        if self.joined.is_empty() {
            let announced = usize::try_from(self.bounds.announced.unwrap_or(0)).unwrap_or(usize::MAX);
            let capacity = announced.min(FIRST_BUFFER_BYTES).max(self.first.len() + data.len());
            self.joined.reserve(capacity);
            self.joined.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.joined.extend_from_slice(&data);
    }

    /// Makes the length of a gRPC frame the limit as soon as its prefix has arrived.
    fn read_prefix(&mut self) -> Result<(), Rejection> {
        let (Some(frame), false) = (self.bounds.frame, self.exact) else { return Ok(()) };
        if self.length() < PREFIX {
            return Ok(());
        }
        let announced = frame.length(self.bytes())?;
        self.bounds.announced = Some(announced as u64);
        self.bounds.limit = announced;
        self.exact = true;
        if self.length() > announced { Err(self.too_long(self.length())) } else { Ok(()) }
    }

    fn too_long(&self, length: usize) -> Rejection {
        if self.exact {
            return Rejection::new(
                RejectionReason::Unreadable,
                format!("more than one message: {length} bytes came"),
            );
        }
        too_large(length as u64, self.bounds.limit)
    }

    /// Acquires permits until they cover `length` bytes, and one step ahead if more may follow.
    async fn take_room(&mut self, length: usize) -> Result<(), Rejection> {
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        if length <= held * PERMIT_BYTES {
            return Ok(());
        }
        let last = usize::try_from(self.bounds.announced.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let ahead = (held * PERMIT_BYTES + STEP_BYTES).min(last.min(self.bounds.limit));
        let wanted = length.max(ahead).div_ceil(PERMIT_BYTES) - held;
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        let waiting = Arc::clone(self.room).acquire_many_owned(wanted);
        match (timeout(self.admission_wait, waiting).await, &mut self.held) {
            (Ok(Ok(more)), Some(held)) => held.merge(more),
            (Ok(Ok(more)), held @ None) => *held = Some(more),
            _ => {
                return Err(Rejection::retryable(
                    RejectionReason::Busy,
                    "no room for the body",
                    self.retry_after,
                ));
            }
        }
        Ok(())
    }

    /// Returns the body and its permits, after releasing the permits that were acquired ahead.
    fn finish(mut self) -> (Bytes, Vec<OwnedSemaphorePermit>) {
        let needed = self.length().div_ceil(PERMIT_BYTES);
        if let Some(held) = &mut self.held {
            drop(held.split(held.num_permits().saturating_sub(needed)));
        }
        let body = if self.joined.is_empty() { self.first } else { self.joined.freeze() };
        (body, self.held.into_iter().collect())
    }
}

/// Returns the rejection for a sender that disconnected before its body was complete.
pub(crate) fn gone() -> Rejection {
    Rejection::new(RejectionReason::Gone, "the connection ended before the body did")
}

fn too_large(bytes: u64, limit: usize) -> Rejection {
    Rejection::new(
        RejectionReason::TooLarge,
        format!("the body has {bytes} bytes or more, over the limit of {limit}"),
    )
}

fn too_slow(arrived: usize, whole: bool, limits: &Limits) -> Rejection {
    let detail = if whole {
        format!("the body was not complete after {:?}; {arrived} bytes came", limits.body_timeout)
    } else {
        format!("nothing came for {:?} after {arrived} bytes of the body", limits.body_pause)
    };
    Rejection::new(RejectionReason::TooSlow, detail)
}

#[cfg(test)]
mod tests;
