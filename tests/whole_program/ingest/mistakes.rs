//! Input that cannot be loaded is reported in one sentence, with an exit code, and does not keep other input from being
//! loaded.

use super::*;
use crate::whole_program::server::{Server, allow_flushing, forbid_flushing};

/// The number of lines that fill a WAL of 8 MiB.
const MANY: usize = 40_000;

#[test]
fn a_file_that_cannot_be_read_costs_only_itself() {
    let bench = Bench::new();
    let good = bench.file("good.log", log(0..5));
    let torn = gzip(log(5..300).as_bytes());
    let torn = bench.file("torn.gz", &torn[..torn.len() - 200]);
    let folder = bench.folder.path().to_str().unwrap().to_owned();
    let run = bench.ingest(&["missing.log", &folder, "nothing*.log", &torn, &good]).ends_with(1);
    for words in [
        "cannot open 'missing.log': there is no such file",
        "it is a directory; name the files in it",
        "'nothing*.log' matches no file",
        "torn.gz' to its end: it is cut short",
    ] {
        assert!(
            run.err.lines().any(|line| line.starts_with("error: ") && line.contains(words)),
            "{words}: {}",
            run.err
        );
    }
    assert!(run.out.lines().any(|row| row.starts_with(&good) && row.ends_with("ingested")), "{}", run.out);
    let stored = bench.ids();
    assert!(stored.len() > 200, "what came before the cut is used: {}", stored.len());
    // The file is complete now, so the rest is loaded.
    std::fs::write(&torn, gzip(log(5..300).as_bytes())).unwrap();
    bench.ingest(&[&torn]).ends_with(0);
    bench.stores(&each(0..300, 1));
}

#[test]
fn nothing_readable_ends_with_2_and_is_counted() {
    let bench = Bench::new();
    let rubbish: Vec<u8> =
        (0..200_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8 | 0x80).collect();
    let mut rubbish = rubbish;
    rubbish.iter_mut().step_by(997).for_each(|byte| *byte = b'\n');
    let file = bench.file("rubbish.bin", &rubbish);
    let run = bench.ingest(&["--format", "json", &file]).ends_with(2);
    let told: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!((&told["events"], &told["lines"]), (&0.into(), &told["rejected"]));
    assert!(told["rejected"].as_u64().unwrap() > 100, "{}", run.out);
    assert!(bench.events().is_empty());
    bench.ingest(&["nothing*.log"]).ends_with(1);
}

#[test]
fn wrong_usage_ends_with_2() {
    let bench = Bench::new();
    let file = bench.file("a.log", log(0..1));
    for (arguments, words) in [
        (&[][..], "FILE"),
        (&["--to", "ftp://example.org", &file], "http:// or https://"),
        (&["--to", "example.org", &file], "http://"),
        (&["--dialect", "erlmpc", &file], "erlmcp"),
        (&["--service", "", &file], "--service"),
        (&["--to", "http://127.0.0.1:1", "--registry", "r.toml", &file], "--registry"),
        (&["--to", "http://127.0.0.1:1", "--data-dir", "d", &file], "--data-dir"),
    ] {
        let run = bench.ingest(arguments).ends_with(2);
        assert!(run.err.contains(words), "{arguments:?}: {}", run.err);
    }
    let run = bench.ingest(&["--registry", "missing.toml", &file]).ends_with(1);
    assert!(run.err.contains("missing.toml"), "{}", run.err);
}

/// A directory is in use by a server: the error names the server, through which the data must be loaded.
#[test]
fn a_directory_in_use_names_its_server() {
    let bench = Bench::new();
    let file = bench.file("a.log", log(0..5));
    let server = Server::start(&bench.folder);
    let run = bench.ingest(&[&file]).ends_with(3);
    let url = format!("http://{}", server.address("otlp_http"));
    assert!(run.err.contains("another faultline") && run.err.contains(&format!("--to {url}")), "{}", run.err);
    bench.ingest(&["--to", &url, &file]).ends_with(0);
    bench.stores(&each(0..5, 1));
}

#[test]
fn a_directory_that_cannot_be_used_ends_with_3() {
    let bench = Bench::new();
    let file = bench.file("a.log", too_much(0..MANY));
    bench.file("data", "not a folder");
    let run = bench.ingest(&[&file]).ends_with(3);
    assert!(run.err.contains("is a file, not a folder"), "{}", run.err);
    std::fs::remove_file(bench.data_dir()).unwrap();
    bench.ingest(&[&bench.file("b.log", log(MANY..MANY + 1))]).ends_with(0);
    std::fs::write(bench.data_dir().join("ingest.json"), "{").unwrap();
    let run = bench.ingest(&[&file]).ends_with(3);
    assert!(run.err.contains("ingest.json") && run.err.contains("remove it"), "{}", run.err);
    std::fs::remove_file(bench.data_dir().join("ingest.json")).unwrap();
    // The WAL is full, as nothing can be flushed: nothing is lost, and when there is room, the same command continues.
    let (tables, away) = (bench.data_dir().join("tables"), bench.data_dir().join("away"));
    std::fs::rename(&tables, &away).unwrap();
    forbid_flushing(&bench.folder);
    let run = bench.ingest(&["--wal-bytes", "8MiB", "--wait", "1", &file]).ends_with(3);
    assert!(
        run.err.contains("raise --wal-bytes") && run.err.contains("the same command goes on"),
        "{}",
        run.err
    );
    assert!(run.out.lines().any(|row| row.ends_with("failed")), "{}", run.out);
    allow_flushing(&bench.folder);
    std::fs::rename(&away, &tables).unwrap();
    bench.ingest(&[&file]).ends_with(0);
    let mut expected = each(0..MANY, 1);
    expected.extend(each(MANY..MANY + 1, 1));
    bench.stores(&expected);
}
