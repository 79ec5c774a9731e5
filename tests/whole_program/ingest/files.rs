//! Tests of files of every kind: the stored events are those that `classify` finds in them.

use super::*;
use crate::whole_program::support::{HIDDEN, NOTHING, OPEN, UNREADABLE, WORKED, faultline, lines, root};
use serde_json::json;

/// Returns the content of an event, without the fields that depend on its time and way of arrival.
fn essence(event: &Value) -> String {
    let fields =
        ["kind", "canonical", "category", "service", "operation", "fingerprint", "message", "hidden"];
    fields.map(|field| event[field].to_string()).join(" ")
}

fn essences(events: &[Value]) -> Vec<String> {
    let mut all: Vec<String> = events.iter().map(essence).collect();
    all.sort();
    all
}

/// Every file of the corpus, hostile ones included, and the sample log.
#[test]
fn what_is_stored_is_what_classify_finds() {
    let bench = Bench::new();
    let mut corpus: Vec<PathBuf> = std::fs::read_dir(root().join("tests/corpus"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    corpus.push(root().join("examples/app.ndjson"));
    let files: Vec<&str> = corpus.iter().map(|path| path.to_str().unwrap()).collect();
    assert!(files.len() > 10);
    let run = bench.ingest(&[&["--format", "json"], files.as_slice()].concat()).ends_with(0);
    let found = faultline(&[&["classify", "--quiet"], files.as_slice()].concat()).ends_with(0).events();
    let stored = bench.events();
    // Token hashes have a different key in every data directory, so messages that show one differ.
    let without = |events: &[Value]| -> Vec<Value> {
        let shows = |event: &&Value| !event["message"].to_string().contains("[token:");
        events.iter().filter(shows).cloned().collect()
    };
    assert_eq!(stored.len(), found.len());
    assert_eq!(essences(&without(&stored)), essences(&without(&found)));
    let told: Value = serde_json::from_str(&run.out).unwrap();
    assert_eq!(told["events"], found.len());
    let mut by_category: BTreeMap<&str, u64> = BTreeMap::new();
    for event in &found {
        *by_category.entry(event["category"].as_str().unwrap()).or_default() += 1;
    }
    assert_eq!(told["categories"], json!(by_category));
}

#[test]
fn plain_packed_matched_and_piped() {
    let bench = Bench::new();
    bench.file("a.log", log(0..10));
    bench.file("b.log.gz", gzip(log(10..20).as_bytes()));
    bench.file("c.log", zstd(log(20..30).as_bytes()));
    bench.file("[x]*.log", log(30..40));
    // The shell would have expanded these patterns; here they arrive unexpanded.
    let run = bench.ingest(&["*.log*", "[x]*.log", "a.log"]).ends_with(0);
    bench.stores(&each(0..40, 1));
    for file in ["a.log", "b.log.gz", "c.log", "[x]*.log"] {
        let row = run.out.lines().find(|row| row.starts_with(&format!("{file} "))).expect(&run.out);
        assert_eq!(row.split_whitespace().skip(1).collect::<Vec<_>>(), ["10", "10", "0", "0", "ingested"]);
    }
    let row = |name: &str| -> Vec<String> {
        let row = run.out.lines().find(|row| row.starts_with(name)).expect(&run.out);
        row.split_whitespace().map(str::to_owned).collect()
    };
    assert_eq!(row("all"), ["all", "40", "40", "0", "0"]);
    assert_eq!(row("NOT_FOUND"), ["NOT_FOUND", "40", "100.0", "%"]);
    assert!(run.out.is_ascii(), "plain when piped: {}", run.out);
    assert!(run.err.starts_with("40 lines, 40 events in "), "{}", run.err);
    for (packed, ids) in [(log(40..50).into_bytes(), 0..50), (gzip(log(50..60).as_bytes()), 0..60)] {
        bench.ingest_stdin(&["-"], &packed).ends_with(0);
        bench.stores(&each(ids, 1));
    }
    let again = bench.ingest_stdin(&["-", "--quiet"], log(0..10).as_bytes()).ends_with(0);
    assert_eq!(again.err, "");
    assert_eq!(bench.ids().values().sum::<usize>(), 70, "what comes by stdin is not remembered");
}

#[test]
fn every_line_counts_and_the_unreadable_are_named() {
    let bench = Bench::new();
    let text = lines(&[HIDDEN, "", OPEN, WORKED, NOTHING, UNREADABLE]);
    let file = bench.file("mixed.log", text.repeat(400));
    let run = bench.ingest(&["--format", "json", &file]).ends_with(0);
    let told: Value = serde_json::from_str(&run.out).unwrap();
    let counts = json!({"lines": 2000, "events": 800, "unrecognized": 400, "rejected": 400});
    for (name, count) in counts.as_object().unwrap() {
        assert_eq!((&told[name], &told["files"][0][name]), (count, count), "{name}: {}", run.out);
    }
    assert_eq!(told["categories"], json!({"NOT_FOUND": 400, "RATE_LIMIT": 400}));
    let reports: Vec<&str> = run.err.lines().filter(|line| line.starts_with(&file)).collect();
    assert_eq!(reports.len(), 100, "{}", run.err);
    assert!(reports[0].starts_with(&format!("{file}:6: not JSON")), "{}", reports[0]);
    assert!(reports[99].starts_with(&format!("{file}:600: not JSON")), "{}", reports[99]);
    assert!(run.err.contains("... and 300 more lines that could not be read"), "{}", run.err);
}

/// Line ends, byte-order marks, no newline at the end, a line over the limit, and first lines that look like arrays.
#[test]
fn lines_of_every_form() {
    let long = format!("{{\"request_id\":\"{}\"}}", "x".repeat(2 << 20));
    for (name, text, stored, rejected) in [
        ("crlf", log(0..5).replace('\n', "\r\n"), 0..5, 0),
        ("mark", format!("\u{feff}{}", log(0..5)), 0..5, 0),
        ("no newline", log(0..5).trim_end().to_owned(), 0..5, 0),
        ("long", format!("{}{long}\n{}", log(0..5), log(5..10)), 0..10, 1),
        ("long last", format!("{}{long}", log(0..5)), 0..5, 1),
        ("bracket", format!("[INFO] starting\n{}", log(0..5)), 0..5, 1),
        ("blank", "\n \n\r\n".to_owned(), 0..0, 0),
        ("empty", String::new(), 0..0, 0),
    ] {
        let bench = Bench::new();
        let file = bench.file("a.log", text);
        let run = bench.ingest(&["--format", "json", &file]).ends_with(0);
        let told: Value = serde_json::from_str(&run.out).unwrap();
        let counts = (stored.len() as u64, rejected);
        assert_eq!(
            (told["events"].as_u64().unwrap(), told["rejected"].as_u64().unwrap()),
            counts,
            "{name}: {}",
            run.err
        );
        bench.stores(&each(stored, 1));
        let state = if name == "empty" || name == "blank" { "empty" } else { "ingested" };
        assert_eq!(told["files"][0]["state"], state, "{name}");
    }
}

#[test]
fn what_holds_for_lines_that_do_not_say() {
    let bench = Bench::new();
    let file =
        bench.file("a.log", "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32002,\"message\":\"?\"}}\n");
    let options = ["--service", "s", "--environment", "e", "--dialect", "erlmcp"];
    bench.ingest(&[&options, [file.as_str()].as_slice()].concat()).ends_with(0);
    let event = &bench.events()[0];
    assert_eq!(
        (&event["service"], &event["environment"], &event["dialect"]),
        (&json!("s"), &json!("e"), &json!("erlmcp"))
    );
    assert_eq!(event["canonical"], "NOT_FOUND_OPERATION");
}
