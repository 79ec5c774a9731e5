//! A piece that is too much at once is delivered in parts: a few lines can yield more rows than one request may.
//!
//! What always holds: the parts of a piece are the same whenever it is sent, and have keys of their own. A place that knows
//! the parts does not know the whole, so once a piece is sent in parts it always is; the ledger sees to that. A single
//! line that is too much is counted as rejected, and the others are not held up by it.

use super::{Delivery, No, Undelivered};
use bytes::Bytes;
use collector::pipeline::{Answer, Rejected};
use memchr::{memchr, memchr_iter, memrchr};

/// A part is as many whole lines as fit into this, or one line.
const PART: usize = 16 << 10;

impl Delivery {
    /// Delivers a piece in parts, one after another.
    pub(in super::super) async fn deliver_in_parts(
        &self,
        mut body: Bytes,
        key: String,
    ) -> Result<Answer, Undelivered> {
        let mut whole = Answer::default();
        let mut lines = 0;
        for number in 0_u32.. {
            let part = body.split_to(part_of(&body, PART));
            if part.is_empty() {
                break;
            }
            let ends = memchr_iter(b'\n', &part).count() as u64;
            let answer = match self.deliver(part, format!("{key}{number}")).await {
                Ok(answer) => answer,
                Err(No::TooLarge { reason }) if ends <= 1 => too_large(reason),
                Err(no) => return Err(self.undelivered(no)),
            };
            join(&mut whole, answer, lines);
            lines += ends;
        }
        Ok(whole)
    }
}

/// A line of which nobody could take what it yields.
fn too_large(reason: String) -> Answer {
    Answer { rejected: vec![Rejected { line: 1, reason }], rejected_count: 1, ..Answer::default() }
}

/// How much of a body is its next part.
fn part_of(body: &[u8], most: usize) -> usize {
    if body.len() <= most {
        return body.len();
    }
    let whole = memrchr(b'\n', &body[..most]).or_else(|| memchr(b'\n', body));
    whole.map_or(body.len(), |at| at + 1)
}

/// Adds the answer to a part that begins after so many lines.
fn join(whole: &mut Answer, part: Answer, lines: u64) {
    whole.accepted += part.accepted;
    whole.events += part.events;
    whole.unrecognized += part.unrecognized;
    whole.rejected_count += part.rejected_count;
    whole.categories.add_all(&part.categories);
    whole.rejected.extend(part.rejected.into_iter().map(|at| Rejected { line: at.line + lines, ..at }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_whole_lines() {
        for (body, part) in
            [("a\nb\n", 4), ("aa\nb\ncc\n", 5), ("long long\nb\n", 10), ("long long", 9), ("", 0)]
        {
            assert_eq!(part_of(body.as_bytes(), 5), part, "{body:?}");
        }
    }

    #[test]
    fn answers_are_one_with_the_lines_of_the_whole() {
        let mut whole = Answer { accepted: 1, ..Answer::default() };
        join(&mut whole, Answer { accepted: 4, events: 3, ..too_large("r".to_owned()) }, 5);
        assert_eq!((whole.accepted, whole.events, whole.rejected_count), (5, 3, 1));
        assert_eq!(whole.rejected.iter().map(|at| at.line).collect::<Vec<_>>(), [6]);
    }
}
