//! Pieces are whole lines, all of them, and end in the same places however much text follows.

use super::super::text::Digest;
use super::*;
use proptest::prelude::*;
use std::io;
use xxhash_rust::xxh3::xxh3_128;

const SIZES: Sizes = Sizes { piece: 32, line: 48 };

/// Gives a few bytes at a time, as a pipe may, and fails at the end if it is to.
struct Dribble<'a> {
    rest: &'a [u8],
    step: usize,
    fails: bool,
}

impl Read for Dribble<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_empty() && self.fails {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let count = self.step.min(self.rest.len()).min(buffer.len());
        let (now, later) = self.rest.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.rest = later;
        Ok(count)
    }
}

fn cut_from(text: &[u8], from: u64, planned: Vec<Plan>, fails: bool) -> Vec<Piece> {
    let mut text = Text::new(Dribble { rest: text, step: 7, fails });
    assert!(text.skip_to(from));
    let mut pieces = Pieces::new(text, SIZES, planned);
    std::iter::from_fn(|| pieces.next()).collect()
}

fn cut(text: &[u8]) -> Vec<Piece> {
    cut_from(text, 0, Vec::new(), false)
}

fn ends(pieces: &[Piece]) -> Vec<u64> {
    pieces.iter().map(|piece| piece.span.end.position).collect()
}

/// Lines of up to 60 bytes: some fit, some are too long for a piece, some too long at all.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec((0_usize..60, any::<bool>()), 0..12).prop_map(|lines| {
        let mut text = Vec::new();
        for (place, (length, is_short)) in lines.into_iter().enumerate() {
            let length = if is_short { length / 6 } else { length };
            text.extend(std::iter::repeat_n(b'a' + (place % 26) as u8, length));
            text.push(b'\n');
        }
        text
    })
}

/// What the lines of a text become: those that are too long keep their beginning.
fn expected(text: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines.into_iter().map(|line| line[..line.len().min(SIZES.line)].to_vec()).collect()
}

fn lines_of(pieces: &[Piece]) -> Vec<Vec<u8>> {
    pieces.iter().flat_map(|piece| expected(&piece.body)).collect()
}

proptest! {
    #[test]
    fn every_line_is_in_one_piece_in_order(text in texts(), cut_off in 0_usize..3) {
        let text = &text[..text.len().saturating_sub(cut_off)];
        let pieces = cut(text);
        prop_assert_eq!(lines_of(&pieces), expected(text));
        let mut line = 1;
        for piece in &pieces {
            prop_assert_eq!(piece.first_line, line);
            let end = usize::try_from(piece.span.end.position).unwrap();
            prop_assert_eq!(piece.span.end.hash, Digest(xxh3_128(&text[..end])));
            prop_assert_eq!(piece.span.is_tail, text[end - 1] != b'\n');
            line = memchr::memchr_iter(b'\n', &text[..end]).count() as u64 + 1;
        }
        prop_assert_eq!(pieces.last().map_or(0, |last| last.span.end.position), text.len() as u64);
    }

    /// The promise that a repeated run rests on: sent before, stopped anywhere, grown since, the pieces are the same.
    #[test]
    fn pieces_are_the_same_when_the_text_has_grown(text in texts(), more in texts(), at in any::<u16>(), from in any::<u16>()) {
        let grown = [text.as_slice(), &more].concat();
        let before = cut(&grown[..usize::from(at) % (grown.len() + 1)]);
        // Acknowledged and written down up to some piece; the rest may have been sent.
        let known = usize::from(from) % (before.len() + 1);
        let known_end = before[..known].iter().rev().find(|piece| !piece.span.is_tail);
        let start = known_end.map_or(0, |piece| piece.span.end.position);
        let planned = before.iter().filter_map(|piece| piece.plan).collect();
        let after = cut_from(&grown, start, planned, false);
        // A last line that went on is another line; all else that was sent is sent again as it was.
        let goes_on = |piece: &Piece| {
            let end = usize::try_from(piece.span.end.position).unwrap();
            piece.span.is_tail && grown.get(end).is_some_and(|next| *next != b'\n')
        };
        let is_known = |piece: &Piece| piece.span.end.position <= start || goes_on(piece) || piece.body.len() >= SIZES.line;
        for piece in before.iter().filter(|piece| !is_known(piece)) {
            let again = after.iter().find(|other| other.span.end == piece.span.end);
            prop_assert!(again.is_some_and(|again| again.body == piece.body), "{:?} in {:?}", piece, after);
        }
    }
}

#[test]
fn the_last_pieces_say_where_they_end() {
    let text = b"one\ntwo\nthree and a half";
    let pieces = cut(text);
    assert_eq!(ends(&pieces), [8, 24]);
    let plan = Plan { lines: 8, end: 24 };
    assert_eq!(pieces.iter().map(|piece| piece.plan).collect::<Vec<_>>(), [Some(plan), Some(plan)]);
    let many = b"0123456789\n".repeat(5);
    let plans: Vec<_> =
        cut(&many).iter().map(|piece| (piece.span.end.position, piece.plan.is_some())).collect();
    assert_eq!(plans, [(22, false), (44, false), (55, true)]);
}

#[test]
fn a_line_that_has_its_newline_now_is_the_piece_it_was() {
    let plan = vec![Plan { lines: 4, end: 8 }];
    for (grown, positions) in [
        (&b"one\nlast\nnext\n"[..], [4, 8, 14].as_slice()),
        (b"one\nlast\r\nnext\n", &[4, 8, 15]),
        (b"one\nlast", &[4, 8]),
        (b"one\nlast and more\nnext\n", &[4, 23]),
    ] {
        assert_eq!(ends(&cut_from(grown, 0, plan.clone(), false)), positions, "{grown:?}");
    }
}

#[test]
fn half_a_line_of_a_torn_file_is_no_line() {
    let pieces = cut_from(b"one\ntwo\nhal", 0, Vec::new(), true);
    assert_eq!(ends(&pieces), [8]);
    assert_eq!(pieces[0].plan, Some(Plan { lines: 8, end: 8 }));
    let endless = b"x".repeat(100);
    assert!(cut_from(&endless, 0, Vec::new(), true).is_empty());
}

#[test]
fn what_is_there_does_not_wait_for_more() {
    let mut pieces = Pieces::live(Text::new(Dribble { rest: b"a\nb\nc\nd", step: 4, fails: false }), SIZES);
    let bodies: Vec<Bytes> = std::iter::from_fn(|| pieces.next()).map(|piece| piece.body).collect();
    assert_eq!(bodies, ["a\nb\n", "c\n", "d"]);
}
