//! Errors of `faultline sql` say what was wrong, where, and what to do, and set the exit code.

use super::super::support::{faultline, with_stdin};
use super::{Stored, files_below};
use rustix::process::{Pid, Signal, kill_process};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A query that takes very long.
pub(super) const LONG: &str = "SELECT count(*) AS n FROM codes a, codes b, codes c, codes d, codes e \
     WHERE a.description || b.description < c.description || d.description || e.description";

/// Scenario: names that are nearly right, SQL that is none, and what is not allowed.
/// Guarantee: the message, the line with a mark under the place, and a hint; nothing on stdout; exit code 1.
#[test]
fn errors_show_where_and_what_to_do() {
    let stored = Stored::new();
    for (query, expected) in [
        (
            "SELECT categroy FROM events",
            "error: there is no column 'categroy'\n  \
             SELECT categroy FROM events\n         \
             ^ did you mean 'category'?\n",
        ),
        (
            "SELECT *\nFROM evnts\nWHERE true",
            "error: there is no table 'evnts'\n  \
             2 | FROM evnts\n           \
             ^ did you mean 'events'?\n",
        ),
        ("SELECT 1 +", "error: Expected: an expression, found: EOF\n  SELECT 1 +\n            ^\n"),
        (
            "DROP TABLE events",
            "error: DROP TABLE is not allowed: this is a read-only view of the error history\n  \
             use SELECT, WITH, VALUES, EXPLAIN, DESCRIBE or SHOW\n",
        ),
    ] {
        let run = stored.sql(&[query]).ends_with(1);
        assert_eq!(run.err, expected);
        assert_eq!(run.out, "");
    }
    for query in ["COPY (SELECT 1) TO '/tmp/x.csv'", "SELECT * FROM '/etc/passwd'", "CREATE TABLE x (a INT)"]
    {
        let run = stored.sql(&[query]).ends_with(1);
        assert!(run.err.starts_with("error: "), "{}", run.err);
    }
}

/// Scenario: a file of statements, one of which is wrong.
/// Guarantee: those before it are answered, those after it are not run, and its line in the file is told.
#[test]
fn a_file_runs_until_one_fails() {
    let stored = Stored::new();
    let file = stored.folder.file(
        "report.sql",
        "-- how many; and more\nSELECT 1 AS one;\n\nSELECT ';' AS two\n;\nSELECT\n  nothing_such\nFROM events;\nSELECT 4 AS four;",
    );
    let run = stored.sql(&["--file", &file]).ends_with(1);
    assert_eq!(run.out, "one\n1\ntwo\n;\n");
    assert!(run.err.contains(&format!("({file}, line 7)")), "{}", run.err);
    assert!(run.err.contains("\n  7 |   nothing_such\n        ^"), "{}", run.err);
    let piped = |arguments: &[&str]| {
        with_stdin(
            &[&["sql", "--data-dir", &stored.data_dir], arguments].concat(),
            b"SELECT 1 AS one; SELECT 2 AS two",
        )
    };
    assert_eq!(piped(&["--file", "-"]).ends_with(0).out, "one\n1\ntwo\n2\n");
    assert_eq!(piped(&[]).ends_with(0).out, "one\n1\ntwo\n2\n");
    assert_eq!(piped(&["SELECT 3 AS three"]).ends_with(0).out, "three\n3\n", "stdin is not read");
}

/// Scenario: arguments that make no sense, places that are not there.
/// Guarantee: 2 for wrong usage and 1 for what cannot be used, with what to do.
#[test]
fn exit_codes_tell_usage_from_failure() {
    let stored = Stored::new();
    let missing = stored.path("missing.sql");
    for (arguments, code, words) in [
        (&["--format", "xml", "SELECT 1"][..], 2, &["ndjson"][..]),
        (&["--file", &missing, "SELECT 1"], 2, &["cannot be used with"]),
        (&["--server", "http://127.0.0.1:1"], 2, &["--data-dir"]),
        (&["--timeout", "soon", "SELECT 1"], 2, &["as in 60s"]),
        (&[" ; -- nothing"], 2, &["there is no statement"]),
        (&[""], 2, &[]),
        (&["--file", &missing], 1, &["cannot read", "missing.sql"]),
        (&["--registry", &missing, "SELECT 1"], 1, &["--registry"]),
        (&["--output", "/no/such/folder/x.csv", "SELECT 1"], 1, &["cannot write '/no/such/folder/x.csv'"]),
    ] {
        let run = stored.sql(arguments).ends_with(code);
        for word in words {
            assert!(run.err.contains(word), "{arguments:?}: {}", run.err);
        }
        assert_eq!(run.out, "", "{arguments:?}");
    }
    let run = faultline(&["sql", "--data-dir", "/no/such/folder", "SELECT 1"]).ends_with(1);
    assert!(run.err.contains("--data-dir"), "{}", run.err);
    let run = faultline(&["sql", "--server", "http://127.0.0.1:1", "SELECT 1"]).ends_with(1);
    assert!(run.err.contains("cannot reach http://127.0.0.1:1"), "{}", run.err);
    let run = faultline(&["sql", "--server", "ftp://h", "SELECT 1"]).ends_with(2);
    assert!(run.err.contains("http://127.0.0.1:7070"), "{}", run.err);
    let quiet = stored.sql(&["--quiet", "SELECT 1 AS a"]).ends_with(0);
    assert_eq!((quiet.out.as_str(), quiet.err.as_str()), ("a\n1\n", ""));
}

/// Scenario: queries that take too long, or too much.
/// Guarantee: they are stopped, and the limit and how to change it are told.
#[test]
fn limits_are_told_with_the_flag_that_changes_them() {
    let stored = Stored::new();
    let began = Instant::now();
    let run = stored.sql(&["--timeout", "1s", LONG]).ends_with(1);
    assert!(run.err.contains("longer than 1s") && run.err.contains("--timeout"), "{}", run.err);
    assert!(began.elapsed() < Duration::from_secs(30));
    let sorted = "SELECT a.description || b.description AS t FROM codes a, codes b ORDER BY t";
    let run = stored.sql(&["--memory", "1MiB", sorted]).ends_with(1);
    assert!(run.err.contains("memory") && run.err.contains("--memory"), "{}", run.err);
}

/// Scenario: a file is written anew, and the query fails or is stopped half-way.
/// Guarantee: the old file is as it was, and nothing is left beside it.
#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let stored = Stored::new();
    let file = stored.folder.file("rows.csv", "old\n");
    let before = files_below(stored.folder.path());
    let fails = "SELECT CASE WHEN a.code = b.code THEN 1 / (length(a.code) - length(b.code)) END AS x FROM codes a, codes b";
    stored.sql(&["--output", &file, fails]).ends_with(1);
    assert_eq!(files_below(stored.folder.path()), before);
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_faultline"))
        .args(["sql", "--data-dir", &stored.data_dir, "--output", &file])
        .arg("SELECT a.code, b.name, c.name, d.name FROM codes a, codes b, codes c, codes d")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let began = Instant::now();
    while files_below(stored.folder.path()).len() == before.len() {
        assert!(began.elapsed() < Duration::from_secs(60), "it does not begin to write");
        std::thread::sleep(Duration::from_millis(20));
    }
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(files_below(stored.folder.path()), before);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "old\n");
    stored.sql(&["--output", &file, "SELECT 1 AS new"]).ends_with(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "new\n1\n");
}
