//! The frame of a gRPC message: one byte that flags compression, four bytes of length, then the message.

use crate::pipeline::Encoding;
use crate::{Limits, Rejection, RejectionReason};
use bytes::{BufMut, Bytes, BytesMut};

/// The length of a frame's prefix: the flag and the message length.
pub(crate) const PREFIX: usize = 5;

/// The encoding and size limits of the frame of one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// The compression of the message if its flag is set.
    encoding: Encoding,
    compressed_bytes: usize,
    body_bytes: usize,
}

impl Frame {
    pub(crate) fn new(encoding: Encoding, limits: &Limits) -> Self {
        let Limits { compressed_bytes, body_bytes, .. } = *limits;
        Self { encoding, compressed_bytes, body_bytes }
    }

    /// Returns the largest size of any frame, before its prefix is known.
    pub(crate) fn limit(&self) -> usize {
        PREFIX.saturating_add(self.compressed_bytes.max(self.body_bytes))
    }

    /// Returns the length of the whole frame from its first bytes, so that one that is too large is rejected at once.
    pub(crate) fn length(&self, bytes: &[u8]) -> Result<usize, Rejection> {
        let (encoding, length) = self.prefix(bytes)?;
        let limit = match encoding {
            Encoding::Identity => self.body_bytes,
            Encoding::Gzip | Encoding::Zstd => self.compressed_bytes,
        };
        if length > limit {
            let detail = format!("the message has {length} bytes, over the limit of {limit}");
            return Err(Rejection::new(RejectionReason::TooLarge, detail));
        }
        Ok(PREFIX + length)
    }

    /// Returns the message of a complete frame, and its compression.
    pub(crate) fn open(&self, mut frame: Bytes) -> Result<(Bytes, Encoding), Rejection> {
        let (encoding, length) = self.prefix(&frame)?;
        let message = frame.split_off(PREFIX);
        if message.len() != length {
            let detail = format!("the message has {length} bytes, and {} came", message.len());
            return Err(Rejection::new(RejectionReason::Unreadable, detail));
        }
        Ok((message, encoding))
    }

    fn prefix(&self, bytes: &[u8]) -> Result<(Encoding, usize), Rejection> {
        let Some(&[flag, a, b, c, d]) = bytes.first_chunk::<PREFIX>() else {
            return Err(unreadable("the call holds no whole message"));
        };
        let length = usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or(usize::MAX);
        match (flag, self.encoding) {
            (0, _) => Ok((Encoding::Identity, length)),
            (1, Encoding::Identity) => {
                Err(unreadable("the message is compressed, but grpc-encoding is not given"))
            }
            (1, encoding) => Ok((encoding, length)),
            _ => Err(unreadable("the flag of the message's frame is neither 0 nor 1")),
        }
    }
}

/// Returns a frame that contains `message` uncompressed.
pub(crate) fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(PREFIX + message.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.put_slice(message);
    frame.freeze()
}

fn unreadable(detail: &str) -> Rejection {
    Rejection::new(RejectionReason::Unreadable, detail)
}

#[cfg(test)]
mod tests;
