//! Tests of lines: complete, partial, too long, and JSON over several lines.

use super::*;

#[test]
fn new_files_and_new_lines_are_read_as_they_appear() {
    let mut bench = Bench::new();
    bench.append("a.log", "one\ntwo\n");
    bench.pass(1);
    bench.stored(&["one", "two"]);
    bench.append("a.log", "three\n");
    bench.append("b.log", "four\n");
    bench.pass(2);
    bench.stored(&["one", "two", "three", "four"]);
    assert_eq!(bench.to.store.lock().unwrap().services[0].as_deref(), Some("a"));
    assert_eq!((bench.to.counters.open.get(), bench.to.counters.lines.get()), (2, 4));
}

#[test]
fn half_a_line_is_waited_for() {
    let mut bench = Bench::new();
    bench.append("a.log", "one\ntw");
    bench.pass(30);
    bench.stored(&["one"]);
    bench.append("a.log", "o\n");
    bench.pass(1);
    bench.stored(&["one", "two"]);
    // Complete JSON needs no newline after a while; bytes that follow later are a separate line.
    bench.append("a.log", r#"{"a":1}"#);
    bench.pass(3);
    bench.stored(&["one", "two"]);
    bench.pass(4);
    bench.stored(&["one", "two", r#"{"a":1}"#]);
    bench.append("a.log", "\nthree\n");
    bench.crash();
    bench.pass(10);
    bench.stored(&["one", "two", r#"{"a":1}"#, "three"]);
}

#[test]
fn half_a_line_is_sent_when_its_file_is_over() {
    let mut bench = Bench::new();
    bench.append("a.log", "one\nhalf");
    bench.pass(1);
    bench.rename("a.log", "a.log.1");
    bench.append("a.log", "two\n");
    bench.pass(5);
    bench.stored(&["one", "two"]);
    bench.pass(10);
    bench.stored(&["one", "half", "two"]);
}

#[test]
fn json_over_several_lines_is_one_record() {
    let mut bench = Bench::new();
    bench.append("a.log", "\u{feff}{\n  \"a\": 1,\n");
    bench.pass(2);
    bench.stored(&[]);
    bench.append("a.log", "  \"b\": 2\n}\nplain\n");
    bench.pass(1);
    bench.stored(&["   {   \"a\": 1,   \"b\": 2 }", "plain"]);
    bench.append("a.log", "{\n  \"never\":\n");
    bench.pass(10);
    bench.append("a.log", "after\n");
    bench.crash();
    bench.pass(10);
    bench.stored(&["   {   \"a\": 1,   \"b\": 2 }", "plain", "{", "  \"never\":", "after"]);
}

#[test]
fn a_line_that_is_too_long_costs_only_itself() {
    let mut bench = Bench::new();
    let limit = classifier::Limits::default().line_bytes;
    bench.append("a.log", "one\n");
    bench.append("a.log", "x".repeat(3 * limit));
    bench.pass(1);
    bench.crash();
    bench.pass(1);
    bench.append("a.log", "y".repeat(limit));
    bench.pass(1);
    bench.append("a.log", "\ntwo\n");
    bench.pass(1);
    let lines = bench.to.store.lock().unwrap().lines.clone();
    let lengths: Vec<usize> = lines.iter().map(String::len).collect();
    assert_eq!(lengths, [3, limit + 17, 3], "its beginning is sent, to be rejected for its length");
    assert_eq!(lines[2], "two");
}

#[test]
fn large_files_are_read_in_turn_and_whole() {
    let mut bench = Bench::new();
    let names: Vec<String> = (0..20).map(|number| format!("{number}.log")).collect();
    for name in &names {
        bench.append(name, format!("{name} {}\n", "z".repeat(1000)).repeat(2000));
    }
    bench.now += Duration::from_secs(1);
    bench.tailer.round(bench.now);
    bench.tailer.round(bench.now);
    bench.tailer.round(bench.now);
    let begun: std::collections::BTreeSet<String> = bench
        .to
        .store
        .lock()
        .unwrap()
        .lines
        .iter()
        .map(|line| line[..line.find(' ').unwrap()].to_owned())
        .collect();
    assert_eq!(begun.len(), 20, "three rounds of eight reach all");
    bench.pass(1);
    assert_eq!(bench.to.store.lock().unwrap().lines.len(), 40_000);
}
