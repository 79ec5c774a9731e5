//! Tests of the WAL when nothing goes wrong.
use super::*;
use std::sync::atomic::AtomicUsize;

#[test]
fn what_is_stored_is_read_back_in_order() {
    let disk = SimDisk::new(1);
    let (log, replay, _) = open(&disk, options());
    assert_eq!(replay, Replay::default());
    let payloads: Vec<Vec<u8>> = (0..200).map(|n: usize| vec![n as u8; n * 13 % 900]).collect();
    for (n, payload) in payloads.iter().enumerate() {
        assert_eq!(store(&log, payload.clone()), Ok(n as u64 + 1));
    }
    assert!(log.stats().segments > 3, "{:?}", log.stats());
    assert_eq!((log.stats().records, log.stats().commits), (200, 200));
    assert_eq!(log.stats().fsync_buckets.iter().sum::<u64>(), 200);
    log.close();
    assert_eq!(store(&log, "late"), Err(CommitError::Closed));
    let (log, replay, records) = open(&disk, options());
    assert_eq!(replay.damaged + replay.torn + replay.void + replay.unsynced_segments, 0);
    assert!(records.iter().map(|record| record.0).eq(1..=200));
    assert!(records.iter().map(|record| &record.1).eq(&payloads));
    assert_eq!(store(&log, "next"), Ok(201), "no sequence is given twice");
}

#[test]
fn many_threads_share_commits_and_are_answered_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let options = WalOptions { segment_bytes: 1 << 20, max_bytes: 64 << 20, ..options() };
    let (log, _) = Wal::open(Arc::new(RealDisk), folder.path(), options.clone(), &mut |_| {}).unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    thread::scope(|scope| {
        for thread in 0..8_u8 {
            let (log, order) = (log.clone(), Arc::clone(&order));
            scope.spawn(move || {
                for n in 0..100_u8 {
                    let order = Arc::clone(&order);
                    let done = move |result: Result<u64, _>| order.lock().unwrap().push(result.unwrap());
                    log.submit([thread, n].repeat(900), log.epoch(), Box::new(done));
                }
            });
        }
    });
    // The test does not wait, because closing stores everything that was submitted.
    log.close();
    let stats = log.stats();
    assert_eq!(stats.records, 800);
    assert!(stats.commits < 800, "{stats:?}");
    assert!(order.lock().unwrap().iter().copied().eq(1..=800));
    let mut next = [0; 8];
    let (_log, replay) = Wal::open(Arc::new(RealDisk), folder.path(), options, &mut |record| {
        let (thread, n) = (record.payload[0], record.payload[1]);
        assert_eq!(n, next[thread as usize], "a thread's records stay in its order");
        next[thread as usize] += 1;
        assert_eq!(&record.payload[..], [thread, n].repeat(900));
        assert_eq!(record.payload.as_ptr().align_offset(64), 0);
    })
    .unwrap();
    assert_eq!((replay.records, replay.damaged, replay.torn), (800, 0, 0));
}

#[test]
fn records_of_all_sizes_in_one_group() {
    let disk = SimDisk::new(1);
    let options =
        WalOptions { segment_bytes: 1 << 20, max_bytes: 16 << 20, group_bytes: 1 << 20, ..options() };
    let (log, ..) = open(&disk, options.clone());
    let payloads: Vec<Vec<u8>> = [0, 1, 63, 64, 65, 16 << 10, 1, 40_001, 16_383, 100_000, 0]
        .iter()
        .enumerate()
        .map(|(n, length)| vec![n as u8 + 1; *length])
        .collect();
    let slices: Vec<&[u8]> = payloads.iter().map(Vec::as_slice).collect();
    assert!(store_together(&log, &slices).iter().all(Result::is_ok));
    assert_eq!(log.stats().commits, 2);
    log.close();
    let (_log, _, records) = open(&disk, options);
    assert!(records.iter().skip(1).map(|record| &record.1).eq(&payloads));
}

#[test]
fn starting_and_stopping_leaves_no_files_behind() {
    let disk = SimDisk::new(1);
    for _ in 0..5 {
        open(&disk, options()).0.close();
        assert_eq!(disk.paths().len(), 1);
    }
    let (log, ..) = open(&disk, options());
    store(&log, "kept").unwrap();
    let disk = disk.after_kill();
    for _ in 0..5 {
        let (log, _, records) = open(&disk, options());
        assert_eq!(records.len(), 1);
        assert_eq!(disk.paths().len(), 2);
        assert!(log.stats().bytes < 2 * options().segment_bytes, "preallocated zeros were given back");
        drop(log);
    }
}

#[test]
fn a_full_log_refuses_until_segments_are_released() {
    let disk = SimDisk::new(1);
    let limit = WalOptions { max_bytes: 128 << 10, ..options() };
    let (log, ..) = open(&disk, limit.clone());
    let fill = || {
        let stored = std::iter::from_fn(|| {
            store(&log, vec![1; 5000]).map_err(|error| assert_eq!(error, CommitError::Full)).ok()
        });
        stored.last().unwrap()
    };
    let newest = fill();
    let stats = log.stats();
    assert!(stats.full && stats.failing && stats.bytes <= limit.max_bytes, "{stats:?}");
    assert_eq!(store(&log, vec![1; 5000]), Err(CommitError::Full));
    let on_disk: u64 = disk.list(Path::new(FOLDER)).unwrap().iter().map(|file| file.bytes).sum();
    assert_eq!((log.stats().bytes, log.stats().segments), (on_disk, disk.paths().len() as u64));

    assert_eq!(log.release(1).unwrap(), 0, "no segment is whole below that");
    let before = contents(&disk).1;
    assert!(log.release(newest / 2).unwrap() > 0);
    let after = contents(&disk).1;
    assert!(before.ends_with(&after) && after[0].0 <= newest / 2 + 1, "whole segments, and none too many");
    assert!(!log.stats().full);
    let more = fill();
    assert!(more > newest);
    log.release(u64::MAX).unwrap();
    let kept = contents(&disk).1;
    assert!(!kept.is_empty(), "the newest segment stays");
    drop(log);

    // Released segments are not damage, and sequences continue even when no record is left.
    let (log, replay, records) = open(&disk, limit.clone());
    assert_eq!((replay.damaged, replay.torn, records), (0, 0, kept));
    assert!(log.release(u64::MAX).unwrap() > 0);
    drop(log);
    let (log, replay, _) = open(&disk, limit);
    assert_eq!((replay.records, replay.damaged), (0, 0));
    assert!(store(&log, "on").unwrap() > more);
}

#[test]
fn a_log_that_is_full_can_be_opened_and_released() {
    let disk = SimDisk::new(1);
    let (log, ..) = open(&disk, options());
    while log.stats().bytes < 200 << 10 {
        store(&log, vec![1; 5000]).unwrap();
    }
    drop(log);
    let smaller = WalOptions { max_bytes: 64 << 10, ..options() };
    let (log, replay, _) = open(&disk, smaller);
    assert!(replay.records > 10);
    while store(&log, vec![2; 500]) != Err(CommitError::Full) {}
    log.release(replay.newest).unwrap();
    store(&log, vec![2; 500]).unwrap();
}

/// Scenario: a WAL that nobody releases is filled until it rejects records, and opened again, closed or killed, many
/// times.
/// Guarantee: it stays within its size limit, except for the rest of one group and the header of a segment; everything
/// that was acknowledged is read back.
#[test]
fn the_size_holds_over_restarts() {
    for is_killed in [false, true] {
        let mut disk = SimDisk::new(1);
        let limit = WalOptions { max_bytes: 128 << 10, ..options() };
        let mut stored = 0;
        for round in 0..12 {
            let (log, _, records) = open(&disk, limit.clone());
            assert_eq!(records.len(), stored, "round {round}");
            while store(&log, vec![1; 3000]).is_ok() {
                stored += 1;
            }
            assert_eq!(store(&log, vec![1; 3000]), Err(CommitError::Full));
            let on_disk: u64 = disk.list(Path::new(FOLDER)).unwrap().iter().map(|file| file.bytes).sum();
            let most = limit.max_bytes + (limit.group_bytes as u64) + (8 << 10);
            assert!(on_disk <= most && log.stats().bytes <= most, "round {round}: {on_disk} bytes");
            if is_killed {
                disk = disk.after_kill();
            }
            drop(log);
        }
    }
}

#[test]
fn what_can_never_be_stored_is_refused_alone() {
    let disk = SimDisk::new(1);
    let (log, ..) = open(&disk, WalOptions { group_bytes: 1 << 20, ..options() });
    let large = vec![0; (256 << 10) + 1];
    let answers = store_together(&log, &[b"one", &large, b"two"]);
    assert_eq!(answers[0], Ok(2));
    assert_eq!(answers[1], Err(CommitError::TooLarge));
    assert_eq!(answers[2], Err(CommitError::Stale), "it may lean on the one before");
    assert_eq!(store(&log, vec![0; 200 << 10]), Ok(3), "larger than a segment, and taken");
    assert_eq!(store(&log, "after"), Ok(4));
    drop(log);
    assert_eq!(open(&disk, options()).2.len(), 4);
}

#[test]
fn sequences_begin_where_the_caller_says() {
    let disk = SimDisk::new(1);
    let (log, ..) = open(&disk, WalOptions { first_sequence: 500, ..options() });
    assert_eq!(store(&log, "a"), Ok(500));
    drop(log);
    assert_eq!(store(&open(&disk, options()).0, "b"), Ok(501));
}

#[test]
fn a_callback_may_panic_or_hold_the_log() {
    let disk = SimDisk::new(1);
    let (log, ..) = open(&disk, options());
    log.submit(b"a".to_vec(), 0, Box::new(|_| panic!("a caller's bug; this message is expected")));
    assert_eq!(store(&log, "b"), Ok(2));
    let (sender, receiver) = bounded(1);
    let (last, other) = (log.clone(), log.clone());
    log.submit(
        b"c".to_vec(),
        0,
        Box::new(move |result| {
            other.close();
            drop(last);
            sender.send(result).unwrap();
        }),
    );
    drop(log);
    assert_eq!(receiver.recv_timeout(Duration::from_secs(20)).unwrap(), Ok(3));
}

#[test]
fn every_record_is_answered_even_while_the_log_closes() {
    for round in 0..20 {
        let disk = SimDisk::new(round);
        let (log, ..) = open(&disk, options());
        let answered = Arc::new(AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let answered = Arc::clone(&answered);
                        let done = move |_| _ = answered.fetch_add(1, Ordering::SeqCst);
                        log.submit(b"x".to_vec(), log.epoch(), Box::new(done));
                    }
                });
            }
            scope.spawn(|| log.close());
        });
        log.close();
        assert_eq!(answered.load(Ordering::SeqCst), 150);
        assert_eq!(contents(&disk).1.len() as u64, log.stats().records);
    }
}

/// Another process reads while this one writes and releases: it sees complete records, in order, and no damage.
#[test]
fn reading_while_writing() {
    let folder = tempfile::tempdir().unwrap();
    let options = WalOptions { segment_bytes: 64 << 10, max_bytes: 1 << 20, ..options() };
    let (log, _) = Wal::open(Arc::new(RealDisk), folder.path(), options, &mut |_| {}).unwrap();
    let writing = std::sync::atomic::AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..400_u64 {
                let newest = store(&log, n.to_le_bytes().repeat(200)).unwrap();
                if n % 50 == 49 {
                    log.release(newest - 100.min(newest)).unwrap();
                }
            }
            writing.store(false, Ordering::SeqCst);
        });
        let mut reads = 0;
        while writing.load(Ordering::SeqCst) || reads == 0 {
            let mut last = 0;
            let replay = read(&RealDisk, folder.path(), &mut |record| {
                assert!(record.sequence > last);
                last = record.sequence;
                assert_eq!(&record.payload[..], (last - 1).to_le_bytes().repeat(200));
            });
            assert_eq!((replay.damaged, replay.unreadable_segments), (0, 0), "{replay:?}");
            reads += 1;
        }
    });
}

#[test]
fn a_view_holds_what_is_released_after_it_and_begins_where_it_is_asked_to() {
    let disk = SimDisk::new(1);
    let (log, ..) = open(&disk, WalOptions { max_bytes: 8 << 20, ..options() });
    for n in 1..=200_u64 {
        assert_eq!(store(&log, n.to_le_bytes().repeat(400)).unwrap(), n);
    }
    for after in [0, 1, 7, 100, 199, 200, 500] {
        let view = WalView::open(&disk, Path::new(FOLDER)).unwrap();
        let mut seen = Vec::new();
        view.read(after, &mut |record| {
            seen.push(record.sequence);
            if seen.len() == 60 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(seen, (after + 1..=200).take(60).collect::<Vec<_>>(), "after {after}");
    }
    let view = WalView::open(&disk, Path::new(FOLDER)).unwrap();
    assert!(log.release(150).unwrap() > 3);
    let mut seen = 0;
    let replay = view.read(20, &mut |_| {
        seen += 1;
        ControlFlow::Continue(())
    });
    assert_eq!((seen, replay.damaged), (180, 0));
}

#[test]
fn a_log_from_the_future_is_not_touched() {
    let disk = SimDisk::new(1);
    let (log, ..) = open(&disk, options());
    store(&log, "a").unwrap();
    drop(log);
    let path = disk.paths().remove(0);
    let mut bytes = disk.file(&path);
    for label in [0, 4096] {
        bytes[label + 8] = 2;
        let checksum = crc32fast::hash(&bytes[label..label + 124]);
        bytes[label + 124..label + 128].copy_from_slice(&checksum.to_le_bytes());
    }
    disk.put(&path, bytes.clone());
    let opened = Wal::open(Arc::new(disk.clone()), Path::new(FOLDER), options(), &mut |_| {});
    let text = opened.unwrap_err().to_string();
    assert!(text.contains("newer faultline (log format 2)"), "{text}");
    assert_eq!((disk.paths().len(), disk.file(&path)), (1, bytes));
}
