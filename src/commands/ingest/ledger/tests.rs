//! Tests that the ledger claims only what was acknowledged, survives damage and concurrent writes, and stays small.

use super::*;
use std::fs;

fn offset(position: u64) -> HashedOffset {
    HashedOffset { position, hash: ContentHash(u128::from(position) << 64) }
}

/// Returns a chunk that ends at this position; one without a newline begins five bytes earlier.
fn span(end: u64, is_tail: bool) -> ChunkSpan {
    ChunkSpan { start: offset(end.saturating_sub(5)), end: offset(end), is_tail }
}

fn entry(id: u64, time: i64) -> Entry {
    let mut entry = Entry::new(id, "a.log", ContentHash(7), None);
    entry.acknowledge(&span(10, false), 3, time);
    entry
}

#[test]
fn what_is_saved_is_read_and_others_entries_stay() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state/ingest.json");
    let mut first = Ledger::open(path.clone()).unwrap();
    let mut second = Ledger::open(path.clone()).unwrap();
    first.save().unwrap();
    assert!(!path.exists(), "nothing to say, nothing written");
    let mut mine = entry(1, 5);
    mine.add_plan(&Chunk {
        body: bytes::Bytes::new(),
        span: span(20, false),
        first_line: 4,
        plan: Some(TailPlan { lines: 20, end: 25 }),
    });
    first.put(&mine);
    first.save().unwrap();
    second.put(&entry(2, 6));
    second.save().unwrap();
    let read = Ledger::open(path).unwrap();
    assert_eq!(read.resumable_entries(false, 0), [mine, entry(2, 6)]);
    assert_eq!(second.resumable_entries(false, 0).len(), 2, "a save learns what others wrote");
}

#[test]
fn an_entry_moves_with_what_is_acknowledged() {
    let mut entry = Entry::new(1, "a.log", ContentHash(7), None);
    assert_eq!(entry.done, HashedOffset::start());
    (entry.plans, entry.in_parts) = (vec![TailPlan { lines: 20, end: 25 }], vec![10, 20]);
    entry.acknowledge(&span(10, false), 3, 1);
    assert!(!entry.plans.is_empty(), "what may have been sent is still beyond");
    assert_eq!(entry.in_parts, [20]);
    entry.acknowledge(&span(20, false), 3, 2);
    entry.acknowledge(&span(25, true), 1, 3);
    assert_eq!((entry.done, entry.tail), (offset(20), Some(offset(25))));
    assert!(entry.plans.is_empty());
    assert_eq!((entry.lines, entry.time), (7, 3));
    entry.acknowledge(&span(40, false), 1, 4);
    assert_eq!((entry.done, entry.tail), (offset(40), None));
}

#[test]
fn a_damaged_ledger_is_neither_used_nor_lost() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ingest.json");
    for bad in ["", "{", "[]", r#"{"version":2,"entries":[]}"#, r#"{"version":1,"entries":[{"id":1}]}"#] {
        let mut ledger = Ledger::open(folder.path().join("none.json")).unwrap();
        ledger.file = file::LedgerFile::new(path.clone());
        ledger.put(&entry(1, 1));
        fs::write(&path, bad).unwrap();
        for error in [Ledger::open(path.clone()).err().unwrap(), ledger.save().unwrap_err()] {
            assert!(matches!(error, LedgerError::Damaged { .. }), "{bad}: {error}");
            assert!(error.to_string().contains("ingest.json") && error.to_string().contains("remove it"));
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), bad);
    }
}

#[test]
fn the_oldest_make_room() {
    let entries = (0..10).map(|id| (id, entry(id, 100 - i64::try_from(id).unwrap()))).collect();
    let left: Vec<u64> = drop_oldest(entries, 3).into_keys().collect();
    assert_eq!(left, [0, 1, 2]);
    let mut entry = entry(1, 1);
    for index in 0..100 {
        entry.resume_from(ResumeOffset::Done, 0);
        entry.acknowledge(&span(100 + index, false), 1, 1);
    }
    assert_eq!(entry.earlier.len(), MAX_EARLIER);
    assert_eq!(entry.earlier.last().map(|(offset, _)| offset.position), Some(198));
}

/// Checks that a run with `--again` is continued only by another one, for a day, and affects no other run before its
/// end.
#[test]
fn an_unfinished_second_time_is_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut ledger = Ledger::open(folder.path().join("ingest.json")).unwrap();
    let again = Entry { again: Some("run".to_owned()), ..entry(2, 1_000) };
    ledger.put(&entry(1, 500));
    ledger.put(&again);
    ledger.save().unwrap();
    assert_eq!(ledger.resumable_entries(false, 2_000), [entry(1, 500)]);
    assert_eq!(ledger.resumable_entries(true, 2_000), [again]);
    assert!(ledger.resumable_entries(true, 1_000 + AGAIN_WINDOW_US).is_empty());
}
