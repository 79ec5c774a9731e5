//! Decompression within the limits. The size is checked while the data streams, so that a decompression bomb costs no
//! more than a large body.

use super::Encoding;
use crate::rejection::{Rejection, RejectionReason};
use flate2::bufread::MultiGzDecoder;
use std::io::{self, Read};

/// The largest window of a zstd frame, as a power of two: the size that the specification recommends every decoder to
/// support. Larger windows are rejected, because they cost memory.
const ZSTD_WINDOW_LOG: u32 = 23;

/// Returns the decompressed body, either the body itself or `buffer`; `None` if it is longer than `limit`.
pub(super) fn decompress<'b>(
    encoding: Encoding,
    body: &'b [u8],
    buffer: &'b mut Vec<u8>,
    limit: usize,
) -> Result<Option<&'b [u8]>, Rejection> {
    buffer.clear();
    match encoding {
        Encoding::Identity => return Ok((body.len() <= limit).then_some(body)),
        Encoding::Gzip => read_all(MultiGzDecoder::new(body), "gzip", buffer, limit)?,
        Encoding::Zstd => read_all(zstd(body).map_err(|error| bad("zstd", &error))?, "zstd", buffer, limit)?,
    }
    Ok((buffer.len() <= limit).then_some(buffer))
}

fn zstd(body: &[u8]) -> io::Result<impl Read> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(body)?;
    decoder.window_log_max(ZSTD_WINDOW_LOG)?;
    Ok(decoder)
}

fn read_all(reader: impl Read, name: &str, buffer: &mut Vec<u8>, limit: usize) -> Result<(), Rejection> {
    reader.take(limit as u64 + 1).read_to_end(buffer).map_err(|error| bad(name, &error))?;
    Ok(())
}

fn bad(name: &str, error: &io::Error) -> Rejection {
    Rejection::new(RejectionReason::BadCompression, format!("the body is not {name}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    const LIMIT: usize = 1 << 20;

    fn cause_of(encoding: Encoding, body: &[u8]) -> RejectionReason {
        decompress(encoding, body, &mut Vec::new(), LIMIT).unwrap_err().reason
    }

    #[test]
    fn what_went_in_comes_out() {
        let text = b"one line\n".repeat(1000);
        let mut buffer = Vec::new();
        let two_members = [gzip(&text[..4500]), gzip(&text[4500..])].concat();
        assert_eq!(decompress(Encoding::Gzip, &two_members, &mut buffer, LIMIT).unwrap(), Some(&*text));
        let zstd = zstd::encode_all(&text[..], 3).unwrap();
        assert_eq!(decompress(Encoding::Zstd, &zstd, &mut buffer, LIMIT).unwrap(), Some(&*text));
        assert_eq!(decompress(Encoding::Identity, &text, &mut buffer, LIMIT).unwrap(), Some(&*text));
    }

    #[test]
    fn bombs_stop_at_the_limit() {
        let zeros = vec![0; 8 << 20];
        let zstd = zstd::encode_all(&zeros[..], 3).unwrap();
        for (encoding, body) in
            [(Encoding::Gzip, &gzip(&zeros)), (Encoding::Zstd, &zstd), (Encoding::Identity, &zeros)]
        {
            let mut buffer = Vec::new();
            assert_eq!(decompress(encoding, body, &mut buffer, LIMIT).unwrap(), None);
            assert!(buffer.len() <= LIMIT + 1);
        }
    }

    #[test]
    fn bad_data_is_refused() {
        let mut cut = gzip(b"hello hello hello");
        cut.truncate(cut.len() - 3);
        for body in [&b"not compressed"[..], b"", &cut] {
            assert_eq!(cause_of(Encoding::Gzip, body), RejectionReason::BadCompression);
        }
        let cut = zstd::encode_all(&b"hello hello"[..], 3).unwrap();
        for body in [&b"not compressed"[..], &cut[..cut.len() - 2]] {
            assert_eq!(cause_of(Encoding::Zstd, body), RejectionReason::BadCompression);
        }
    }

    #[test]
    fn a_window_that_wants_too_much_memory_is_refused() {
        let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(27).unwrap();
        encoder.write_all(b"small").unwrap();
        assert_eq!(cause_of(Encoding::Zstd, &encoder.finish().unwrap()), RejectionReason::BadCompression);
    }
}
