//! Tests of sorting, merging, statistics and days.
use super::*;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Any rows, flushed in any pieces and merged, must all be there, in order.
    #[test]
    fn rows_are_the_same_however_they_are_merged(
        pieces in prop::collection::vec(
            prop::collection::vec((-3 * DAY..3 * DAY, 0_i64..50), 1..60), 1..40),
        is_traffic: bool,
    ) {
        let table = if is_traffic { Table::Traffic } else { Table::Rejects };
        let bench = Bench::open(&SimDisk::new(1), table).unwrap();
        let mut all = BTreeMap::new();
        for (sequence, piece) in (1..).zip(&pieces) {
            let rows: Vec<_> = piece.iter().map(|(offset, number)| (NOW + offset, *number)).collect();
            bench.flush(&[record(table, sequence, &rows)]).unwrap();
            for (_, number) in rows {
                if is_traffic {
                    *all.entry(0).or_default() += number;
                    *all.entry(1).or_default() += 1;
                } else {
                    *all.entry(number).or_default() += 1;
                }
            }
        }
        prop_assert_eq!(&bench.rows(), &all);
        is_in_order(&*bench.table.disk, Path::new(ROOT), &bench.files());
        while bench.maintenance().unwrap().merged > 0 {}
        prop_assert_eq!(&bench.rows(), &all);
        is_in_order(&*bench.table.disk, Path::new(ROOT), &bench.files());
        prop_assert!(bench.files().files.len() <= 7 * 15);
    }
}

#[test]
fn a_settled_day_becomes_one_file() {
    let mut bench = Bench::open(&SimDisk::new(1), Table::Rejects).unwrap();
    for sequence in 1..=3 {
        bench.flush(&[record(Table::Rejects, sequence, &[(NOW, sequence.cast_signed())])]).unwrap();
    }
    assert_eq!(bench.maintenance().unwrap().merged, 0, "it may still grow");
    bench.now += 2 * 60 * 60 * 1_000_000;
    assert_eq!(bench.maintenance().unwrap().merged, 3);
    assert_eq!(bench.files().files.len(), 1);
    assert_eq!(bench.rows(), expected(Table::Rejects, 1..=3));
}

#[test]
fn traffic_is_added_up() {
    let bench = Bench::open(&SimDisk::new(1), Table::Traffic).unwrap();
    for sequence in 1..=16 {
        bench
            .flush(&[record(Table::Traffic, sequence, &[(NOW, 2), (NOW + 5, 4), (NOW + 60_000_000, 2)])])
            .unwrap();
    }
    assert_eq!(bench.files().rows(), 32, "two minutes, sixteen times");
    assert_eq!(bench.maintenance().unwrap().merged, 16);
    assert_eq!(bench.files().rows(), 2);
    assert_eq!(bench.rows(), BTreeMap::from([(0, 16 * 8), (1, 16 * 3)]));
}

/// Times outside of the calendar do not cause failures.
#[test]
fn absurd_times_are_kept() {
    let bench = Bench::open(&SimDisk::new(1), Table::Rejects).unwrap();
    let times = [i64::MIN, i64::MAX, 0, -1, NOW];
    let rows: Vec<_> = times.into_iter().zip(1..).collect();
    bench.flush(&[record(Table::Rejects, 1, &rows)]).unwrap();
    assert_eq!(bench.rows(), expected(Table::Rejects, 1..=5));
    let mut days: Vec<i32> = bench.files().files.iter().map(|file| file.day).collect();
    days.sort_unstable();
    assert_eq!(days, [-719_162, -1, 0, 20_773, 2_932_896]);
}
