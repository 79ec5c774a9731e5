//! `ingest` recognizes files that it has loaded: under another name, with another compression, and when they have
//! grown.

use super::*;

/// Ingests a file that holds these ids and this many new ones.
#[track_caller]
fn check_continued(bench: &Bench, file: &str, ids: Range<usize>, new: usize) {
    let run = bench.ingest(&["--format", "json", file]).ends_with(0);
    let told: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&told["events"], &told["files"][0]["state"]), (&new.into(), &"continued".into()));
    bench.stores(&each(ids, 1));
}

#[test]
fn the_same_file_twice_is_refused_and_the_others_go_in() {
    let bench = Bench::new();
    let (a, b) = (bench.file("a.log", log(0..5)), bench.file("b.log", log(5..10)));
    bench.ingest(&[&a]).ends_with(0);
    let run = bench.ingest(&[&a, &b]).ends_with(1);
    assert!(
        run.err.contains("is already ingested, on 20") && run.err.contains("(5 lines); use --again"),
        "{}",
        run.err
    );
    let state = |name: &str| run.out.lines().find(|row| row.starts_with(name)).unwrap().to_owned();
    assert!(state(&a).ends_with("already ingested"), "{}", run.out);
    assert!(state(&b).ends_with(" ingested") && !state(&b).contains("already"), "{}", run.out);
    bench.stores(&each(0..10, 1));
}

#[test]
fn again_stores_once_more() {
    let bench = Bench::new();
    let file = bench.file("a.log", log(0..5));
    for times in 1..=3 {
        bench.ingest(&["--again", &file]).ends_with(0);
        bench.stores(&each(0..5, times));
    }
    bench.ingest(&[&file]).ends_with(1);
    let mut ids: Vec<Value> = bench.events().iter().map(|event| event["event_id"].clone()).collect();
    ids.sort_by_key(Value::to_string);
    ids.dedup();
    assert_eq!(ids.len(), 15, "each time with ids of their own");
}

#[test]
fn copies_are_known_under_another_name_and_packing() {
    let bench = Bench::new();
    let text = log(0..2000);
    bench.ingest(&[&bench.file("a.log", &text)]).ends_with(0);
    std::fs::rename(bench.folder.path().join("a.log"), bench.folder.path().join("moved.log")).unwrap();
    for file in
        ["moved.log", &bench.file("a.gz", gzip(text.as_bytes())), &bench.file("a.zst", zstd(text.as_bytes()))]
    {
        let run = bench.ingest(&[file]).ends_with(1);
        assert!(run.err.contains("is already ingested as '"), "{}", run.err);
    }
    // There are two copies in one command, and one file that only begins alike.
    let (b, c) = (bench.file("b.log", log(2000..2010)), bench.file("c.gz", gzip(log(2000..2010).as_bytes())));
    let other = bench.file("d.log", format!("{}{}", log(2000..2005), log(3000..3005)));
    let run = bench.ingest(&[&b, &c, &other]).ends_with(1);
    assert!(run.err.contains("c.gz' is the same as '"), "{}", run.err);
    let mut expected = each(0..2010, 1);
    expected.extend(each(3000..3005, 1));
    // The file is not known as a whole, so all of it is new.
    expected.extend(each(2000..2005, 2));
    bench.stores(&expected);
}

#[test]
fn a_log_that_has_grown_goes_on_where_it_ended() {
    let bench = Bench::new();
    let file = bench.file("a.log", log(0..10));
    bench.ingest(&[&file]).ends_with(0);
    bench.file("a.log", log(0..1500));
    check_continued(&bench, &file, 0..1500, 1490);
    let packed = bench.file("a.gz", gzip(log(0..1600).as_bytes()));
    check_continued(&bench, &packed, 0..1600, 100);
    // Its earlier content is known as well.
    for ids in [0..10, 0..1500, 0..1600] {
        let run = bench.ingest(&[&bench.file("copy.log", log(ids.clone()))]).ends_with(1);
        assert!(run.err.contains(&counted(ids.len())), "{}", run.err);
    }
    bench.stores(&each(0..1600, 1));
}

/// `1,500 lines`.
fn counted(count: usize) -> String {
    if count < 1000 {
        format!("{count} lines")
    } else {
        format!("{},{:03} lines", count / 1000, count % 1000)
    }
}

/// The last line has no newline yet. Then it gets one, or it grows: nothing is lost, and nothing is stored twice.
#[test]
fn a_last_line_without_its_newline() {
    let bench = Bench::new();
    let file = bench.file("a.log", log(0..3).trim_end());
    bench.ingest(&[&file]).ends_with(0);
    bench.stores(&each(0..3, 1));
    bench.ingest(&[&file]).ends_with(1);
    bench.file("a.log", log(0..3));
    bench.ingest(&[&file]).ends_with(1);
    bench.file("a.log", log(0..6).trim_end());
    check_continued(&bench, &file, 0..6, 3);
    let half = &line(6)[..100];
    bench.file("a.log", log(0..6) + half);
    let run = bench.ingest(&[&file]).ends_with(2);
    assert!(run.err.contains(&format!("{file}:7: not JSON")), "half a line is unreadable: {}", run.err);
    bench.file("a.log", log(0..7));
    check_continued(&bench, &file, 0..7, 1);
}

/// The ledger belongs to one destination: another data directory has never seen the file.
#[test]
fn every_place_knows_for_itself() {
    let (one, other) = (Bench::new(), Bench::new());
    let file = one.file("a.log", log(0..5));
    one.ingest(&[&file]).ends_with(0);
    other.ingest(&[&file]).ends_with(0);
    assert_eq!((one.ids(), other.ids()), (each(0..5, 1), each(0..5, 1)));
}
