//! Tests that chunks consist of whole lines, contain all of them, and end in the same places however much text follows.

use super::super::hashing_reader::ContentHash;
use super::*;
use proptest::prelude::*;
use std::io;
use xxhash_rust::xxh3::xxh3_128;

const SIZES: ChunkSizes = ChunkSizes { chunk: 32, line: 48 };

/// A reader that returns a few bytes at a time, as a pipe may, and that can fail at the end.
struct SlowReader<'a> {
    rest: &'a [u8],
    step: usize,
    fails: bool,
}

impl Read for SlowReader<'_> {
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

fn chunk_text_from(text: &[u8], from: u64, planned: Vec<TailPlan>, fails: bool) -> Vec<Chunk> {
    let mut text = HashingReader::new(SlowReader { rest: text, step: 7, fails });
    assert!(text.skip_to(from));
    let mut chunks = Chunker::new(text, SIZES, planned);
    std::iter::from_fn(|| chunks.next()).collect()
}

fn chunk_text(text: &[u8]) -> Vec<Chunk> {
    chunk_text_from(text, 0, Vec::new(), false)
}

fn ends(chunks: &[Chunk]) -> Vec<u64> {
    chunks.iter().map(|chunk| chunk.span.end.position).collect()
}

/// Generates texts with lines of up to 60 bytes: some fit, some are too long for a chunk, some exceed the line limit.
fn texts() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec((0_usize..60, any::<bool>()), 0..12).prop_map(|lines| {
        let mut text = Vec::new();
        for (index, (length, is_short)) in lines.into_iter().enumerate() {
            let length = if is_short { length / 6 } else { length };
            text.extend(std::iter::repeat_n(b'a' + (index % 26) as u8, length));
            text.push(b'\n');
        }
        text
    })
}

/// Returns the expected lines of a text: those that are too long keep their beginning.
fn expected(text: &[u8]) -> Vec<Vec<u8>> {
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|last| last.is_empty()) {
        lines.pop();
    }
    lines.into_iter().map(|line| line[..line.len().min(SIZES.line)].to_vec()).collect()
}

fn lines_of(chunks: &[Chunk]) -> Vec<Vec<u8>> {
    chunks.iter().flat_map(|chunk| expected(&chunk.body)).collect()
}

proptest! {
    #[test]
    fn every_line_is_in_one_piece_in_order(text in texts(), cut_off in 0_usize..3) {
        let text = &text[..text.len().saturating_sub(cut_off)];
        let chunks = chunk_text(text);
        prop_assert_eq!(lines_of(&chunks), expected(text));
        let mut line = 1;
        for chunk in &chunks {
            prop_assert_eq!(chunk.first_line, line);
            let end = usize::try_from(chunk.span.end.position).unwrap();
            prop_assert_eq!(chunk.span.end.hash, ContentHash(xxh3_128(&text[..end])));
            prop_assert_eq!(chunk.span.is_tail, text[end - 1] != b'\n');
            line = memchr::memchr_iter(b'\n', &text[..end]).count() as u64 + 1;
        }
        prop_assert_eq!(chunks.last().map_or(0, |last| last.span.end.position), text.len() as u64);
    }

    /// Checks the guarantee that repeated runs rely on: the chunks are the same if the text was sent before, the run
    /// was stopped anywhere, and the text has grown since.
    #[test]
    fn pieces_are_the_same_when_the_text_has_grown(text in texts(), more in texts(), at in any::<u16>(), from in any::<u16>()) {
        let grown = [text.as_slice(), &more].concat();
        let before = chunk_text(&grown[..usize::from(at) % (grown.len() + 1)]);
        // Chunks up to this position were acknowledged and recorded; the rest may have been sent.
        let known = usize::from(from) % (before.len() + 1);
        let known_end = before[..known].iter().rev().find(|chunk| !chunk.span.is_tail);
        let start = known_end.map_or(0, |chunk| chunk.span.end.position);
        let planned = before.iter().filter_map(|chunk| chunk.plan).collect();
        let after = chunk_text_from(&grown, start, planned, false);
        // A last line that has grown is another line; every other chunk that was sent is sent again unchanged.
        let goes_on = |chunk: &Chunk| {
            let end = usize::try_from(chunk.span.end.position).unwrap();
            chunk.span.is_tail && grown.get(end).is_some_and(|next| *next != b'\n')
        };
        let is_known = |chunk: &Chunk| chunk.span.end.position <= start || goes_on(chunk) || chunk.body.len() >= SIZES.line;
        for chunk in before.iter().filter(|chunk| !is_known(chunk)) {
            let again = after.iter().find(|other| other.span.end == chunk.span.end);
            prop_assert!(again.is_some_and(|again| again.body == chunk.body), "{:?} in {:?}", chunk, after);
        }
    }
}

#[test]
fn the_last_pieces_say_where_they_end() {
    let text = b"one\ntwo\nthree and a half";
    let chunks = chunk_text(text);
    assert_eq!(ends(&chunks), [8, 24]);
    let plan = TailPlan { lines: 8, end: 24 };
    assert_eq!(chunks.iter().map(|chunk| chunk.plan).collect::<Vec<_>>(), [Some(plan), Some(plan)]);
    let many = b"0123456789\n".repeat(5);
    let plans: Vec<_> =
        chunk_text(&many).iter().map(|chunk| (chunk.span.end.position, chunk.plan.is_some())).collect();
    assert_eq!(plans, [(22, false), (44, false), (55, true)]);
}

#[test]
fn a_line_that_has_its_newline_now_is_the_piece_it_was() {
    let plan = vec![TailPlan { lines: 4, end: 8 }];
    for (grown, positions) in [
        (&b"one\nlast\nnext\n"[..], [4, 8, 14].as_slice()),
        (b"one\nlast\r\nnext\n", &[4, 8, 15]),
        (b"one\nlast", &[4, 8]),
        (b"one\nlast and more\nnext\n", &[4, 23]),
    ] {
        assert_eq!(ends(&chunk_text_from(grown, 0, plan.clone(), false)), positions, "{grown:?}");
    }
}

#[test]
fn half_a_line_of_a_torn_file_is_no_line() {
    let chunks = chunk_text_from(b"one\ntwo\nhal", 0, Vec::new(), true);
    assert_eq!(ends(&chunks), [8]);
    assert_eq!(chunks[0].plan, Some(TailPlan { lines: 8, end: 8 }));
    let endless = b"x".repeat(100);
    assert!(chunk_text_from(&endless, 0, Vec::new(), true).is_empty());
}

#[test]
fn what_is_there_does_not_wait_for_more() {
    let mut chunks = Chunker::streaming(
        HashingReader::new(SlowReader { rest: b"a\nb\nc\nd", step: 4, fails: false }),
        SIZES,
    );
    let bodies: Vec<Bytes> = std::iter::from_fn(|| chunks.next()).map(|chunk| chunk.body).collect();
    assert_eq!(bodies, ["a\nb\n", "c\n", "d"]);
}
