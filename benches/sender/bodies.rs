//! Bodies of a thousand records, which are made before anything is measured.
//!
//! Envelopes may be sent again and again. Spans may not, because a repeated span is a duplicate and is stored once. So
//! in uncompressed bodies, new ids are written over the old ones. Compressed ones cannot be changed; there are so many
//! of them that the server has forgotten the first when it comes again.

use super::spans::SpanBatch;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;

/// The number of records in a body.
pub(crate) const RECORDS: usize = 1000;
/// The number of bodies of envelopes, which is large enough that they are not all in the cache of the CPU.
const ENVELOPES: usize = 32;
/// The number of compressed bodies of spans: the server remembers a million identities, and a span has one or more.
const COMPRESSED_SPANS: usize = 1050;
/// The compression level that exporters use.
const GZIP: Compression = Compression::new(6);
const ZSTD: i32 = 3;

/// The compression of bodies.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Plain,
    Gzip,
    Zstd,
}

impl Encoding {
    fn of(self, body: Vec<u8>) -> anyhow::Result<Vec<u8>> {
        Ok(match self {
            Self::Plain => body,
            Self::Gzip => {
                let mut encoder = GzEncoder::new(Vec::new(), GZIP);
                encoder.write_all(&body)?;
                encoder.finish()?
            }
            Self::Zstd => zstd::encode_all(&body[..], ZSTD)?,
        })
    }
}

/// The bodies of one case, one after another.
pub(crate) enum Bodies {
    Same { all: Vec<Bytes>, next: usize },
    Fresh(SpanBatch),
}

impl Bodies {
    /// Returns bodies of NDJSON, with about 400 bytes for each line.
    pub(crate) fn envelopes(lines: &[u8], encoding: Encoding) -> anyhow::Result<Self> {
        let mut all = vec![Vec::new(); ENVELOPES];
        for (place, line) in lines.split_inclusive(|&byte| byte == b'\n').enumerate() {
            all[place / RECORDS].extend_from_slice(line);
        }
        let all = all.into_iter().map(|body| Ok(encoding.of(body)?.into()));
        Ok(Self::Same { all: all.collect::<anyhow::Result<_>>()?, next: 0 })
    }

    /// Returns bodies of `ExportTraceServiceRequest`, in gRPC frames if `framed` is true.
    pub(crate) fn spans(encoding: Encoding, framed: bool) -> anyhow::Result<Self> {
        let mut batch = SpanBatch::new(RECORDS)?;
        if encoding == Encoding::Plain {
            return Ok(Self::Fresh(if framed { batch.framed() } else { batch }));
        }
        let mut all = Vec::with_capacity(COMPRESSED_SPANS);
        for _ in 0..COMPRESSED_SPANS {
            let message = encoding.of(batch.next().to_vec())?;
            all.push(if framed { frame(&message, true) } else { message }.into());
        }
        Ok(Self::Same { all, next: 0 })
    }

    pub(crate) fn next(&mut self) -> Bytes {
        match self {
            Self::Same { all, next } => {
                *next = (*next + 1) % all.len();
                all[*next].clone()
            }
            Self::Fresh(batch) => Bytes::copy_from_slice(batch.next()),
        }
    }
}

/// Returns the lines of all bodies of envelopes.
pub(crate) fn lines() -> Vec<u8> {
    demo::lines(7, ENVELOPES * RECORDS)
}

/// Returns a gRPC message: a flag for compression, the length, and the bytes.
pub(crate) fn frame(message: &[u8], compressed: bool) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[u8::from(compressed)][..], &length.to_be_bytes(), message].concat()
}
