//! Tests of a disk that is full or fails: the WAL rejects records, and recovers by itself.
use super::*;

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// Whatever operation fails, with whatever error: acknowledged records are there, rejected ones are not.
#[test]
fn refuses_while_it_fails_and_then_goes_on() {
    for (errno, expected) in [(ENOSPC, CommitError::NoSpace), (EIO, CommitError::Io("".into()))] {
        for operation in [Operation::Append, Operation::Sync, Operation::Create, Operation::SyncDir] {
            let disk = SimDisk::new(errno as u64);
            let (log, ..) = open(&disk, options());
            let mut acknowledged = vec![(store(&log, "before").unwrap(), b"before".to_vec())];
            disk.fail(operation, errno);
            // There are enough records to need a new segment; those that still fit into the old one are stored.
            for n in 0..20_u8 {
                let payload = vec![n; 3000];
                match store(&log, payload.clone()) {
                    Ok(sequence) => acknowledged.push((sequence, payload)),
                    Err(error) => {
                        assert_eq!(std::mem::discriminant(&error), std::mem::discriminant(&expected));
                        assert!(log.stats().failing && log.stats().last_error.is_some());
                    }
                }
            }
            assert!(acknowledged.len() < 15, "{operation:?}");
            disk.fail(operation, 0);
            acknowledged.push((store(&log, "after").unwrap(), b"after".to_vec()));
            assert!(!log.stats().failing);
            let dropped = disk.after_power_loss();
            drop(log);
            for disk in [disk, dropped] {
                let (log, replay, records) = open(&disk, options());
                assert_eq!(records, acknowledged, "{operation:?}");
                assert_eq!((replay.damaged, replay.torn), (0, 0), "{operation:?}: {replay:?}");
                assert!(store(&log, "more").unwrap() > records.last().unwrap().0);
            }
        }
    }
}

/// The disk reports a failure but has stored everything: the rejected records are void, also after more failures and
/// restarts.
#[test]
fn refused_records_do_not_come_back() {
    for seed in 0..40 {
        let disk = SimDisk::new(seed);
        let (log, ..) = open(&disk, options());
        let answers = store_together(&log, &[b"one", b"two"]);
        assert_eq!(answers, [Ok(2), Ok(3)]);
        for failure in [Operation::Sync, Operation::Append, Operation::Sync] {
            disk.fail(failure, EIO);
            disk.fail(Operation::Truncate, EIO);
            assert!(store(&log, "refused").is_err());
            disk.fail(failure, 0);
        }
        // Either a later record or the close of the WAL makes them void.
        if seed % 2 == 0 {
            assert!(store(&log, "later").unwrap() > 3);
        } else {
            log.close();
        }
        let mut disk = if seed % 4 < 2 { disk.after_power_loss() } else { disk.after_kill() };
        for _ in 0..3 {
            let (log, replay, records) = open(&disk, options());
            assert!(!records.iter().any(|record| record.1 == b"refused"), "{replay:?}");
            assert_eq!((replay.damaged, replay.torn), (0, 0), "{replay:?}");
            drop(log);
            disk = disk.after_power_loss();
        }
    }
}

#[test]
fn what_was_queued_behind_a_failure_is_stale() {
    let disk = SimDisk::new(1);
    let (log, ..) = open(&disk, WalOptions { group_bytes: 1, ..options() });
    let epoch = log.epoch();
    disk.fail(Operation::Sync, EIO);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (busy, is_busy) = bounded(1);
    let (go, wait) = bounded::<()>(0);
    let first = {
        let (log, seen) = (log.clone(), Arc::clone(&seen));
        move |result: Result<u64, _>| {
            busy.send(()).unwrap();
            let _ = wait.recv();
            seen.lock().unwrap().push((result.unwrap_err(), log.epoch()));
        }
    };
    log.submit(b"fails".to_vec(), epoch, Box::new(first));
    is_busy.recv().unwrap();
    for _ in 0..3 {
        let (asked, seen) = (log.clone(), Arc::clone(&seen));
        let done =
            move |result: Result<u64, _>| seen.lock().unwrap().push((result.unwrap_err(), asked.epoch()));
        log.submit(b"queued".to_vec(), epoch, Box::new(done));
    }
    disk.fail(Operation::Sync, 0);
    drop(go);
    while log.epoch() == epoch {
        thread::yield_now();
    }
    let seen = std::mem::take(&mut *seen.lock().unwrap());
    assert!(matches!(seen[0], (CommitError::Io(_), at) if at == epoch), "answered before the epoch rises");
    assert_eq!(seen[1..], vec![(CommitError::Stale, epoch); 3]);
    // This record was begun before the epoch rose, and is submitted after it.
    let (sender, late) = bounded(1);
    log.submit(b"late".to_vec(), epoch, Box::new(move |result| sender.send(result).unwrap()));
    assert_eq!(late.recv().unwrap(), Err(CommitError::Stale));
    assert_eq!(log.epoch(), epoch + 1, "a stale record is no failure");
    assert_eq!(store(&log, "fresh"), Ok(2));
    let stats = log.stats();
    assert_eq!((stats.rejected_io, stats.rejected_stale, stats.records), (1, 4, 1));
}

/// A WAL that is opened on a full disk reads, rejects records, and accepts records as soon as the disk does.
#[test]
fn starts_on_a_full_disk() {
    let disk = SimDisk::new(1);
    let (log, ..) = open(&disk, options());
    for _ in 0..20 {
        store(&log, vec![1; 3000]).unwrap();
    }
    drop(log);
    for operation in [Operation::Create, Operation::Append, Operation::Sync, Operation::SyncDir] {
        disk.fail(operation, ENOSPC);
        let (log, replay, records) = open(&disk, options());
        assert!(records.len() >= 20);
        assert_eq!(replay.unsynced_segments > 0, matches!(operation, Operation::Sync | Operation::Append));
        assert!(log.stats().failing);
        assert_eq!(store(&log, "no"), Err(CommitError::NoSpace));
        // The newest segment stays, because it names the assigned sequences.
        disk.fail(Operation::SyncDir, 0);
        disk.fail(operation, 0);
        store(&log, "yes").unwrap();
        assert!(!log.stats().failing);
    }
}

/// Releasing segments frees space on a full disk, and needs none itself.
#[test]
fn releases_on_a_full_disk() {
    let disk = SimDisk::new(1);
    let (log, ..) = open(&disk, options());
    let mut newest = 0;
    for _ in 0..20 {
        newest = store(&log, vec![1; 3000]).unwrap();
    }
    drop(log);
    disk.fail(Operation::Create, ENOSPC);
    let (log, ..) = open(&disk, options());
    assert!(log.release(newest).unwrap() > 0);
    drop(log);
    disk.fail(Operation::Create, 0);
    let (log, replay, _) = open(&disk, options());
    assert_eq!(replay.damaged, 0);
    assert!(store(&log, "on").unwrap() > newest, "the newest segment was kept for its sequences");
}

/// A lasting failure leaves nothing behind on disk that grows.
#[test]
fn failing_for_long_leaves_no_files_behind() {
    for operation in [Operation::Append, Operation::Sync, Operation::Create, Operation::SyncDir] {
        let disk = SimDisk::new(1);
        let (log, ..) = open(&disk, options());
        store(&log, "a").unwrap();
        disk.fail(operation, EIO);
        for _ in 0..100 {
            let _ = store(&log, vec![0; 20_000]);
        }
        assert!(disk.paths().len() <= 3, "{operation:?}: {:?}", disk.paths());
        let on_disk: u64 = disk.list(Path::new(FOLDER)).unwrap().iter().map(|file| file.bytes).sum();
        assert!(log.stats().bytes <= on_disk + options().segment_bytes, "{operation:?}");
        disk.fail(operation, 0);
        store(&log, "b").unwrap();
    }
}

#[test]
fn a_release_that_fails_is_tried_again() {
    let disk = SimDisk::new(1);
    let (log, ..) = open(&disk, options());
    let newest = (0..20).fold(0, |_, _| store(&log, vec![1; 3000]).unwrap());
    for operation in [Operation::Remove, Operation::SyncDir] {
        disk.fail(operation, EIO);
        let before = log.stats().segments;
        log.release(newest).unwrap_err();
        assert_eq!(log.stats().segments, before);
        disk.fail(operation, 0);
    }
    assert!(log.release(newest).unwrap() > 1);
    drop(log);
    assert_eq!(open(&disk, options()).1.damaged, 0);
}

/// Scenario: a log on a real disk is removed, renamed, or replaced by another folder, or loses the segment that is being
/// written.
/// Guarantee: nothing is acknowledged that the next start would not find; when the folder is back, so is the log, without a
/// restart.
#[test]
fn what_nobody_would_find_again_is_not_acknowledged() {
    use std::fs;
    type Harm = fn(&Path, &Path);
    let remove: Harm = |data, _| fs::remove_dir_all(data).unwrap();
    let rename: Harm = |data, aside| fs::rename(data, aside).unwrap();
    let replace: Harm = |data, aside| {
        fs::rename(data, aside).unwrap();
        fs::create_dir_all(data.join("wal")).unwrap();
    };
    let rename_log: Harm = |data, aside| fs::rename(data.join("wal"), aside).unwrap();
    let replace_log: Harm = |data, aside| {
        fs::rename(data.join("wal"), aside).unwrap();
        fs::create_dir(data.join("wal")).unwrap();
    };
    for (name, harm, segments) in [
        ("removed", remove, 32 << 10),
        ("renamed", rename, 32 << 10),
        ("replaced", replace, 32 << 10),
        ("log renamed", rename_log, 32 << 10),
        ("log replaced", replace_log, 32 << 10),
        // This also holds where every record needs a new segment.
        ("renamed", rename, 64),
        ("replaced", replace, 64),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (data, aside) = (folder.path().join("data"), folder.path().join("aside"));
        let options = WalOptions { segment_bytes: segments, ..options() };
        let (log, _) = Wal::open(Arc::new(RealDisk), &data.join("wal"), options, &mut |_| {}).unwrap();
        store(&log, "before").unwrap();
        log.is_in_place().unwrap();
        harm(&data, &aside);
        for _ in 0..3 {
            let refused = store(&log, "after").unwrap_err();
            assert!(
                matches!(&refused, CommitError::Displaced(why) if why.contains("removed")),
                "{name}: {refused}"
            );
        }
        assert!(matches!(log.is_in_place(), Err(CommitError::Displaced(_))), "{name}");
        let stats = log.stats();
        assert!(stats.displaced && stats.failing && stats.rejected_displaced >= 3, "{name}: {stats:?}");
        if name == "replaced" {
            assert_eq!(fs::read_dir(data.join("wal")).unwrap().count(), 0, "nothing is written there");
        }
        if name == "renamed" {
            fs::rename(&aside, &data).unwrap();
            log.is_in_place().unwrap();
            store(&log, "again").unwrap();
            log.close();
            let mut found = Vec::new();
            read(&RealDisk, &data.join("wal"), &mut |record| found.push(record.payload.to_vec()));
            assert_eq!(found, [b"before".to_vec(), b"again".to_vec()]);
        }
    }
}

/// Scenario: the segment that is being written is removed.
/// Guarantee: the next record is refused, and the one after it is stored in another segment.
#[test]
fn a_segment_that_is_removed_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (log, _) = Wal::open(Arc::new(RealDisk), folder.path(), options(), &mut |_| {}).unwrap();
    store(&log, "before").unwrap();
    // The next segment may have been prepared already.
    let oldest = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).min().unwrap();
    std::fs::remove_file(oldest).unwrap();
    assert!(matches!(store(&log, "refused"), Err(CommitError::Displaced(_))));
    store(&log, "after").unwrap();
    log.close();
    let mut found = Vec::new();
    read(&RealDisk, folder.path(), &mut |record| found.push(record.payload.to_vec()));
    assert_eq!(found, [b"after".to_vec()]);
}
