//! What is known of a text is found, and what is not is not.

use super::*;
use xxhash_rust::xxh3::xxh3_128;

fn mark(text: &[u8]) -> Mark {
    Mark { position: text.len() as u64, hash: Digest(xxh3_128(text)) }
}

/// An entry for a text that was ingested so far; the last line may lack its newline.
fn entry(id: u64, text: &[u8]) -> Entry {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let first = Text::new(text).first_line();
    let mut entry = Entry::new(id, "log", first, None);
    entry.add(mark(&text[..whole]), false, 1, 1);
    if whole < text.len() {
        entry.add(mark(text), true, 1, 1);
    }
    entry
}

/// Where a text goes on, by which entry, and whether it has nothing new.
fn check(known: &[&[u8]], text: &[u8], position: u64, id: Option<u64>, nothing_new: bool) {
    let entries: Vec<Entry> = known.iter().enumerate().map(|(id, text)| entry(id as u64, text)).collect();
    let mut found = find(&entries, || Ok(text)).unwrap();
    assert_eq!(found.text.position(), position, "{text:?}");
    assert_eq!(found.entry.as_ref().map(|(entry, _)| entry.id), id, "{text:?}");
    assert_eq!(found.has_nothing_new(), nothing_new, "{text:?}");
    assert_eq!(found.text.mark(), mark(&text[..usize::try_from(position).unwrap()]));
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
    entry.go_on(Known::Done, 8);
    entry.add(mark(b"one\ntwo\n"), false, 5, 2);
    let entries = [entry];
    let mut found = find(&entries, || Ok(&b"one\n"[..])).unwrap();
    assert!(found.has_nothing_new());
    let (known, place) = found.entry.unwrap();
    assert_eq!((known.id, known.lines_at(place)), (7, 1));
    // Another text with the same beginning goes on by itself.
    let mut found = find(&entries, || Ok(&b"one\n2\n"[..])).unwrap();
    assert!(!found.has_nothing_new());
    let (mut other, place) = found.entry.unwrap();
    other.go_on(place, 9);
    assert_eq!((other.id, other.done, other.lines), (9, mark(b"one\n"), 1));
}
