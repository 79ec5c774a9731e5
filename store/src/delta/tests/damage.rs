//! Files of a table that are empty, torn or missing when it is opened.
use super::*;
use crate::delta::recovery::Listing;

/// Returns a table with this many commits, and a checkpoint if there are enough of them.
fn table_of(flushes: u64) -> (SimDisk, Vec<Arc<BufferedRecord>>) {
    let disk = SimDisk::new(1);
    let records: Vec<_> =
        (1..=flushes).map(|n| record(Table::Rejects, n, &[(NOW, n.cast_signed())])).collect();
    let mut bench = Bench::open(&disk, Table::Rejects).unwrap();
    bench.grace = Duration::from_secs(60);
    for record in &records {
        bench.flush(std::slice::from_ref(record)).unwrap();
    }
    if flushes > 16 {
        assert_eq!(bench.maintenance().unwrap().checkpoints, 1);
    }
    (disk, records)
}

fn listing(disk: &SimDisk) -> Listing {
    Listing::of(disk, Path::new(ROOT)).unwrap()
}

fn log_file(name: &str) -> PathBuf {
    Path::new(ROOT).join("_delta_log").join(name)
}

fn newest_commit(disk: &SimDisk) -> PathBuf {
    log_file(&format!("{:020}.json", listing(disk).commits.last().unwrap()))
}

/// Returns the data file that the newest commit adds.
fn newest_data(disk: &SimDisk) -> PathBuf {
    let commit = String::from_utf8(disk.file(&newest_commit(disk))).unwrap();
    let lines = commit.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let added = lines.filter_map(|line| Some(line["add"]["path"].as_str()?.to_owned())).next().unwrap();
    Path::new(ROOT).join(added)
}

fn hurt(disk: &SimDisk, path: &Path, how: &str) {
    let bytes = disk.file(path);
    match how {
        "empty" => disk.put(path, Vec::new()),
        "torn" => disk.put(path, bytes[..bytes.len() / 2].to_vec()),
        "zeroed" => disk.put(path, vec![0; bytes.len()]),
        _ => disk.remove(path).unwrap(),
    }
}

/// Opens the table again and flushes the rest.
fn mend(disk: &SimDisk, records: &[Arc<BufferedRecord>]) -> Bench {
    let bench = Bench::open(disk, Table::Rejects).unwrap();
    bench.flush(records).unwrap();
    let all = expected(Table::Rejects, 1..=records.len() as i64);
    assert_eq!(bench.rows(), all);
    bench
}

#[test]
fn a_bad_newest_commit_is_set_aside_and_its_rows_come_back() {
    for how in ["empty", "torn", "zeroed", "missing"] {
        let (disk, records) = table_of(4);
        hurt(&disk, &newest_commit(&disk), how);
        let bench = mend(&disk, &records);
        let aside = disk.list(Path::new(SET_ASIDE)).unwrap();
        if how == "missing" {
            assert!(bench.set_aside.is_empty() && aside.is_empty(), "nothing is there to be set aside");
        } else {
            assert_eq!((bench.set_aside.len(), aside.len()), (1, 1), "{how}");
            assert!(aside[0].name.ends_with("00000000000000000004.json"), "{}", aside[0].name);
        }
    }
}

#[test]
fn a_commit_whose_files_are_bad_is_set_aside() {
    for how in ["empty", "torn", "zeroed", "missing"] {
        for flushes in [4, 17] {
            let (disk, records) = table_of(flushes);
            if flushes == 17 {
                // The newest commit is a merge: its inputs still exist, and its output is damaged.
                assert!(newest_data(&disk).to_str().unwrap().contains("merged"));
            }
            hurt(&disk, &newest_data(&disk), how);
            let bench = mend(&disk, &records);
            assert!(!bench.set_aside.is_empty(), "{how}");
            assert!(bench.set_aside[0].contains(".parquet"), "{:?}", bench.set_aside);
        }
    }
}

#[test]
fn a_bad_checkpoint_costs_nothing() {
    for how in ["empty", "torn", "zeroed", "missing"] {
        let (disk, records) = table_of(20);
        let (_, name) = listing(&disk).checkpoints.pop().unwrap();
        hurt(&disk, &log_file(&name), how);
        let bench = mend(&disk, &records);
        assert!(!bench.set_aside.is_empty(), "{how}: at least what points to it");
    }
    for how in ["empty", "torn", "zeroed", "missing"] {
        let (disk, records) = table_of(20);
        hurt(&disk, &log_file("_last_checkpoint"), how);
        assert_eq!(mend(&disk, &records).set_aside.is_empty(), how == "missing", "{how}");
    }
}

/// The damage is neither repaired nor made worse: nothing is moved, and the message says what to do.
#[test]
fn damage_further_back_is_reported_and_left_alone() {
    for how in ["empty", "torn", "missing"] {
        let (disk, _) = table_of(4);
        hurt(&disk, &log_file("00000000000000000002.json"), how);
        let before = disk.paths();
        let error = Bench::open(&disk, Table::Rejects).err().unwrap().to_string();
        assert!(error.contains("00000000000000000002.json") && error.contains("faultline check"), "{error}");
        assert_eq!(disk.paths(), before);
    }
}
