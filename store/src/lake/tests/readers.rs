//! What readers hold while the table changes under them.
use super::*;

fn sealed(bench: &Bench, count: u64) {
    for sequence in 1..=count {
        bench.seal(&[record(Table::Rejects, sequence, &[(NOW, sequence.cast_signed())])]).unwrap();
    }
}

#[test]
fn a_file_that_is_merged_away_stays_while_somebody_reads() {
    let disk = SimDisk::new(1);
    let bench = Bench::open(&disk, Table::Rejects).unwrap();
    sealed(&bench, 16);
    let before = bench.files();
    assert_eq!(bench.upkeep().unwrap().merged, 16);
    bench.upkeep().unwrap();
    assert_eq!(rows_of(&disk, &before), expected(Table::Rejects, 1..=16), "still readable");
    let open: Vec<Arc<dyn DiskRead>> =
        before.files.iter().map(|file| disk.open(&Path::new(ROOT).join(&file.path)).unwrap()).collect();
    drop(before);
    assert_eq!(bench.upkeep().unwrap().vacuumed.files, 16, "nobody reads them any more");
    assert_eq!(bench.rows(), expected(Table::Rejects, 1..=16));
    assert!(open.iter().all(|file| file.bytes() > 0));
}

#[test]
fn others_get_their_grace() {
    let mut bench = Bench::open(&SimDisk::new(1), Table::Rejects).unwrap();
    bench.grace = Duration::from_secs(60);
    sealed(&bench, 16);
    assert_eq!(bench.upkeep().unwrap().merged, 16);
    bench.now += 59_000_000;
    assert_eq!(bench.upkeep().unwrap().vacuumed.files, 0);
    bench.now += 1_000_000;
    assert_eq!(bench.upkeep().unwrap().vacuumed.files, 16);
}

/// A restart in between does not forget what may go, nor when.
#[test]
fn the_grace_goes_on_after_a_restart() {
    let disk = SimDisk::new(1);
    let mut bench = Bench::open(&disk, Table::Rejects).unwrap();
    // Checkpoints forget old removals by the machine's own clock.
    let now = chrono::Utc::now().timestamp_micros();
    (bench.grace, bench.now) = (Duration::from_secs(60), now);
    sealed(&bench, 16);
    assert_eq!(bench.upkeep().unwrap().merged, 16);
    drop(bench);
    let mut bench = Bench::open(&disk.after_kill(), Table::Rejects).unwrap();
    (bench.grace, bench.now) = (Duration::from_secs(60), now);
    assert_eq!(bench.upkeep().unwrap().vacuumed.files, 0);
    bench.now += 60_000_000;
    assert_eq!(bench.upkeep().unwrap().vacuumed.files, 16);
    assert_eq!(bench.rows(), expected(Table::Rejects, 1..=16));
}

#[test]
fn what_is_too_old_or_too_much_leaves() {
    let mut bench = Bench::open(&SimDisk::new(1), Table::Rejects).unwrap();
    for days in 0..5_i64 {
        let number = days + 1;
        bench.seal(&[record(Table::Rejects, number.cast_unsigned(), &[(NOW - days * DAY, number)])]).unwrap();
    }
    bench.retention.age = Some(Duration::from_secs(3 * 86_400 - 1));
    assert_eq!(bench.upkeep().unwrap().expired, 1);
    assert_eq!(bench.rows(), expected(Table::Rejects, 1..=4));
    let one = bench.files().files[0].bytes;
    bench.retention.bytes = Some(2 * one + one / 2);
    assert_eq!(bench.upkeep().unwrap().expired, 2);
    assert_eq!(bench.rows(), expected(Table::Rejects, 1..=2));
    assert_eq!(bench.files().sealed, 5, "what is gone is not sealed again");
}

/// The table's log stays short, however long it is used.
#[test]
fn the_log_of_a_table_is_cleaned_up() {
    let disk = SimDisk::new(1);
    let bench = Bench::open(&disk, Table::Rejects).unwrap();
    let mut most = 0;
    for sequence in 1..=120 {
        bench.seal(&[record(Table::Rejects, sequence, &[(NOW, sequence.cast_signed())])]).unwrap();
        bench.upkeep().unwrap();
        most = most.max(disk.list(&Path::new(ROOT).join("_delta_log")).unwrap().len());
    }
    assert!(most < 60, "{most} files");
    assert_eq!(bench.rows(), expected(Table::Rejects, 1..=120));
    let again = Bench::open(&disk.after_power_loss(), Table::Rejects).unwrap();
    assert_eq!(again.rows(), expected(Table::Rejects, 1..=120));
}
