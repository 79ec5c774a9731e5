//! A piece that is too much at once is delivered in halves: a few lines can yield more rows than one request may.
//!
//! What always holds: the halves of a piece are the same whenever it is sent, and have keys of their own; a single line
//! that is too much is counted as rejected, and the others are not held up by it.

use super::{Delivery, Undelivered};
use bytes::Bytes;
use collector::pipeline::{Answer, Rejected};
use memchr::{memchr, memchr_iter, memrchr};
use std::pin::Pin;

impl Delivery {
    pub(super) fn in_halves(
        &self,
        body: Bytes,
        key: String,
        reason: String,
    ) -> Pin<Box<dyn Future<Output = Result<Answer, Undelivered>> + Send + '_>> {
        Box::pin(async move {
            let Some(middle) = middle(&body) else {
                let rejected = vec![Rejected { line: 1, reason }];
                return Ok(Answer { rejected, rejected_count: 1, ..Answer::default() });
            };
            let lines = memchr_iter(b'\n', &body[..middle]).count() as u64;
            let first = self.deliver(body.slice(..middle), format!("{key}a")).await?;
            let second = self.deliver(body.slice(middle..), format!("{key}b")).await?;
            Ok(joined(first, second, lines))
        })
    }
}

/// The end of the line nearest to the middle, if there is more than one line.
fn middle(body: &[u8]) -> Option<usize> {
    let half = body.len() / 2;
    let before = memrchr(b'\n', &body[..half]).map(|at| at + 1);
    let after = memchr(b'\n', &body[half..]).map(|at| half + at + 1).filter(|end| *end < body.len());
    before.or(after)
}

/// Two answers as one; the second half begins after so many lines.
fn joined(mut first: Answer, second: Answer, lines: u64) -> Answer {
    first.accepted += second.accepted;
    first.events += second.events;
    first.unrecognized += second.unrecognized;
    first.rejected_count += second.rejected_count;
    first.categories.add_all(&second.categories);
    let moved = second.rejected.into_iter().map(|at| Rejected { line: at.line + lines, ..at });
    first.rejected.extend(moved);
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_cut_between_lines_or_not_at_all() {
        assert_eq!(middle(b"a\nb\n"), Some(2));
        assert_eq!(middle(b"a\nlong long line\n"), Some(2));
        assert_eq!(middle(b"long long line\na\n"), Some(15));
        assert_eq!(middle(b"one line\n"), None);
        assert_eq!(middle(b"one line"), None);
        assert_eq!(middle(b""), None);
    }

    #[test]
    fn two_answers_are_one_with_the_lines_of_the_whole() {
        let rejected = |line| vec![Rejected { line, reason: "r".to_owned() }];
        let first = Answer { accepted: 1, rejected: rejected(2), rejected_count: 1, ..Answer::default() };
        let second =
            Answer { accepted: 4, events: 3, rejected: rejected(1), rejected_count: 9, ..first.clone() };
        let whole = joined(first, second, 5);
        assert_eq!((whole.accepted, whole.events, whole.rejected_count), (5, 3, 10));
        assert_eq!(whole.rejected.iter().map(|at| at.line).collect::<Vec<_>>(), [2, 6]);
    }
}
