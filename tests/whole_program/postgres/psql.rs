//! psql: the commands that people type first.

use crate::whole_program::hostile_queries::busiest_child;
use crate::whole_program::http_sql::{with_example, with_example_and};
use crate::whole_program::server::Server;
use crate::whole_program::support::Folder;
use rustix::process::{Pid, Signal, kill_process};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The output of psql, on stdout and on stderr.
struct Printed {
    out: String,
    err: String,
}

/// Returns the psql command, not started yet.
fn psql(server: &Server) -> Command {
    let mut command = Command::new("psql");
    let port = server.address("postgres").port();
    command.arg("--no-psqlrc").arg(format!("host=127.0.0.1 port={port} user=ann dbname=faultline"));
    command.env_remove("PGOPTIONS").env("PAGER", "cat").stdin(Stdio::null());
    command
}

/// Runs commands of psql, one after the other.
#[track_caller]
fn run(server: &Server, commands: &[&str]) -> Printed {
    let mut psql = psql(server);
    for command in commands {
        psql.args(["-c", command]);
    }
    let output = psql.output().expect("psql is missing: install postgresql-client");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Printed { out: text(output.stdout), err: text(output.stderr) }
}

/// Scenario: the commands of psql that describe what there is.
/// Guarantee: each lists our tables, views, columns with their types and what they hold, and our one database; none
/// ends in an error.
#[test]
fn the_shells_own_commands_describe_what_there_is() {
    let folder = Folder::new();
    let server = with_example(&folder);
    for (command, expected) in [
        ("\\conninfo", &["database \"faultline\" as user \"ann\""][..]),
        ("\\l", &["faultline | faultline | UTF-8", "(1 row)"]),
        ("\\dn", &["public"]),
        ("\\d", &["public | events", "| table |", "public | errors", "| view"]),
        ("\\dt", &["events       | table", "codes        | table", "(6 rows)"]),
        ("\\dt+", &["Every error, warning and audit event"]),
        ("\\dv", &["errors", "warnings"]),
        ("\\dv+", &["view"]),
        ("\\df", &["List of functions"]),
        ("\\du", &["List of roles"]),
        ("\\dx", &["extensions"]),
        ("\\di", &[]),
        (
            "\\d events",
            &[
                "Table \"public.events\"",
                "time            | timestamp with time zone |           | not null",
                "http_status     | integer ",
                "findings        | text[] ",
                "hidden          | boolean ",
            ],
        ),
        ("\\d+ events", &["Description", "HTTP"]),
        ("\\d errors", &["View \"public.errors\"", "canonical"]),
        ("\\x\\\\ SELECT 1 AS one", &["one | 1"]),
    ] {
        let commands: Vec<_> = command.split("\\\\ ").collect();
        let printed = run(&server, &commands);
        assert_eq!(
            printed.err.replace("Did not find any relations.\n", ""),
            "",
            "{command}\n{}",
            printed.out
        );
        for part in expected {
            assert!(printed.out.contains(part), "{command}: no {part:?} in\n{}", printed.out);
        }
    }
    let listed = run(&server, &["\\dt"]).out;
    assert!(!listed.contains("pg_"), "{listed}");
    assert!(server.stop().success());
}

/// Scenario: the catalog tables and columns that the rules for catalog queries take for empty are counted; then queries
/// in the forms that other clients send.
/// Guarantee: they are empty; the queries have the rows that PostgreSQL would give.
#[test]
fn catalog_queries_of_other_clients_have_rows() {
    const EMPTY: [&str; 10] = [
        "pg_auth_members",
        "pg_constraint",
        "pg_inherits",
        "pg_policy",
        "pg_publication",
        "pg_publication_namespace",
        "pg_publication_rel",
        "pg_statistic_ext",
        "pg_subscription",
        "pg_trigger",
    ];
    let folder = Folder::new();
    let server = with_example(&folder);
    let rows = |sql: &str| {
        let mut command = psql(&server);
        let output = command.args(["-At", "-c", sql]).output().expect("psql");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{sql}");
        String::from_utf8(output.stdout).expect("UTF-8").trim().to_owned()
    };
    let counts = EMPTY.map(|table| format!("SELECT count(*) AS n FROM pg_catalog.{table}"));
    let total = format!("SELECT sum(n) FROM ({}) AS counts", counts.join(" UNION ALL "));
    assert_eq!(rows(&total), "0");
    assert_eq!(rows("SELECT count(reloptions) FROM pg_catalog.pg_class"), "0");

    let in_schema = "SELECT c.relname, pg_catalog.pg_relation_size(c.oid) IS NULL AS x FROM pg_class c \
        WHERE c.relnamespace = 'public' AND c.relname = 'events'";
    assert!(rows(in_schema).starts_with("events|"), "{}", rows(in_schema));
    assert_eq!(
        rows(
            "SELECT fk.conname, unnest((SELECT array_agg(a.attname) FROM pg_attribute a)) FROM pg_constraint fk"
        ),
        ""
    );
    assert!(server.stop().success());
}

/// Scenario: several servers, and so several workers, are asked for the numbers of all tables.
/// Guarantee: each gives every table the same number, whatever it was asked before: psql asks for a number, and then
/// for the columns of what has it, and the two may come to different workers.
#[test]
fn every_worker_gives_tables_the_same_numbers() {
    let numbers = |first: &[&str]| {
        let folder = Folder::new();
        let server = with_example(&folder);
        let all = "SELECT c.oid, n.oid, n.nspname, c.relname FROM pg_catalog.pg_class c \
            JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ORDER BY n.nspname, c.relname";
        run(&server, first);
        let numbers = run(&server, &[all]).out;
        assert!(server.stop().success());
        numbers
    };
    let usual = numbers(&["\\d events"]);
    assert!(usual.contains("errors") && usual.contains("pg_class"), "{usual}");
    assert_eq!(numbers(&["SELECT attrelid FROM pg_catalog.pg_attribute LIMIT 1", "\\dn"]), usual);
    assert_eq!(numbers(&["\\dv", "\\l"]), usual);
}

/// Scenario: a question with an answer, and questions with mistakes.
/// Guarantee: rows as psql prints them; a mistake is pointed at, with a remedy.
#[test]
fn mistakes_are_pointed_at() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let counted = run(
        &server,
        &["SELECT count(*) FROM events WHERE hidden", "SELECT NULL AS nothing, true, '{a,b}'::text[]"],
    );
    let hidden = server.dump("events").iter().filter(|event| event["hidden"] == true).count();
    assert!(hidden > 0 && counted.out.contains(&format!("\n{hidden:>6}\n")), "{}", counted.out);
    assert!(counted.out.contains("         | t        | {a,b}"), "{}", counted.out);
    let wrong = run(&server, &["SELECT service,\n  categroy FROM events"]);
    assert_eq!(
        wrong.err,
        "ERROR:  there is no column 'categroy'\nLINE 2:   categroy FROM events\n          ^\nHINT:  did you mean 'category'?\n"
    );
    let wrong = run(&server, &["SELEC 1"]).err;
    assert!(wrong.contains("\nLINE 1: SELEC 1\n        ^\n"), "{wrong}");
    let several = run(&server, &["BEGIN; SELECT 1 AS one; COMMIT"]).out;
    assert!(several.contains("one") && several.ends_with("COMMIT\n"), "{several}");
    assert!(server.stop().success());
}

/// Scenario: Ctrl-C in psql while a query runs that would not end.
/// Guarantee: the query is stopped at once, and the shell goes on with the next one.
#[test]
fn ctrl_c_stops_the_query_and_not_the_shell() {
    let folder = Folder::new();
    let server = with_example_and(&folder, &["--query-time", "10m"]);
    let script = folder.file(
        "script.sql",
        "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b;\nSELECT 40 + 2 AS after;\n",
    );
    let child = psql(&server)
        .args(["-f", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("psql is missing: install postgresql-client");
    busiest_child(server.pid());
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process");
    let began = Instant::now();
    kill_process(pid, Signal::INT).expect("the process is ours");
    let output = child.wait_with_output().expect("psql ends");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(err.contains("cancelled"), "{err}");
    // Depending on its version, psql leaves an interrupted script or continues it; the server keeps running either way.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}: {out}", began.elapsed());
    assert!(run(&server, &["SELECT 40 + 2 AS after"]).out.contains("42"));
    assert!(server.stop().success());
}
