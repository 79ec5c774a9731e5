//! Tests of readers while the table changes under them.

use super::*;
use crate::delta::{DeltaOptions, DeltaTables};
use std::sync::atomic::{AtomicI64, Ordering};

fn flushed(bench: &Bench, count: u64) {
    for sequence in 1..=count {
        bench.flush(&[record(Table::Rejects, sequence, &[(NOW, sequence.cast_signed())])]).unwrap();
    }
}

#[test]
fn a_file_that_is_merged_away_stays_while_somebody_reads() {
    let disk = SimDisk::new(1);
    let bench = Bench::open(&disk, Table::Rejects).unwrap();
    flushed(&bench, 16);
    let before = bench.files();
    assert_eq!(bench.maintenance().unwrap().merged, 16);
    bench.maintenance().unwrap();
    assert_eq!(rows_of(&disk, &before), expected(Table::Rejects, 1..=16), "still readable");
    let open: Vec<Arc<dyn DiskRead>> =
        before.files.iter().map(|file| disk.open(&Path::new(ROOT).join(&file.path)).unwrap()).collect();
    drop(before);
    assert_eq!(bench.maintenance().unwrap().vacuumed.files, 16, "nobody reads them any more");
    assert_eq!(bench.rows(), expected(Table::Rejects, 1..=16));
    assert!(open.iter().all(|file| file.bytes() > 0));
}

#[test]
fn others_get_their_grace() {
    let mut bench = Bench::open(&SimDisk::new(1), Table::Rejects).unwrap();
    bench.grace = Duration::from_secs(60);
    flushed(&bench, 16);
    assert_eq!(bench.maintenance().unwrap().merged, 16);
    bench.now += 59_000_000;
    assert_eq!(bench.maintenance().unwrap().vacuumed.files, 0);
    bench.now += 1_000_000;
    assert_eq!(bench.maintenance().unwrap().vacuumed.files, 16);
}

/// A restart in between does not forget which files may be deleted, nor when.
#[test]
fn the_grace_goes_on_after_a_restart() {
    let disk = SimDisk::new(1);
    let mut bench = Bench::open(&disk, Table::Rejects).unwrap();
    // Checkpoints forget old removals by the machine's real clock.
    let now = chrono::Utc::now().timestamp_micros();
    (bench.grace, bench.now) = (Duration::from_secs(60), now);
    flushed(&bench, 16);
    assert_eq!(bench.maintenance().unwrap().merged, 16);
    drop(bench);
    let mut bench = Bench::open(&disk.after_kill(), Table::Rejects).unwrap();
    (bench.grace, bench.now) = (Duration::from_secs(60), now);
    assert_eq!(bench.maintenance().unwrap().vacuumed.files, 0);
    bench.now += 60_000_000;
    assert_eq!(bench.maintenance().unwrap().vacuumed.files, 16);
    assert_eq!(bench.rows(), expected(Table::Rejects, 1..=16));
}

#[test]
fn what_is_too_old_or_too_much_leaves() {
    let mut bench = Bench::open(&SimDisk::new(1), Table::Rejects).unwrap();
    // Rows are flushed in the order in which they arrived, each into its day.
    for days in (0..5_i64).rev() {
        let number = 5 - days;
        bench.now = NOW - days * DAY;
        bench
            .flush(&[record(Table::Rejects, number.cast_unsigned(), &[(NOW - days * DAY, number)])])
            .unwrap();
    }
    bench.retention.age = Some(Duration::from_secs(3 * 86_400 - 1));
    let expired = bench.maintenance().unwrap().expired;
    assert_eq!((expired.files, expired.rows, expired.days), (1, 1, 1));
    assert_eq!(bench.rows(), expected(Table::Rejects, 2..=5));
    let one = bench.files().files[0].bytes;
    bench.retention.bytes = Some(2 * one + one / 2);
    assert_eq!(bench.maintenance().unwrap().expired.files, 2);
    assert_eq!(bench.rows(), expected(Table::Rejects, 4..=5));
    assert_eq!(bench.files().flushed, 5, "what is gone is not flushed again");
}

/// Scenario: rows of a year that is long past are flushed today, together with today's, and merged the next day.
/// Guarantee: they stay for the whole age from today on, also when they are merged; then they leave, and no later.
#[test]
fn an_archive_is_kept_from_the_day_it_was_stored() {
    let mut bench = Bench::open(&SimDisk::new(1), Table::Rejects).unwrap();
    bench.retention.age = Some(Duration::from_secs(30 * 86_400));
    for number in 1..=2_i64 {
        let rows = [(NOW - 800 * DAY, number), (NOW, 10 + number)];
        bench.flush(&[record(Table::Rejects, number.cast_unsigned(), &rows)]).unwrap();
    }
    let whole: BTreeMap<i64, i64> = [1, 2, 11, 12].map(|line| (line, 1)).into();
    bench.now = NOW + DAY;
    while bench.maintenance().unwrap().merged > 0 {}
    assert_eq!(bench.files().files.len(), 2);
    bench.now = NOW + 30 * DAY;
    bench.maintenance().unwrap();
    assert_eq!(bench.rows(), whole);
    bench.now = NOW + 30 * DAY + DAY / 2;
    bench.maintenance().unwrap();
    assert_eq!(bench.rows(), expected(Table::Rejects, 11..=12));
}

/// Scenario: the clock jumps to another year each time that somebody looks at it, while several tables are written.
/// Guarantee: all rows count as stored at the time that was trusted when it began, and none is taken for old.
#[test]
fn a_clock_that_jumps_while_tables_are_written_makes_no_row_old() {
    static WALL: AtomicI64 = AtomicI64::new(NOW);
    let year = Duration::from_secs(365 * 86_400);
    let options = DeltaOptions {
        retention: [Retention { age: Some(year), bytes: None }; Table::ALL.len()],
        grace: Duration::ZERO,
        clock: || WALL.fetch_sub(600 * DAY, Ordering::Relaxed),
    };
    let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(1));
    let delta = DeltaTables::open(&disk, Path::new("/data"), options).unwrap();
    let old = NOW - 600 * DAY;
    let records = [record(Table::Rejects, 1, &[(old, 1)]), record(Table::Traffic, 2, &[(old, 2)])];
    delta.flush(&records, 2, NOW).unwrap();
    for table in [Table::Rejects, Table::Traffic] {
        delta.maintain(table, MaintenanceMode::Full, NOW + DAY).unwrap();
        let stored: Vec<i64> = delta.files(table).files.iter().map(|file| file.written_at).collect();
        assert_eq!(stored, [NOW / 1000], "{table:?}");
    }
}

/// Guarantee: a process that only stores data removes nothing, even if it is past its retention or has left a table;
/// neither does maintenance without permission to remove, which still merges. Both write checkpoints.
#[test]
fn nothing_is_removed_by_whoever_may_not() {
    for (maintenance, merges) in
        [(MaintenanceMode::CheckpointsOnly, false), (MaintenanceMode::WithoutRemoval, true)]
    {
        let disk = SimDisk::new(1);
        let mut bench = Bench::open(&disk, Table::Rejects).unwrap();
        for number in 1..=40_i64 {
            bench.flush(&[record(Table::Rejects, number.cast_unsigned(), &[(NOW, number)])]).unwrap();
        }
        bench.retention = Retention { age: Some(Duration::ZERO), bytes: Some(0) };
        bench.now = NOW + 600 * DAY;
        let kept = bench.maintain(maintenance).unwrap();
        assert_eq!((kept.merged > 0, kept.checkpoints), (merges, 1));
        while bench.maintain(maintenance).unwrap().merged > 0 {}
        assert_eq!(bench.rows(), expected(Table::Rejects, 1..=40));
        let folder = disk.folders(Path::new(ROOT)).unwrap().into_iter().find(|name| name.starts_with("date"));
        let on_disk = disk.list(&Path::new(ROOT).join(folder.unwrap())).unwrap().len();
        assert!(on_disk >= 40, "{on_disk}");
    }
}

/// The Delta log stays short, however long the table is used.
#[test]
fn the_log_of_a_table_is_cleaned_up() {
    let disk = SimDisk::new(1);
    let bench = Bench::open(&disk, Table::Rejects).unwrap();
    let mut most = 0;
    for sequence in 1..=120 {
        bench.flush(&[record(Table::Rejects, sequence, &[(NOW, sequence.cast_signed())])]).unwrap();
        bench.maintenance().unwrap();
        most = most.max(disk.list(&Path::new(ROOT).join("_delta_log")).unwrap().len());
    }
    assert!(most < 60, "{most} files");
    assert_eq!(bench.rows(), expected(Table::Rejects, 1..=120));
    let again = Bench::open(&disk.after_power_loss(), Table::Rejects).unwrap();
    assert_eq!(again.rows(), expected(Table::Rejects, 1..=120));
}
