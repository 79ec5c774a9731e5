//! Kills, power losses and failures at every operation that a table makes on its disk.
//!
//! Guarantee after each: everything that `flush` has acknowledged is in the table; the table holds exactly the rows up
//! to its watermark, each once; and when the rest is flushed again, it holds everything, each once.
use super::*;
use crate::disk::sim::Operation;

/// The number of flushes in the interrupted run: enough to flush, merge, expire, write a checkpoint and delete files.
const FLUSHES: u64 = 34;

/// Returns the records of the run: three rows each, of two days.
fn records(table: Table) -> Vec<Arc<BufferedRecord>> {
    let rows = |sequence: u64| {
        let number = sequence.cast_signed() * 10;
        [(NOW, number), (NOW - DAY, number + 1), (NOW + 1, number + 2)]
    };
    (1..=FLUSHES).map(|sequence| record(table, sequence, &rows(sequence))).collect()
}

fn numbers(up_to: u64) -> impl Iterator<Item = i64> {
    (1..=up_to.cast_signed()).flat_map(|sequence| [sequence * 10, sequence * 10 + 1, sequence * 10 + 2])
}

/// Flushes records that are not flushed yet, one at a time, with maintenance in between. Returns the last acknowledged
/// one.
fn tell(bench: &Bench, records: &[Arc<BufferedRecord>]) -> u64 {
    let mut yes = bench.files().flushed;
    for record in records {
        if bench.flush(std::slice::from_ref(record)).is_err() {
            return yes;
        }
        yes = yes.max(record.sequence);
        if bench.maintenance().is_err() {
            return yes;
        }
    }
    yes
}

/// Checks the guarantee after an interruption.
fn verify(disk: &SimDisk, table: Table, yes: u64, what: &str) {
    let bench = Bench::open(disk, table).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(bench.set_aside.is_empty(), "{what}: a crash leaves nothing bad: {:?}", bench.set_aside);
    let flushed = bench.files().flushed;
    assert!(flushed >= yes, "{what}: said yes to {yes}, has {flushed}");
    assert_eq!(bench.rows(), expected(table, numbers(flushed)), "{what}: up to {flushed}");
    assert_eq!(tell(&bench, &records(table)), FLUSHES, "{what}");
    assert_eq!(bench.rows(), expected(table, numbers(FLUSHES)), "{what}: in the end");
}

/// Returns the step between interrupted operations; 1 if the test must interrupt all of them.
fn step(of: usize) -> usize {
    if std::env::var_os("FAULTLINE_EVERY_OPERATION").is_some() { 1 } else { of }
}

fn interrupt_everywhere(table: Table, first: u64, power: fn(&SimDisk) -> SimDisk) {
    let (mut reached_the_end, mut kills) = (false, 0);
    for at in (first..).step_by(step(47)) {
        let disk = SimDisk::new(at);
        disk.crash_at(at);
        let yes = Bench::open(&disk, table).map_or(0, |bench| tell(&bench, &records(table)));
        reached_the_end = !disk.crashed();
        if reached_the_end {
            break;
        }
        kills += 1;
        verify(&power(&disk), table, yes, &format!("{} at operation {at}", table.name()));
    }
    assert!(reached_the_end && kills > 10, "{kills}");
}

#[test]
fn a_kill_at_any_operation_loses_nothing_and_doubles_nothing() {
    interrupt_everywhere(Table::Rejects, 3, SimDisk::after_kill);
}

#[test]
fn a_power_loss_at_any_operation_loses_nothing_and_doubles_nothing() {
    interrupt_everywhere(Table::Rejects, 7, SimDisk::after_power_loss);
}

#[test]
fn sums_survive_a_power_loss_at_any_operation() {
    interrupt_everywhere(Table::Traffic, 11, SimDisk::after_power_loss);
}

/// Every kind of operation fails for a while, at every stage, including the one after which a commit exists but is
/// reported as failed. The same process continues.
#[test]
fn failures_are_survived_without_a_restart() {
    for operation in [
        Operation::Create,
        Operation::Append,
        Operation::Sync,
        Operation::SyncDir,
        Operation::Link,
        Operation::Remove,
    ] {
        let disk = SimDisk::new(5);
        let bench = Bench::open(&disk, Table::Rejects).unwrap();
        for record in &records(Table::Rejects) {
            disk.fail(operation, 5);
            let failed = bench.flush(std::slice::from_ref(record));
            let _ = bench.maintenance();
            disk.fail(operation, 0);
            if failed.is_err() {
                bench.flush(std::slice::from_ref(record)).unwrap();
            }
            bench.maintenance().unwrap();
            assert_eq!(bench.files().flushed, record.sequence, "{operation:?}");
            assert_eq!(bench.rows(), expected(Table::Rejects, numbers(record.sequence)), "{operation:?}");
        }
        verify(&disk.after_power_loss(), Table::Rejects, FLUSHES, &format!("{operation:?}"));
    }
}

/// One in several operations fails, over a whole run with kills in between.
#[test]
fn a_flaky_disk_that_also_loses_its_power_loses_nothing() {
    for seed in 0..6 {
        let mut disk = SimDisk::new(seed);
        let mut yes = 0;
        for _ in 0..4 {
            disk.fail_one_in(17);
            if let Ok(bench) = Bench::open(&disk, Table::Rejects) {
                for record in &records(Table::Rejects) {
                    if bench.flush(std::slice::from_ref(record)).is_ok() {
                        yes = yes.max(record.sequence);
                    } else {
                        break;
                    }
                    let _ = bench.maintenance();
                }
            }
            disk = disk.after_power_loss();
        }
        verify(&disk, Table::Rejects, yes, &format!("seed {seed}"));
    }
}

/// Files of failed attempts must not accumulate.
#[test]
fn failed_flushes_leave_no_files_behind() {
    let disk = SimDisk::new(1);
    let bench = Bench::open(&disk, Table::Rejects).unwrap();
    let records = records(Table::Rejects);
    let before = disk.paths().len();
    for operation in [Operation::Append, Operation::Sync, Operation::Link] {
        disk.fail(operation, 28);
        for _ in 0..5 {
            bench.flush(&records[..1]).unwrap_err();
        }
        disk.fail(operation, 0);
        assert_eq!(disk.paths().len(), before, "{operation:?}: {:?}", disk.paths());
    }
    bench.flush(&records[..1]).unwrap();
}
