//! The HTTP endpoint for SQL: `POST /api/v1/sql`, as curl and programs use it.

use super::server::{Answer, Server};
use super::support::{Folder, root};
use arrow::ipc::reader::StreamReader;
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Starts a server with the example log in it.
pub(crate) fn with_example(folder: &Folder) -> Server {
    with_example_and(folder, &[])
}

/// Starts the same with further arguments.
pub(crate) fn with_example_and(folder: &Folder, arguments: &[&str]) -> Server {
    let server = Server::start_with(folder, arguments);
    let lines = std::fs::read_to_string(root().join("examples/app.ndjson")).expect("the example log");
    server.post_lines(&lines).is(200);
    server
}

/// Sends a query with any headers.
fn post(server: &Server, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    super::server::ask(server.address("web"), "POST", "/api/v1/sql", headers, body).expect("an answer")
}

/// Sends a query, and returns any response.
pub(crate) fn ask(server: &Server, query: &str) -> Answer {
    post(server, &[], json!({"query": query}).to_string().as_bytes())
}

/// Sends a query, and expects rows.
#[track_caller]
pub(crate) fn rows(server: &Server, query: &str) -> Vec<Value> {
    ask(server, query).is(200).json()["rows"].as_array().expect("rows").clone()
}

#[track_caller]
fn error(server: &Server, status: u16, query: &str) -> Value {
    ask(server, query).is(status).json()["error"].clone()
}

/// Scenario: the example log, and a question in each format.
/// Guarantee: JSON, CSV, Parquet and Arrow say the same, with names and types, and agree with `faultline dump`.
#[test]
fn an_answer_comes_as_json_csv_parquet_or_arrow() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let query = "SELECT category, count(*) AS n, min(time) AS since FROM events GROUP BY 1 ORDER BY 1";
    let answer = ask(&server, query).is(200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let answer = answer.json();
    let types: Vec<&str> =
        answer["columns"].as_array().unwrap().iter().map(|c| c["type"].as_str().unwrap()).collect();
    assert_eq!(types, ["text", "bigint", "timestamp with time zone"]);
    assert_eq!(answer["truncated"], false);
    assert!(answer["elapsed_ms"].as_f64().unwrap() > 0.0);
    let found = answer["rows"].as_array().unwrap();
    assert_eq!(answer["row_count"], found.len());
    let dumped = server.dump("events");
    for row in found {
        let same = dumped.iter().filter(|event| event["category"] == row["category"]).count();
        assert_eq!(row["n"], same, "{row}");
    }
    let body = json!({"query": query}).to_string();
    let csv = post(&server, &[("Accept", "text/csv")], body.as_bytes()).is(200);
    let csv = String::from_utf8(csv.body).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("category,n,since"));
    for (line, row) in lines.by_ref().zip(found) {
        assert!(line.starts_with(&format!("{},{},", row["category"].as_str().unwrap(), row["n"])), "{line}");
    }
    assert_eq!(lines.next(), None);
    let lists = json!({"query": "SELECT findings FROM events WHERE hidden LIMIT 1"}).to_string();
    let lists = post(&server, &[("Accept", "text/csv")], lists.as_bytes()).is(200);
    assert!(String::from_utf8(lists.body).unwrap().contains("hidden_failure"), "lists are texts in CSV");
    let arrow = post(&server, &[("Accept", "application/vnd.apache.arrow.stream")], body.as_bytes()).is(200);
    let batches: Vec<_> =
        StreamReader::try_new(&arrow.body[..], None).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(batches.iter().map(arrow::array::RecordBatch::num_rows).sum::<usize>(), found.len());
    let file = post(&server, &[("Accept", "application/vnd.apache.parquet")], body.as_bytes()).is(200);
    let read: Vec<_> = ParquetRecordBatchReader::try_new(bytes::Bytes::from(file.body), 1_024)
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(read, batches);
    assert!(server.stop().success());
}

/// Scenario: values of every JSON type as parameters, too few and too many, and texts that look like SQL.
/// Guarantee: values are compared as values and never read as SQL; a missing one is named.
#[test]
fn parameters_are_values() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let ask = |query: &str, params: Value| {
        post(&server, &[], json!({"query": query, "params": params}).to_string().as_bytes())
    };
    let count = |query: &str, params: Value| ask(query, params).is(200).json()["rows"][0]["n"].clone();
    let all = rows(&server, "SELECT count(*) AS n FROM events")[0]["n"].clone();
    assert_eq!(
        count("SELECT count(*) AS n FROM events WHERE time >= $1", json!(["2020-01-01T00:00:00Z"])),
        all
    );
    assert_eq!(count("SELECT count(*) AS n FROM events WHERE time >= $1", json!(["2999-01-01"])), 0);
    assert_eq!(count("SELECT count(*) AS n FROM events WHERE service = $1", json!(["' OR '1'='1"])), 0);
    let slow = count("SELECT count(*) AS n FROM events WHERE duration_us > $1", json!([100_000]));
    assert_eq!(slow, rows(&server, "SELECT count(*) AS n FROM events WHERE duration_us > 100000")[0]["n"]);
    let hidden = count("SELECT count(*) AS n FROM events WHERE hidden = $1", json!([true]));
    assert_eq!(hidden, rows(&server, "SELECT count(*) AS n FROM events WHERE hidden")[0]["n"]);
    assert!(hidden.as_i64().unwrap() > 0);
    let missing = ask("SELECT count(*) AS n FROM events WHERE service = $1 AND kind = $2", json!(["x"]));
    assert!(missing.is(400).json()["error"]["message"].as_str().unwrap().contains("$2"));
    ask("SELECT $1", json!([[1, 2]])).is(400);
    assert!(server.stop().success());
}

/// Scenario: questions with mistakes.
/// Guarantee: the answer says what is wrong, where, and what was probably meant; the next query is answered.
#[test]
fn mistakes_are_explained() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let found = error(&server, 400, "SELECT service,\n  categroy FROM events");
    assert_eq!(found["code"], "unknown_name");
    assert_eq!(found["position"], json!({"line": 2, "column": 3}));
    assert_eq!(found["remedy"], "did you mean 'category'?");
    let found = error(&server, 400, "SELECT * FROM evnts");
    assert_eq!(
        (&found["code"], &found["remedy"]),
        (&json!("unknown_name"), &json!("did you mean 'events'?"))
    );
    let found = error(&server, 400, "SELECT count(* FROM events");
    assert_eq!(found["code"], "syntax");
    assert!(found["position"]["column"].as_u64().unwrap() > 8, "{found}");
    assert_eq!(error(&server, 400, "SELECT coutn(*) FROM events")["code"], "unknown_name");
    assert_eq!(error(&server, 400, "")["code"], "syntax");
    assert_eq!(error(&server, 422, &format!("SELECT '{}'", "x".repeat(300_000)))["code"], "statement_limit");
    let found = error(&server, 400, "SELECT json_extract(attributes, '$.a') FROM events");
    assert!(found["remedy"].as_str().unwrap().contains("attributes->>'key'"), "{found}");
    assert_eq!(found["message"], "Invalid function 'json_extract'.");
    for condition in ["hidden = 'true'", "hidden IN ('true')", "hidden LIKE 't%'", "attributes->>'a' = true"]
    {
        let found = error(&server, 400, &format!("SELECT * FROM events WHERE {condition}"));
        assert!(found["remedy"].as_str().unwrap().contains("true or false"), "{condition}: {found}");
    }
    let empty = post(&server, &[], b" \n").is(400).json();
    assert!(empty["error"]["message"].as_str().unwrap().contains("/api/v1/sql is empty"), "{empty}");
    let example = "curl http://127.0.0.1:7070/api/v1/sql -d 'SELECT count(*) FROM events'";
    assert!(empty["error"]["remedy"].as_str().unwrap().contains(example), "{empty}");
    let got = super::server::ask(server.address("web"), "GET", "/api/v1/sql", &[], b"").expect("an answer");
    let got = got.is(405).json();
    assert!(got["error"]["remedy"].as_str().unwrap().contains(example), "{got}");
    // The example works as it is: curl sends the type of a form.
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    post(&server, &form, b"SELECT count(*) FROM events").is(200);
    post(&server, &[], b"not json").is(400);
    post(&server, &[], br#"{"query":"SELECT 1","colour":"red"}"#).is(400);
    post(&server, &[("Accept", "image/png")], br#"{"query":"SELECT 1"}"#).is(400);
    post(&server, &[("Content-Type", "text/plain")], b"SELECT 1 AS one").is(200);
    let too_long = vec![b'x'; 2 << 20];
    post(&server, &[("Content-Type", "text/plain")], &too_long).is(413);
    assert_eq!(rows(&server, "SELECT 1 AS one"), [json!({"one": 1})]);
    assert!(server.stop().success());
}

/// Scenario: more rows than are wanted, and an answer wider and longer than the server gives.
/// Guarantee: what is cut says so; what is too wide is refused by name of the limit.
#[test]
fn answers_are_bounded() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let body = json!({"query": "SELECT event_id FROM events", "max_rows": 10}).to_string();
    let answer = post(&server, &[], body.as_bytes()).is(200).json();
    assert_eq!((&answer["row_count"], &answer["truncated"]), (&json!(10), &json!(true)));
    let csv = post(&server, &[("Accept", "text/csv")], body.as_bytes()).is(200);
    assert_eq!(csv.header("x-faultline-truncated"), Some("true"));
    assert_eq!(String::from_utf8(csv.body).unwrap().lines().count(), 11);
    let wide = (0..10_000).map(|n| format!("{n} c{n}")).collect::<Vec<_>>().join(",");
    assert_eq!(error(&server, 422, &format!("SELECT {wide}"))["code"], "column_limit");
    let deep = format!("SELECT {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    assert!(ask(&server, &deep).status >= 400);
    let long = ask(&server, "SELECT a.description FROM codes a, codes b, codes c LIMIT 900000").is(200);
    assert!(long.body.len() < 128 << 20, "{} bytes", long.body.len());
    assert_eq!(rows(&server, "SELECT 1 AS one"), [json!({"one": 1})]);
    assert!(server.stop().success());
}

/// Scenario: a client asks something endless and hangs up; many clients do.
/// Guarantee: their queries end at once, so that others have their turn.
#[test]
fn whoever_hangs_up_takes_his_query_along() {
    let folder = Folder::new();
    let server = with_example_and(&folder, &["--query-time", "10m"]);
    let endless = json!({"query": "SELECT count(*) FROM generate_series(1, 1000000000000)"}).to_string();
    let head = format!(
        "POST /api/v1/sql HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{endless}",
        endless.len()
    );
    // This is twice the number of queries that may run at once.
    for _ in 0..16 {
        let mut stream = TcpStream::connect(server.address("web")).expect("a connection");
        stream.write_all(head.as_bytes()).expect("the question is sent");
        stream.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        assert!(stream.read(&mut [0; 1]).is_err(), "it is still running");
    }
    let began = Instant::now();
    assert_eq!(rows(&server, "SELECT count(*) AS n FROM events")[0]["n"], 202);
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    assert!(server.stop().success());
}

/// Scenario: as many endless queries as may run, again and again, while a sender sends and a dashboard asks.
/// Guarantee: the sender is acknowledged all the time, and every event is there; small questions get their turn.
#[test]
fn queries_and_ingest_leave_each_other_room() {
    let folder = Folder::new();
    // Queries have a lower priority than everything else on the machine, other tests included, so small ones need time.
    let server =
        Server::start_with(&folder, &["--query-time", "20s", "--query-wait", "60s", "--queries", "4"]);
    let endless = "SELECT count(DISTINCT a.value % 1000) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b";
    let (mut sent, mut slowest) = (0, Duration::ZERO);
    let until = Instant::now() + Duration::from_secs(8);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    assert_eq!(error(&server, 422, endless)["code"], "time_limit");
                }
            });
        }
        let asking = scope.spawn(|| {
            // The threads are stopped even if the test fails, because nothing may run for ever.
            let _over = Over(&is_over);
            let mut asked = 0;
            while Instant::now() < until || asked < 3 {
                assert_eq!(rows(&server, "SELECT count(*) AS n FROM events").len(), 1);
                asked += 1;
            }
        });
        while !is_over.load(Ordering::Relaxed) {
            let began = Instant::now();
            server.post_lines(super::support::OPEN).is(200);
            slowest = slowest.max(began.elapsed());
            sent += 1;
        }
        asking.join().expect("the dashboard is answered");
        assert!(sent > 20, "{sent} sent");
    });
    assert!(slowest < Duration::from_secs(10), "{slowest:?}");
    assert_eq!(rows(&server, "SELECT count(*) AS n FROM events")[0]["n"], sent);
    assert!(server.stop().success());
}

/// Sets a flag when it is dropped.
struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
