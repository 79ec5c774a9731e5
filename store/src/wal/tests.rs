//! Tests of the WAL as a whole.
use super::*;
use crate::disk::RealDisk;
use crate::disk::sim::{Operation, SimDisk};
use crossbeam_channel::{Receiver, bounded};
use std::time::Duration;

mod behaviour;
mod damage;
mod failure;
mod power;
mod speed;

const FOLDER: &str = "/log";

fn options() -> WalOptions {
    WalOptions {
        segment_bytes: 32 << 10,
        max_bytes: 1 << 20,
        group_bytes: 4 << 10,
        preamble: b"the schemas".to_vec(),
        schema: 7,
        first_sequence: 1,
    }
}

/// Opens a WAL, and returns its content.
fn open(disk: &SimDisk, options: WalOptions) -> (Wal, Replay, Vec<(u64, Vec<u8>)>) {
    let mut records = Vec::new();
    let opened = Wal::open(Arc::new(disk.clone()), Path::new(FOLDER), options, &mut |record| {
        assert_eq!(record.schema, 7);
        assert_eq!(&*record.preamble, b"the schemas");
        assert_eq!(record.payload.as_ptr().align_offset(64), 0);
        records.push((record.sequence, record.payload.to_vec()));
    });
    let (log, replay) = opened.unwrap();
    assert_eq!(replay.records, records.len() as u64);
    assert_eq!(replay.newest, records.last().map_or(0, |record| record.0));
    (log, replay, records)
}

/// Reads the records of a WAL.
fn contents(disk: &SimDisk) -> (Replay, Vec<(u64, Vec<u8>)>) {
    let mut records = Vec::new();
    let replay = read(disk, Path::new(FOLDER), &mut |record| {
        records.push((record.sequence, record.payload.to_vec()));
    });
    (replay, records)
}

/// Reads a whole WAL without opening it for writing.
fn read(disk: &dyn Disk, folder: &Path, visit: &mut dyn FnMut(Record)) -> Replay {
    WalView::open(disk, folder).unwrap().read(0, &mut |record| {
        visit(record);
        ControlFlow::Continue(())
    })
}

/// Submits a record with the current epoch.
fn submit(log: &Wal, payload: impl Into<Vec<u8>>) -> Receiver<Result<u64, CommitError>> {
    let (sender, receiver) = bounded(1);
    let done = move |result| sender.send(result).unwrap();
    log.submit(payload.into(), log.epoch(), Box::new(done));
    receiver
}

/// Submits a record and waits. It retries while the record is stale, because a failure is reported before the epoch
/// rises.
fn store(log: &Wal, payload: impl Into<Vec<u8>>) -> Result<u64, CommitError> {
    let payload = payload.into();
    loop {
        let answer = submit(log, payload.clone()).recv_timeout(Duration::from_secs(20));
        match answer.expect("every record is answered") {
            Err(CommitError::Stale) => thread::yield_now(),
            answer => return answer,
        }
    }
}

/// Stores several records with one commit (if they fit), by keeping the commit thread busy meanwhile. It also stores an
/// extra record before them.
fn store_together(log: &Wal, payloads: &[&[u8]]) -> Vec<Result<u64, CommitError>> {
    let (go, wait) = bounded::<()>(0);
    let (busy, is_busy) = bounded(1);
    let block = move |_| {
        busy.send(()).unwrap();
        let _ = wait.recv();
    };
    log.submit(b"before".to_vec(), log.epoch(), Box::new(block));
    is_busy.recv().unwrap();
    let waiting: Vec<_> = payloads.iter().map(|payload| submit(log, *payload)).collect();
    drop(go);
    waiting.iter().map(|answer| answer.recv_timeout(Duration::from_secs(20)).unwrap()).collect()
}
