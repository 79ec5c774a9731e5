//! Delivers a chunk that is too large in parts: a few lines can yield more rows than one request may.
//!
//! Invariants: the parts of a chunk are the same whenever it is sent, and have keys of their own. A destination that
//! has stored the parts does not recognize the whole chunk, so a chunk that was once sent in parts is always sent in
//! parts; the ledger ensures that. A single line that is too large is counted as rejected, and does not hold up the
//! others.

use super::{Delivery, DeliveryError, RunFailure};
use bytes::Bytes;
use collector::pipeline::{IngestResponse, RejectedRecord};
use memchr::{memchr, memchr_iter, memrchr};

/// The size of a part, which is filled with as many whole lines as fit, or with one line.
const PART_BYTES: usize = 16 << 10;

impl Delivery {
    /// Delivers a chunk in parts, one after another.
    pub(in super::super) async fn deliver_in_parts(
        &self,
        mut body: Bytes,
        key: String,
    ) -> Result<IngestResponse, RunFailure> {
        let mut whole = IngestResponse::default();
        let mut lines = 0;
        for number in 0_u32.. {
            let part = body.split_to(next_part_length(&body, PART_BYTES));
            if part.is_empty() {
                break;
            }
            let ends = memchr_iter(b'\n', &part).count() as u64;
            let response = match self.deliver(part, format!("{key}{number}")).await {
                Ok(response) => response,
                Err(DeliveryError::TooLarge { reason }) if ends <= 1 => reject_line(reason),
                Err(error) => return Err(self.run_failure(error)),
            };
            add_part(&mut whole, response, lines);
            lines += ends;
        }
        Ok(whole)
    }
}

/// Returns the response for a line whose rows are too large for any request.
fn reject_line(reason: String) -> IngestResponse {
    IngestResponse {
        rejected: vec![RejectedRecord { line: 1, reason }],
        rejected_count: 1,
        ..IngestResponse::default()
    }
}

/// Returns the length of the next part of a body.
fn next_part_length(body: &[u8], limit: usize) -> usize {
    if body.len() <= limit {
        return body.len();
    }
    let whole = memrchr(b'\n', &body[..limit]).or_else(|| memchr(b'\n', body));
    whole.map_or(body.len(), |rejected| rejected + 1)
}

/// Adds the response to a part that begins after this many lines.
fn add_part(whole: &mut IngestResponse, part: IngestResponse, lines: u64) {
    whole.accepted += part.accepted;
    whole.events += part.events;
    whole.unrecognized += part.unrecognized;
    whole.rejected_count += part.rejected_count;
    whole.categories.add_all(&part.categories);
    whole.rejected.extend(
        part.rejected.into_iter().map(|rejected| RejectedRecord { line: rejected.line + lines, ..rejected }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_lines() {
        for (body, part) in
            [("a\nb\n", 4), ("aa\nb\ncc\n", 5), ("long long\nb\n", 10), ("long long", 9), ("", 0)]
        {
            assert_eq!(next_part_length(body.as_bytes(), 5), part, "{body:?}");
        }
    }

    #[test]
    fn answers_are_one_with_the_lines_of_the_whole() {
        let mut whole = IngestResponse { accepted: 1, ..IngestResponse::default() };
        add_part(&mut whole, IngestResponse { accepted: 4, events: 3, ..reject_line("r".to_owned()) }, 5);
        assert_eq!((whole.accepted, whole.events, whole.rejected_count), (5, 3, 1));
        assert_eq!(whole.rejected.iter().map(|rejected| rejected.line).collect::<Vec<_>>(), [6]);
    }
}
