//! Statements that would stop the server or take all of its memory, at every endpoint: each costs its own query and
//! nothing else.

mod grammar;
mod processes;

use super::flight::flight;
use super::http_sql::{ask, rows, with_example, with_example_and};
use super::otlp::client::python;
use super::server::Server;
use super::support::{Folder, command};
pub(crate) use grammar::Grammar;
pub(crate) use processes::{Highest, Processes, busiest_child};
use serde_json::{Value, json};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Returns a chain of terms.
fn chain(term: &str, operator: &str, count: usize) -> String {
    vec![term; count].join(operator)
}

/// Returns statements that nest deeper the more terms they have, each by another construct.
fn deep(count: usize) -> Vec<(&'static str, String)> {
    let select = |term, operator| format!("SELECT {} FROM codes", chain(term, operator, count));
    vec![
        ("sum", format!("SELECT {}", chain("1", "+", count))),
        ("difference", select("length(code)", " - ")),
        ("or", format!("SELECT count(*) FROM codes WHERE {}", chain("code = 'a'", " OR ", count))),
        ("and", format!("SELECT count(*) FROM codes WHERE {}", chain("code <> 'a'", " AND ", count))),
        ("concatenation", select("code", " || ")),
        ("arrow", format!("SELECT '{{}}' -> {}", chain("'a'", " -> ", count))),
        ("cast", format!("SELECT 1{}", "::text::int".repeat(count / 2))),
        ("union", chain("SELECT 1", " UNION ALL ", count)),
        ("except", chain("SELECT code FROM codes", " EXCEPT ", count)),
        ("joins", format!("SELECT count(*) FROM {}", chain("codes", ", ", count))),
        ("functions", format!("SELECT {}1{}", "abs(".repeat(count), ")".repeat(count))),
        ("parentheses", format!("SELECT {}1{}", "(".repeat(count), ")".repeat(count))),
        ("subqueries", format!("SELECT {}1{}", "(SELECT ".repeat(count), ")".repeat(count))),
        ("not", format!("SELECT {} true", chain("NOT", " ", count))),
        ("minus", format!("SELECT {}1", "- ".repeat(count))),
        ("case", format!("SELECT {}1{}", "CASE WHEN true THEN ".repeat(count), " END".repeat(count))),
        ("list", format!("SELECT 1 WHERE 1 IN ({})", chain("1", ",", count))),
    ]
}

/// Returns the error of a response, if it is one.
fn error_of(answer: &super::server::Answer) -> Option<Value> {
    (answer.status != 200).then(|| answer.json()["error"].clone())
}

/// Scenario: chains and nestings of every shape, from what a person might write to what fills the longest statement
/// that is read, over HTTP; those past the bound with psql; one chain with `faultline sql`, and one as the condition of
/// a tail.
/// Guarantee: each is answered or refused by a limit that is named; no process of a query dies, and the server lives.
#[test]
fn no_statement_overflows_a_stack() {
    let folder = Folder::new();
    let mut server = with_example(&folder);
    let mut answered = Vec::new();
    for count in [150, 1_300, 60_000] {
        for (shape, statement) in deep(count) {
            let answer = ask(&server, &statement);
            match error_of(&answer) {
                None => answered.push((shape, count)),
                Some(error) => {
                    let code = error["code"].as_str().unwrap_or_default().to_owned();
                    let is_named =
                        ["statement_limit", "time_limit", "memory_limit", "syntax", "invalid", "failed"]
                            .contains(&code.as_str());
                    assert!(is_named, "{count} of {shape}: {error}");
                }
            }
            assert!(!server.has_ended(), "{count} of {shape}\n{}", server.said());
        }
        let tail = format!("/api/v1/tail?where={}", chain("hidden", "%20OR%20", count.min(500)));
        let refused = count > 100;
        if refused {
            assert_eq!(server.get(&tail).json()["error"]["code"], "statement_limit", "{count}");
        }
    }
    let usual = ["sum", "difference", "or", "and", "union", "list"];
    for shape in usual {
        assert!(answered.contains(&(shape, 150)), "{shape} is refused: {answered:?}");
    }
    assert!(!server.said().contains("a query worker died"), "{}", server.said());
    past_the_bound_elsewhere(&server);
    assert_eq!(rows(&server, "SELECT count(*) AS n FROM events")[0]["n"], 202);
    assert!(server.stop().success());
}

/// Runs the same statements at the other endpoints.
fn past_the_bound_elsewhere(server: &Server) {
    let port = server.address("postgres").port().to_string();
    for (shape, statement) in deep(1_300) {
        let psql = Command::new("psql")
            .args([
                "-X",
                "-q",
                "-h",
                "127.0.0.1",
                "-p",
                &port,
                "-U",
                "ann",
                "-d",
                "faultline",
                "-c",
                &statement,
            ])
            .output()
            .expect("psql runs");
        let said = String::from_utf8_lossy(&psql.stderr).into_owned();
        assert!(!said.contains("server closed the connection"), "{shape}: {said}");
        assert!(psql.status.success() || said.contains("ERROR:"), "{shape}: {said}");
    }
    past_the_bound_over_flight(server);
    let local = command(&["sql", "--data-dir", &server.data_dir().display().to_string()])
        .arg(format!("SELECT {}", chain("1", "+", 1_300)))
        .output()
        .expect("faultline sql runs");
    let said = String::from_utf8_lossy(&local.stderr).into_owned();
    assert_eq!(local.status.code(), Some(1), "{said}");
    assert!(said.contains("levels deep"), "{said}");
}

/// Runs the same statements over ADBC: each returns rows or an error of its own, and the next one is answered.
fn past_the_bound_over_flight(server: &Server) {
    let statements: Vec<_> = [1_300, 60_000].into_iter().flat_map(deep).collect();
    let steps: Vec<Value> = statements.iter().map(|(_, statement)| json!(["query", statement])).collect();
    let answers = flight(server, &json!(steps));
    for ((shape, _), answer) in statements.iter().zip(&answers) {
        let is_named =
            answer["error"].as_str().is_some_and(|error| !error.to_lowercase().contains("unavailable"));
        assert!(answer["rows"].is_array() || is_named, "{shape}: {answer}");
    }
    let refused = answers.iter().filter(|answer| answer["error"].is_string()).count();
    assert!(refused >= statements.len() / 2, "only {refused} of {} are refused", statements.len());
    assert_eq!(flight(server, &json!([["query", "SELECT 1 AS n"]]))[0]["rows"], json!([[1]]));
}

/// Statements whose memory the engine's own accounting does not see.
pub(crate) fn greedy() -> Vec<(&'static str, String)> {
    let joins = (1..60).map(|n| format!(" JOIN events e{n} ON e{n}.event_id = e0.event_id"));
    let columns = (0..1_000).map(|n| format!("upper(message || '{n}') AS c{n}"));
    let doubling = |n: usize| format!("t{} AS (SELECT * FROM t{n} UNION ALL SELECT * FROM t{n})", n + 1);
    let medians = (0..100).map(|n| format!("median(length(message) + {n})"));
    let window = |function: &str| {
        format!("SELECT max(length(a)) FROM (SELECT {function} OVER (ORDER BY time) AS a FROM events)")
    };
    vec![
        ("an array for each row", window("array_agg(message)").replace("length(a)", "cardinality(a)")),
        ("a text for each row", window("string_agg(message, ',')")),
        ("60 joins", format!("SELECT count(*) FROM events e0{}", joins.collect::<String>())),
        ("3,000 unions", chain("SELECT count(*) FROM events", " UNION ALL ", 3_000)),
        ("100 unions", chain("SELECT count(*) FROM events", " UNION ALL ", 100)),
        (
            "a pattern for each row",
            "SELECT count(*) FROM events WHERE message ~ ('(' || message || '){50}')".into(),
        ),
        ("1,000 computed columns", format!("SELECT {} FROM events", columns.collect::<Vec<_>>().join(", "))),
        ("a cube of 20", format!("SELECT count(*) FROM events GROUP BY CUBE ({})", CUBE.join(", "))),
        ("a cube of 8", format!("SELECT count(*) FROM events GROUP BY CUBE ({})", CUBE[..8].join(", "))),
        (
            "30 doublings",
            format!(
                "WITH t0 AS (SELECT 1 AS a), {} SELECT count(*) FROM t30",
                (0..30).map(doubling).collect::<Vec<_>>().join(", ")
            ),
        ),
        (
            "three times all events",
            "SELECT count(*) FROM events a, events b, events c \
            WHERE a.message || b.message || c.message LIKE '%x'"
                .into(),
        ),
        (
            "all events a hundred times",
            "SELECT array_agg(message) FROM events, generate_series(1, 100)".into(),
        ),
        ("100 medians", format!("SELECT {} FROM events", medians.collect::<Vec<_>>().join(", "))),
        (
            "a text that doubles",
            "WITH RECURSIVE r AS (SELECT 1 AS n, 'x' AS t UNION ALL \
            SELECT n + 1, t || t FROM r) SELECT max(length(t)) FROM r"
                .into(),
        ),
        ("distinct of all", "SELECT count(DISTINCT message || repeat('x', 1000)) FROM events".into()),
        (
            "an array of arrays",
            "SELECT array_agg(a) FROM (SELECT array_agg(message) AS a FROM events \
            GROUP BY event_id), generate_series(1, 100)"
                .into(),
        ),
    ]
}

const CUBE: [&str; 20] = [
    "service",
    "operation",
    "code",
    "category",
    "severity",
    "dialect",
    "kind",
    "message",
    "template",
    "canonical",
    "fingerprint",
    "environment",
    "client",
    "source",
    "span_kind",
    "recovery",
    "hidden",
    "inferred",
    "retryable",
    "http_status",
];

/// Returns lines of many events with different messages.
fn events(first: usize, count: usize) -> String {
    let line = |n: usize| {
        let message =
            format!("Message {n} is one of many and has a text of some length, so that it takes memory");
        let error = json!({"code": "INTERNAL_ERROR", "message": message});
        let line = json!({"service": format!("s{}", n % 7), "operation": format!("op{}", n % 23),
            "response": {"success": false, "error": error}});
        format!("{line}\n")
    };
    (first..first + count).map(line).collect()
}

/// Returns the number of events that the greedy statements read. `FAULTLINE_HOSTILE_EVENTS` can raise it.
fn event_count() -> usize {
    std::env::var("FAULTLINE_HOSTILE_EVENTS").ok().and_then(|count| count.parse().ok()).unwrap_or(60_000)
}

/// Scenario: statements whose memory nothing accounts for, one after the other and three at once, and statements made
/// at random from a grammar, over many events; a sender sends all the while.
/// Guarantee: every process stays within its bound; each statement is answered or told which limit it has passed; the
/// sender is acknowledged all the time, every event is there, and a small query is answered.
#[test]
fn no_statement_outgrows_its_memory() {
    let folder = Folder::new();
    let mut server = Server::start_with(&folder, &["--query-time", "8s", "--query-wait", "60s"]);
    let (count, piece) = (event_count(), 20_000);
    for first in (0..count).step_by(piece) {
        server.post_lines(&events(first, piece.min(count - first))).is(200);
    }
    let processes = Processes::watch(server.pid());
    let is_over = AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let sender = scope.spawn(|| keep_sending(&server, &is_over));
        for (what, statement) in greedy() {
            assert_bounded(&ask(&server, &statement), what);
        }
        let at_once = greedy().into_iter().step_by(4).map(|(what, statement)| {
            let server = &server;
            scope.spawn(move || assert_bounded(&ask(server, &statement), what))
        });
        at_once.collect::<Vec<_>>().into_iter().for_each(|asked| asked.join().expect("an answer"));
        run_random(&server, 1_118, 60);
        is_over.store(true, Ordering::Relaxed);
        sender.join().expect("the sender is acknowledged")
    });
    let highest = processes.highest();
    println!("peak memory: {highest:?}");
    highest.assert_bounded();
    assert!(highest.worker > 0, "no worker was seen");
    assert!(!server.has_ended());
    assert_eq!(stored(&server), (count + sent) as u64);
    assert!(server.stop().success());
}

/// Returns the number of events, once the machine is idle.
fn stored(server: &Server) -> u64 {
    let began = Instant::now();
    loop {
        let answer = ask(server, "SELECT count(*) AS n FROM events");
        if answer.status == 200 {
            return answer.json()["rows"][0]["n"].as_u64().expect("a number");
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{}", answer.json());
    }
}

/// Sends one event after the other, and returns the number of acknowledged ones.
fn keep_sending(server: &Server, is_over: &AtomicBool) -> usize {
    let mut sent = 0;
    while !is_over.load(Ordering::Relaxed) {
        let began = Instant::now();
        server.post_lines(&events(sent, 1)).is(200);
        assert!(began.elapsed() < Duration::from_secs(20), "an acknowledgement took {:?}", began.elapsed());
        sent += 1;
        std::thread::sleep(Duration::from_millis(20));
    }
    sent
}

/// Runs statements from a grammar, three at a time.
fn run_random(server: &Server, seed: u64, count: usize) {
    std::thread::scope(|scope| {
        for thread in 0..3 {
            scope.spawn(move || {
                let mut grammar = Grammar::new(seed + thread);
                for _ in 0..count / 3 {
                    let statement = grammar.statement();
                    assert_bounded(&ask(server, &statement), &statement);
                }
            });
        }
    });
}

/// Checks that the response is a result or an exceeded limit, and not the death of a process.
#[track_caller]
pub(crate) fn assert_bounded(answer: &super::server::Answer, what: &str) {
    if let Some(error) = error_of(answer) {
        let message = error["message"].as_str().unwrap_or_default();
        assert!(!message.contains("died"), "{what}: {error}");
        assert!(
            answer.status < 500 || answer.status == 503 || !message.contains("report"),
            "{what}: {error}"
        );
    }
}

/// Scenario: a PostgreSQL client prepares thousands of long statements, and opens portals with long values.
/// Guarantee: past a bound it is told so, its connection stays usable, and the server's memory stays as it is.
#[test]
fn prepared_statements_are_bounded_by_their_size() {
    let folder = Folder::new();
    let server = with_example(&folder);
    rows(&server, "SELECT 1");
    let (before, _) = server.resident();
    let port = server.address("postgres").port().to_string();
    let kept: Value = python("postgres.py", &[&port, "hoarding"], b"");
    assert_eq!(kept["refused"], "53200", "{kept}");
    assert!(kept["prepared"].as_u64().is_some_and(|count| (5..50).contains(&count)), "{kept}");
    assert_eq!(kept["usable"], 1, "{kept}");
    let (_, peak) = server.resident();
    assert!(peak < before + (200 << 20), "{before} became {peak}");
    assert!(server.stop().success());
}

/// Scenario: a worker is killed while it runs a query, and while it waits for one.
/// Guarantee: the client of that query is told; the next queries are answered.
#[test]
fn a_worker_that_dies_takes_only_its_query_along() {
    let folder = Folder::new();
    // However busy the machine is, the query does not reach its time limit.
    let server = with_example_and(&folder, &["--query-time", "10m"]);
    rows(&server, "SELECT 1");
    let died = std::thread::scope(|scope| {
        let endless = "SELECT count(*) FROM generate_series(1, 1000000000000)";
        let asked = scope.spawn(|| ask(&server, endless));
        let busy = busiest_child(server.pid());
        processes::kill(busy);
        asked.join().expect("an answer")
    });
    assert_eq!(died.status, 500, "{}", died.json());
    assert!(died.json()["error"]["message"].as_str().is_some_and(|said| said.contains("died")));
    assert_eq!(rows(&server, "SELECT 1 AS one"), [json!({"one": 1})]);
    let idle = processes::children(server.pid());
    idle.iter().for_each(|pid| processes::kill(*pid));
    processes::wait_until_gone(&idle);
    assert_eq!(rows(&server, "SELECT count(*) AS n FROM events")[0]["n"], 202);
    let workers = processes::children(server.pid());
    assert!(!workers.is_empty());
    server.kill();
    processes::wait_until_gone(&workers);
}

/// Scenario: arithmetic with integers that do not fit.
/// Guarantee: an error, and never a number that is wrong.
#[test]
fn integers_that_overflow_are_errors() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let largest = "9223372036854775807";
    let overflowing = [
        format!("SELECT {largest} + 1"),
        format!("SELECT -{largest} - 2"),
        format!("SELECT {largest} * 2"),
        format!("SELECT sum({largest}) FROM events"),
        format!("SELECT service, sum({largest}) FROM events GROUP BY service"),
        format!("SELECT sum(x) OVER () FROM (VALUES ({largest}), (1)) AS t(x)"),
        format!("SELECT sum(x) OVER (ROWS 1 PRECEDING) FROM (VALUES ({largest}), (1)) AS t(x)"),
        format!("SELECT sum(DISTINCT x) FROM (VALUES ({largest}), (1)) AS t(x)"),
        format!("SELECT sum(DISTINCT x) OVER (ROWS 1 PRECEDING) FROM (VALUES ({largest}), (1)) AS t(x)"),
        format!("SELECT -(x - 1) FROM (VALUES (-{largest})) AS t(x)"),
        format!("SELECT max(represents + {largest}) FROM events"),
        "SELECT CAST(2147483647 AS INT) + CAST(1 AS INT)".to_owned(),
    ];
    for statement in overflowing {
        let answer = ask(&server, &statement);
        assert_eq!(answer.status, 400, "{statement}: {}", answer.json());
        let message = answer.json()["error"]["message"].to_string().to_lowercase();
        assert!(message.contains("overflow"), "{statement}: {message}");
    }
    let fitting = [
        ("SELECT 2 + 3 * 4 - 1 AS n", json!(13)),
        ("SELECT sum(represents) AS n FROM events", json!(202)),
        ("SELECT sum(x) AS n FROM (VALUES (1), (NULL), (2)) AS t(x)", json!(3)),
        (
            "SELECT sum(x) AS n FROM (VALUES (9223372036854775807), (1), (-5)) AS t(x)",
            json!(9223372036854775803_i64),
        ),
        ("SELECT sum(represents) AS n FROM events WHERE false", Value::Null),
        ("SELECT sum(x) AS n FROM (VALUES (0.5), (0.25)) AS t(x)", json!(0.75)),
        ("SELECT CAST(1 AS SMALLINT) + 1 AS n", json!(2)),
        ("SELECT -sum(represents) AS n FROM events", json!(-202)),
        ("SELECT - - x AS n FROM (VALUES (7)) AS t(x)", json!(7)),
        (
            "SELECT max(s) AS n FROM (SELECT sum(DISTINCT x) OVER (ORDER BY o ROWS 1 PRECEDING) AS s FROM \
            (VALUES (1, 5), (2, 5), (3, 4), (4, NULL)) AS t(o, x))",
            json!(9),
        ),
    ];
    for (statement, expected) in fitting {
        assert_eq!(rows(&server, statement)[0]["n"], expected, "{statement}");
    }
    assert!(server.stop().success());
}

/// Scenario: conditions of a tail that would build large values in the server itself.
/// Guarantee: refused, with what is not allowed; those that compare are taken.
#[test]
fn conditions_of_a_tail_build_nothing() {
    let folder = Folder::new();
    let server = with_example(&folder);
    for refused in [
        "repeat(message, 100000) = 'x'",
        "message || message = 'x'",
        "message ~ message",
        "message LIKE message",
        "regexp_like(message, message)",
        "array_length(make_array(message, message), 1) = 2",
        "lpad(message, 1000000) = 'x'",
        "replace(message, 'a', 'aaaaaaaa') = 'x'",
    ] {
        let query: String = form_urlencoded::byte_serialize(refused.as_bytes()).collect();
        let answer = server.get(&format!("/api/v1/tail?where={query}"));
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (403, &json!("refused")), "{refused}");
    }
    assert!(server.stop().success());
}
