//! Checks the Arrow messages of a client before they are decoded.
//!
//! The decoder trusts the size that a message states about itself, and allocates it: eight bytes could claim all memory
//! of the server. So compressed parameters are rejected, and no message may claim more bytes than arrived with it.

use super::status::invalid;
use arrow::ipc::{MessageHeader, root_as_message};
use tonic::Status;

/// The first bytes of each message of a stream.
const CONTINUATION: [u8; 4] = [0xff; 4];

/// Rejects a message that claims to be larger than it is.
pub(super) fn check_message(metadata: &[u8], body: usize) -> Result<(), Status> {
    // Flight sends descriptors and its own metadata without a message.
    if metadata.is_empty() {
        return Ok(());
    }
    checked(metadata, body).map(drop)
}

/// Rejects a stream that contains such a message, or an incomplete one.
pub(super) fn check_stream(mut bytes: &[u8]) -> Result<(), Status> {
    while !bytes.is_empty() {
        let rest = bytes.strip_prefix(&CONTINUATION).unwrap_or(bytes);
        let (length, rest) = rest.split_first_chunk::<4>().ok_or_else(incomplete)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| incomplete())?;
        if length == 0 {
            break;
        }
        let (metadata, rest) = rest.split_at_checked(length).ok_or_else(incomplete)?;
        bytes = &rest[checked(metadata, rest.len())?..];
    }
    Ok(())
}

/// Returns the length of a message's body, which is at most `most`.
fn checked(metadata: &[u8], most: usize) -> Result<usize, Status> {
    let message = root_as_message(metadata)
        .map_err(|error| invalid(format!("the parameters cannot be read: {error}")))?;
    let batch = match message.header_type() {
        MessageHeader::RecordBatch => message.header_as_record_batch(),
        MessageHeader::DictionaryBatch => message.header_as_dictionary_batch().and_then(|batch| batch.data()),
        _ => None,
    };
    if batch.is_some_and(|batch| batch.compression().is_some()) {
        return Err(invalid("the parameters are compressed; send them uncompressed"));
    }
    usize::try_from(message.bodyLength()).ok().filter(|length| *length <= most).ok_or_else(incomplete)
}

fn incomplete() -> Status {
    invalid("the parameters cannot be read: they are shorter than they say")
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, DictionaryArray, RecordBatch, StringArray};
    use arrow::datatypes::Int32Type;
    use arrow::ipc::CompressionType;
    use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};
    use std::sync::Arc;

    fn stream(compression: Option<CompressionType>) -> Vec<u8> {
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1_000)]));
        let words: DictionaryArray<Int32Type> = ["a"].into_iter().collect();
        let row = RecordBatch::try_from_iter([("text", texts), ("word", Arc::new(words) as _)]).unwrap();
        let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &row.schema(), options).unwrap();
        writer.write(&row).unwrap();
        writer.into_inner().unwrap()
    }

    #[test]
    fn a_stream_is_taken_when_it_is_whole_and_plain() {
        assert!(check_stream(&stream(None)).is_ok());
        assert!(check_stream(&[]).is_ok());
        for kind in [CompressionType::LZ4_FRAME, CompressionType::ZSTD] {
            assert!(check_stream(&stream(Some(kind))).is_err(), "{kind:?}");
        }
    }

    #[test]
    fn what_claims_more_than_it_has_is_rejected() {
        let whole = stream(None);
        // The last eight bytes mark the end of the stream.
        let last = whole.len() - 8;
        let taken: Vec<usize> = (1..last).filter(|length| check_stream(&whole[..*length]).is_ok()).collect();
        assert_eq!(taken.len(), 2, "only between two messages can a stream end: {taken:?}");
        for (index, _) in whole.iter().enumerate() {
            let mut flipped = whole.clone();
            flipped[index] ^= 0x80;
            // Whatever the result is, the check must not panic.
            let _ = check_stream(&flipped);
        }
    }
}
