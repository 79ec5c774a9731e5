//! Tests of `faultline classify`: its output for each input, its notes about the rest, and its exit codes.

use super::support::{
    Folder, HIDDEN, NOTHING, OPEN, UNREADABLE, WORKED, command, faultline, lines, with_stdin,
};
use std::io::{BufRead, BufReader, Write};
use std::sync::mpsc;
use std::time::Duration;

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

#[test]
fn every_event_is_one_json_object_with_its_line() {
    let folder = Folder::new();
    let file = folder.file("app.ndjson", lines(&[WORKED, HIDDEN, "", OPEN]));
    let run = faultline(&["classify", &file]).ends_with(0);
    let events = run.events();
    assert_eq!(events.len(), 2);
    assert_eq!(events[0]["line"], 2);
    assert_eq!(events[0]["canonical"], "RATE_LIMIT_QUOTA_PAUSE");
    assert_eq!(events[0]["hidden"], true);
    assert_eq!(events[0]["source"], file.as_str());
    assert_eq!(events[1]["line"], 4);
    assert_eq!(events[1]["canonical"], "NOT_FOUND_OPERATION");
    assert_eq!(events[1]["hidden"], false);
}

#[test]
fn packed_files_are_known_by_their_bytes_and_not_by_their_names() {
    let folder = Folder::new();
    let text = lines(&[HIDDEN, OPEN]);
    let (first, second) = text.as_bytes().split_at(text.len() / 3);
    // Concatenated parts are one file, and a zstd file may start with a skippable frame.
    let skipped = [&[0x53, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9], &*zstd(text.as_bytes())].concat();
    let expected = faultline(&["classify", &folder.file("plain", &text)]).ends_with(0);
    for (name, bytes) in [
        ("misnamed.txt", gzip(text.as_bytes())),
        ("two_members", [gzip(first), gzip(second)].concat()),
        ("misnamed.gz", zstd(text.as_bytes())),
        ("two_frames", [zstd(first), zstd(second)].concat()),
        ("skippable", skipped),
    ] {
        let file = folder.file(name, bytes);
        let run = faultline(&["classify", &file]).ends_with(0);
        let expected = expected.out.replace(&format!("{}/plain", folder.path().display()), &file);
        assert_eq!(run.out, expected, "{name}");
    }
    let piped = with_stdin(&["classify"], &gzip(text.as_bytes())).ends_with(0);
    assert_eq!(piped.events().len(), 2);
}

#[test]
fn stdin_is_the_default_and_a_dash() {
    let input = lines(&[OPEN]);
    let default = with_stdin(&["classify"], input.as_bytes()).ends_with(0);
    let dash = with_stdin(&["classify", "-"], input.as_bytes()).ends_with(0);
    assert_eq!(default.events()[0]["source"], "stdin");
    assert_eq!(default.out, dash.out);
}

#[test]
fn line_ends_and_byte_order_marks_do_not_matter() {
    let input = format!("\u{feff}{OPEN}\r\n\r\n\u{feff}{OPEN}\r\n{OPEN}");
    let run = with_stdin(&["classify"], input.as_bytes()).ends_with(0);
    let numbers: Vec<_> = run.events().iter().map(|event| event["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 3, 4]);
}

#[test]
fn options_speak_for_records_that_say_nothing() {
    let record = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"?"}}"#;
    let options = ["classify", "--service", "s", "--environment", "e", "--dialect", "erlmcp"];
    let run = with_stdin(&options, record.as_bytes()).ends_with(0);
    let event = &run.events()[0];
    assert_eq!(event["service"], "s");
    assert_eq!(event["environment"], "e");
    assert_eq!(event["dialect"], "erlmcp");
    assert_eq!(event["canonical"], "NOT_FOUND_OPERATION");
    let run = with_stdin(&options, OPEN.as_bytes()).ends_with(0);
    assert_eq!(run.events()[0]["service"], "orders", "the record's own word goes first");
}

#[test]
fn event_ids_are_the_same_on_every_run_and_differ_by_place() {
    let folder = Folder::new();
    let a = folder.file("a", lines(&[OPEN, OPEN]));
    let b = folder.file("b", lines(&[OPEN]));
    let first = faultline(&["classify", &a, &b]).ends_with(0);
    assert_eq!(first.out, faultline(&["classify", &a, &b]).out);
    let ids: std::collections::HashSet<_> =
        first.events().iter().map(|event| event["event_id"].to_string()).collect();
    assert_eq!(ids.len(), 3);
}

#[test]
fn the_note_counts_everything_and_quiet_leaves_it_out() {
    let input = lines(&[HIDDEN, OPEN, WORKED, WORKED, NOTHING, UNREADABLE]);
    let run = with_stdin(&["classify"], input.as_bytes()).ends_with(0);
    let note = run.err.lines().last().unwrap();
    assert_eq!(
        note,
        "6 lines: 2 events, 2 calls that worked, 1 hidden failure; \
         1 unreadable (not_json 1); 1 unrecognized (no_envelope 1)"
    );
    let quiet = with_stdin(&["classify", "--quiet"], input.as_bytes()).ends_with(0);
    assert_eq!(quiet.out, run.out);
    assert_eq!(quiet.err.lines().count(), 1, "only the unreadable line: {}", quiet.err);
}

#[test]
fn unreadable_lines_are_reported_with_their_number_and_reason() {
    let folder = Folder::new();
    let mut bytes = lines(&[OPEN, UNREADABLE]).into_bytes();
    bytes.extend(b"{\"a\":\"\xff\"}\n");
    bytes.extend("[".repeat(100).bytes().chain("]".repeat(100).bytes()));
    let file = folder.file("mixed", &bytes);
    let run = faultline(&["classify", &file]).ends_with(0);
    for (line, reason) in [(2, "not JSON from byte 1 on"), (3, "not valid UTF-8"), (4, "nested too deeply")] {
        let start = format!("{file}:{line}: ");
        let report = run.err.lines().find(|report| report.starts_with(&start)).expect(&run.err);
        assert!(report.contains(reason), "{report}");
    }
    let run = with_stdin(&["classify"], UNREADABLE.as_bytes());
    assert!(run.err.starts_with("stdin:1: not JSON from byte 1 on"), "{}", run.err);
}

#[test]
fn a_flood_of_unreadable_lines_is_cut_at_a_hundred() {
    let input = format!("{OPEN}\n{}", format!("{UNREADABLE}\n").repeat(1234));
    let run = with_stdin(&["classify"], input.as_bytes()).ends_with(0);
    assert_eq!(run.err.lines().filter(|line| line.starts_with("stdin:")).count(), 100);
    assert!(run.err.contains("\n... and 1,134 more lines that could not be read\n"), "{}", run.err);
}

#[test]
fn a_line_of_three_megabytes_does_not_hurt_its_neighbours() {
    let long = format!(r#"{{"success":false,"error":{{"code":"X","message":"{}"}}}}"#, "x".repeat(3 << 20));
    let run = with_stdin(&["classify"], lines(&[OPEN, &long, HIDDEN]).as_bytes()).ends_with(0);
    let numbers: Vec<_> = run.events().iter().map(|event| event["line"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 3]);
    assert!(run.err.contains("stdin:2: the line is too long"), "{}", run.err);
    assert!(run.err.contains("1 unreadable (too_long 1)"), "{}", run.err);
}

/// A packed file of a few kilobytes that holds one line of 256 MiB is read in less memory than that.
#[cfg(target_os = "linux")]
#[test]
fn a_bomb_costs_no_memory() {
    let folder = Folder::new();
    let mut bomb = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let megabyte = vec![b'x'; 1 << 20];
    for _ in 0..256 {
        bomb.write_all(&megabyte).unwrap();
    }
    bomb.write_all(lines(&["", OPEN]).as_bytes()).unwrap();
    let file = folder.file("bomb", bomb.finish().unwrap());
    let limited = |mebibytes: u32, file: &str| {
        let command = format!("ulimit -v {}; exec \"$0\" classify \"$1\"", mebibytes << 10);
        let binary = env!("CARGO_BIN_EXE_faultline");
        std::process::Command::new("sh").args(["-c", &command, binary, file]).output().unwrap()
    };
    // The memory of the program itself depends on the build.
    let small = folder.file("small", OPEN);
    let enough = (64..2048).step_by(32).find(|limit| limited(*limit, &small).status.success());
    let output = limited(enough.expect("it runs in two gibibytes") + 64, &file);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("{\"line\":2,"), "{err}");
    assert!(err.contains(":1: the line is too long"), "{err}");
}

#[test]
fn input_of_which_nothing_can_be_read_ends_with_2_and_no_input_with_0() {
    with_stdin(&["classify"], lines(&[UNREADABLE, UNREADABLE]).as_bytes()).ends_with(2);
    with_stdin(&["classify"], &[0xff; 4000]).ends_with(2);
    with_stdin(&["classify"], b"").ends_with(0);
    with_stdin(&["classify"], b"\n\n").ends_with(0);
    // The input is readable, but contains no failures.
    with_stdin(&["classify"], lines(&[UNREADABLE, NOTHING]).as_bytes()).ends_with(0);
    with_stdin(&["classify", "--summary"], UNREADABLE.as_bytes()).ends_with(2);
}

#[test]
fn a_file_that_cannot_be_read_ends_with_1_and_the_others_are_read() {
    let folder = Folder::new();
    let good = folder.file("good", lines(&[OPEN]));
    let missing = folder.path().join("missing").display().to_string();
    let directory = folder.path().display().to_string();
    let torn = gzip(lines(&[OPEN; 200]).as_bytes());
    let torn = folder.file("torn.gz", &torn[..torn.len() - 9]);
    let damaged = zstd(lines(&[OPEN; 200]).as_bytes());
    let damaged = folder.file("damaged.zst", [&damaged[..20], &[0xff; 60], &damaged[80..]].concat());
    for (bad, reason) in [
        (&missing, "there is no such file; check the path"),
        (&directory, "it is a directory; name the files in it"),
        (&torn, "it is cut short"),
        (&damaged, "cannot read"),
    ] {
        let run = faultline(&["classify", bad, &good]).ends_with(1);
        let errors: Vec<&str> = run.err.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "{}", run.err);
        assert!(errors[0].contains(reason) && errors[0].contains(bad.as_str()), "{}", errors[0]);
        let last = &run.events().pop().expect("the other file's event");
        assert_eq!(last["source"], good.as_str());
    }
    let run = faultline(&["classify", &torn]).ends_with(1);
    assert!(run.events().len() > 100, "what came before the cut is used");
}

#[test]
fn a_summary_counts_codes_services_groups_and_what_is_hidden() {
    let input = lines(&[HIDDEN, HIDDEN, HIDDEN, OPEN, WORKED]);
    let run = with_stdin(&["classify", "--summary"], input.as_bytes()).ends_with(0);
    assert!(
        run.out.starts_with("4 events in 5 lines: 4 errors, 0 warnings, 0 audit events.\n"),
        "{}",
        run.out
    );
    assert!(
        run.out.contains("5 calls: 1 worked, 1 failed openly, 3 failed inside a success."),
        "{}",
        run.out
    );
    assert!(run.out.contains("75.0 % of all failures are hidden"), "{}", run.out);
    let rows: Vec<Vec<&str>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    for row in [
        ["CATEGORY", "CODE", "SERVICE", "EVENTS", "HIDDEN"].as_slice(),
        &["RATE_LIMIT", "RATE_LIMIT_QUOTA_PAUSE", "orders", "3", "100.0", "%"],
        &["NOT_FOUND", "NOT_FOUND_OPERATION", "orders", "1", "0.0", "%"],
        &["GROUP", "CODE", "TEMPLATE", "SEEN", "AT", "EVENTS", "HIDDEN"],
    ] {
        assert!(rows.iter().any(|found| found == row), "{row:?} in {}", run.out);
    }
    let events = with_stdin(&["classify"], input.as_bytes()).events();
    let fingerprint = events[0]["fingerprint"].as_str().unwrap();
    let group = rows.iter().find(|row| row.first() == Some(&fingerprint)).expect("the group of the events");
    assert_eq!(group[1..], ["RATE_LIMIT_QUOTA_PAUSE", "Paused", "orders", "pay", "3", "100.0", "%"]);
    assert!(run.out.is_ascii(), "plain when piped: {}", run.out);
}

#[test]
fn top_bounds_the_tables_and_belongs_to_the_summary() {
    let input = lines(&[HIDDEN, OPEN]);
    let run = with_stdin(&["classify", "--summary", "--top", "1"], input.as_bytes()).ends_with(0);
    assert_eq!(run.out.matches("... and 1 more").count(), 2, "{}", run.out);
    let run = with_stdin(&["classify", "--top", "1"], b"").ends_with(2);
    assert!(run.err.contains("--summary"), "{}", run.err);
}

/// Scenario: a live log. The events of one line are there before the next line is written.
#[test]
fn a_live_source_is_followed() {
    let mut child = command(&["classify", "--quiet"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        for line in stdout.lines() {
            let _ = sender.send(line.unwrap());
        }
    });
    for number in 1..=2 {
        stdin.write_all(lines(&[OPEN]).as_bytes()).unwrap();
        let line =
            receiver.recv_timeout(Duration::from_secs(20)).expect("an event while stdin is still open");
        assert!(line.starts_with(&format!("{{\"line\":{number},")), "{line}");
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
