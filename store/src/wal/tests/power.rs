//! Power losses and kills at every operation, several in a row, on a disk that also fails now and then.
//!
//! Guarantee after each: everything acknowledged is there, once and in order; so is everything that an earlier start
//! has passed on; no record comes back that was rejected before a later record was acknowledged; and nothing that a
//! crash does looks like damage.
use super::*;
use std::collections::{BTreeMap, BTreeSet};

/// The expected state of a WAL over all its runs.
#[derive(Default)]
struct Model {
    /// Payloads that must be there, unless released.
    kept: BTreeMap<Vec<u8>, u64>,
    /// Payloads that must never be there.
    gone: BTreeSet<Vec<u8>>,
    /// Rejected payloads with no later record acknowledged yet.
    refused: BTreeSet<Vec<u8>>,
    /// The sequence up to which segments may have been removed.
    released: u64,
    next: u64,
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

impl Model {
    /// Compares the records that a start has found with the expected ones, and expects them from now on.
    fn check(&mut self, replay: &Replay, records: &[(u64, Vec<u8>)]) {
        assert!(records.windows(2).all(|two| two[0].0 < two[1].0), "in order");
        assert_eq!((replay.damaged, replay.damaged_bytes), (0, 0), "a crash is no damage: {replay:?}");
        let found: BTreeMap<&[u8], u64> =
            records.iter().map(|(sequence, payload)| (&payload[..], *sequence)).collect();
        assert_eq!(found.len(), records.len(), "once");
        for (payload, sequence) in &self.kept {
            match found.get(&payload[..]) {
                Some(at) => assert_eq!(at, sequence),
                None => assert!(*sequence <= self.released, "{sequence} is lost: {replay:?}"),
            }
        }
        for payload in found.keys() {
            assert!(!self.gone.contains(*payload), "a refused record came back: {replay:?}");
        }
        self.refused.clear();
        self.kept.extend(records.iter().map(|(sequence, payload)| (payload.clone(), *sequence)));
    }

    fn payload(&mut self, random: &mut Random) -> Vec<u8> {
        self.next += 1;
        let mut payload = self.next.to_le_bytes().to_vec();
        let length = [0, 30, 700, 3000, 9000][random.below(5) as usize];
        payload.resize(8 + random.below(length + 1) as usize, self.next as u8 | 1);
        payload
    }

    /// Stores some records, several at once. It ends early when the machine is off.
    fn work(&mut self, disk: &SimDisk, log: &Wal, random: &mut Random) {
        for _ in 0..12 {
            let payloads: Vec<_> = (0..=random.below(3)).map(|_| self.payload(random)).collect();
            let answers: Vec<_> = payloads.iter().map(|payload| submit(log, payload.clone())).collect();
            for (payload, answer) in payloads.into_iter().zip(answers) {
                self.answered(payload, &answer.recv_timeout(Duration::from_secs(20)).unwrap());
            }
            if disk.crashed() {
                return;
            }
            if random.below(6) == 0 {
                let newest = self.kept.values().max().copied().unwrap_or(0);
                self.released = self.released.max(newest.saturating_sub(random.below(20)));
                let _ = log.release(self.released);
            }
        }
    }

    fn answered(&mut self, payload: Vec<u8>, answer: &Result<u64, CommitError>) {
        match answer {
            Ok(sequence) => {
                self.gone.append(&mut self.refused);
                self.kept.insert(payload, *sequence);
            }
            Err(CommitError::Io(_) | CommitError::NoSpace) => _ = self.refused.insert(payload),
            Err(_) => _ = self.gone.insert(payload),
        }
    }
}

/// Runs one WAL several times, and cuts each run off at some operation.
fn live(seed: u64, crash_at: impl Fn(&mut Random) -> u64, faults: bool) {
    let mut random = Random(seed);
    let mut disk = SimDisk::new(seed);
    let mut model = Model::default();
    for _ in 0..5 {
        // No fault is injected while the past is read and made durable, because such a failure is reported in
        // `unsynced_segments`.
        let (log, replay, records) = open(&disk, options());
        model.check(&replay, &records);
        disk.crash_at(crash_at(&mut random));
        if faults && random.below(2) == 0 {
            disk.fail_one_in(4 + random.below(20));
        }
        model.work(&disk, &log, &mut random);
        // The machine goes down before the WAL can clean up, in the middle of that, or some time after.
        let running = disk.after_power_loss();
        let killed = disk.after_kill();
        match random.below(4) {
            0 => disk = killed,
            1 => {
                drop(log);
                disk = disk.after_power_loss();
            }
            _ => disk = running,
        }
    }
    let (_log, replay, records) = open(&disk, options());
    model.check(&replay, &records);
}

#[test]
fn at_every_operation() {
    for operation in 0..60 {
        for seed in 0..3 {
            live(seed * 1000 + operation, |_| operation, false);
        }
    }
}

#[test]
fn at_random_operations_of_a_failing_disk() {
    for seed in 0..600 {
        live(seed, |random| random.below(120), true);
    }
}

/// The crash happens while the WAL is being opened.
#[test]
fn while_starting() {
    for seed in 0..100 {
        let (mut random, mut disk, mut model) = (Random(seed), SimDisk::new(seed), Model::default());
        for _ in 0..6 {
            let (log, replay, records) = open(&disk, options());
            model.check(&replay, &records);
            disk.crash_at(5 + random.below(60));
            model.work(&disk, &log, &mut random);
            disk = disk.after_kill();
            drop(log);
            disk.crash_at(random.below(12));
            let (log, replay, records) = open(&disk, options());
            // The records that it passes on are only safe if they could be made durable.
            if replay.unsynced_segments == 0 {
                model.check(&replay, &records);
            }
            disk = disk.after_power_loss();
            drop(log);
        }
    }
}
