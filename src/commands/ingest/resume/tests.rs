//! Tests that a known text is recognized, and an unknown one is not.

use super::super::chunks::{ChunkSizes, ChunkSpan, Chunker};
use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, HashSet};
use xxhash_rust::xxh3::xxh3_128;

fn offset_of(text: &[u8]) -> HashedOffset {
    HashedOffset { position: text.len() as u64, hash: ContentHash(xxh3_128(text)) }
}

fn span(start: &[u8], end: &[u8], is_tail: bool) -> ChunkSpan {
    ChunkSpan { start: offset_of(start), end: offset_of(end), is_tail }
}

/// Returns an entry for a text that was ingested completely; the last line may lack its newline.
fn entry(id: u64, text: &[u8]) -> Entry {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let first = HashingReader::new(text).first_line_hash();
    let mut entry = Entry::new(id, "log", first, None);
    entry.acknowledge(&span(b"", &text[..whole], false), 1, 1);
    if whole < text.len() {
        entry.acknowledge(&span(&text[..whole], text, true), 1, 1);
    }
    entry
}

/// Checks the position at which a text continues, the entry that it matches, and if it has nothing new.
fn check(known: &[&[u8]], text: &[u8], position: u64, id: Option<u64>, nothing_new: bool) {
    let entries: Vec<Entry> = known.iter().enumerate().map(|(id, text)| entry(id as u64, text)).collect();
    let mut found = find_resume_point(&entries, || Ok(text)).unwrap();
    assert_eq!(found.reader.position(), position, "{text:?}");
    assert_eq!(found.entry.as_ref().map(|(entry, _)| entry.id), id, "{text:?}");
    assert_eq!(found.has_nothing_new(), nothing_new, "{text:?}");
    assert_eq!(found.reader.offset(), offset_of(&text[..usize::try_from(position).unwrap()]));
}

#[test]
fn the_furthest_match_counts() {
    let long = b"one\ntwo\nthree\n";
    check(&[], long, 0, None, false);
    check(&[long], long, 14, Some(0), true);
    check(&[&long[..8]], long, 8, Some(0), false);
    check(&[&long[..4], &long[..8]], long, 8, Some(1), false);
    check(&[&long[..8], b"one\ntwo\nfour\n", &long[..4]], long, 8, Some(0), false);
    check(&[b"one\n2\n"], long, 0, None, false);
    check(&[b"zero\n"], long, 0, None, false);
    check(&[long], &long[..8], 0, None, false);
    check(&[long], b"", 0, None, false);
}

#[test]
fn a_last_line_without_a_newline() {
    let known: &[&[u8]] = &[b"one\ntwo"];
    check(known, b"one\ntwo", 7, Some(0), true);
    check(known, b"one\ntwo\n", 8, Some(0), true);
    check(known, b"one\ntwo\r\nthree", 9, Some(0), false);
    check(known, b"one\ntwo and more\n", 4, Some(0), false);
    check(known, b"one\n", 4, Some(0), true);
    check(&[b"only"], b"only", 4, Some(0), true);
    check(&[b"only"], b"only\r\nmore\n", 6, Some(0), false);
    check(&[b"only"], b"only more\n", 0, None, false);
}

#[test]
fn a_copy_from_an_earlier_run_is_known() {
    let mut entry = entry(7, b"one\n");
    entry.resume_from(ResumeOffset::Done, 8);
    entry.acknowledge(&span(b"one\n", b"one\ntwo\n", false), 5, 2);
    let entries = [entry];
    let mut found = find_resume_point(&entries, || Ok(&b"one\n"[..])).unwrap();
    assert!(found.has_nothing_new());
    let (known, index) = found.entry.unwrap();
    assert_eq!((known.id, known.lines_at(index)), (7, 1));
    // Another text with the same beginning is independent.
    let mut found = find_resume_point(&entries, || Ok(&b"one\n2\n"[..])).unwrap();
    assert!(!found.has_nothing_new());
    let (mut other, index) = found.entry.unwrap();
    other.resume_from(index, 9);
    assert_eq!((other.id, other.done, other.lines), (9, offset_of(b"one\n"), 1));
}

/// A simulated destination that stores what it is sent with a key once, and a ledger; both survive kills.
#[derive(Default)]
struct Simulation {
    keys: HashSet<u128>,
    stored: BTreeMap<Vec<u8>, usize>,
    ledger: BTreeMap<u64, Entry>,
    next_id: u64,
}

impl Simulation {
    /// Ingests a text. The run is killed after `sent` chunks were sent, of which `acknowledged` were recorded.
    fn run(&mut self, text: &[u8], sent: usize, acknowledged: usize) {
        let known: Vec<Entry> = self.ledger.values().cloned().collect();
        let mut found = find_resume_point(&known, || Ok(text)).unwrap();
        if found.has_nothing_new() {
            return;
        }
        self.next_id += 1;
        let mut entry = match found.entry {
            Some((mut entry, known)) if found.reader.position() > 0 => {
                entry.resume_from(known, self.next_id);
                entry
            }
            Some((entry, _)) => entry,
            None => Entry::new(self.next_id, "log", found.first_line, None),
        };
        let mut chunks = Chunker::new(found.reader, ChunkSizes { chunk: 16, line: 64 }, entry.plans.clone());
        for index in 0..sent {
            let Some(chunk) = chunks.next() else { break };
            if chunk.plan.is_some() {
                entry.add_plan(&chunk);
                self.ledger.insert(entry.id, entry.clone());
            }
            if self.keys.insert(chunk.span.end.hash.0) {
                for line in chunk.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                    *self.stored.entry(line.to_vec()).or_default() += 1;
                }
            }
            if index < acknowledged {
                entry.acknowledge(&chunk.span, 1, i64::try_from(index).unwrap());
                self.ledger.insert(entry.id, entry.clone());
            }
        }
    }
}

proptest! {
    /// Checks the guarantee of this module: while a log grows, sometimes by half a line, the command that ingests it is
    /// killed at any time; in the end every line is stored once. Half a line that was the last one may also have been
    /// stored.
    #[test]
    fn every_line_is_stored_once(
        lengths in proptest::collection::vec(1_usize..30, 1..12),
        rounds in proptest::collection::vec((any::<u16>(), 0_usize..6, 0_usize..6), 1..6),
    ) {
        // No line is a prefix of another.
        let lines: Vec<Vec<u8>> =
            (0_u8..).zip(&lengths).map(|(index, length)| [&[b'A' + index], &b"x".repeat(*length)[..], b"."].concat()).collect();
        let text: Vec<u8> = lines.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
        let mut simulation = Simulation::default();
        let mut ends: Vec<usize> = rounds.iter().map(|(at, ..)| usize::from(*at) % (text.len() + 1)).collect();
        ends.sort_unstable();
        for (end, (_, sent, acknowledged)) in ends.into_iter().zip(rounds) {
            simulation.run(&text[..end], sent, acknowledged);
        }
        simulation.run(&text, usize::MAX, usize::MAX);
        for line in &lines {
            prop_assert_eq!(simulation.stored.remove(line), Some(1), "{}", String::from_utf8_lossy(line));
        }
        for (rest, times) in simulation.stored {
            prop_assert!(!rest.ends_with(b".") && times == 1, "{} {}", String::from_utf8_lossy(&rest), times);
        }
    }
}
