//! The Arrow Flight SQL endpoint, as a notebook uses it: ADBC and pyarrow against the real server.

use super::otlp::client::python;
use super::server::{Server, ask};
use super::support::{Folder, root};
use serde_json::{Value, json};

/// A query with an endless result.
const ENDLESS: &str =
    "SELECT a.value, b.value FROM generate_series(1, 1000000) a CROSS JOIN generate_series(1, 1000000) b";
/// A query that takes very long, and returns nothing before it ends.
const SLOW: &str = "SELECT count(*) FROM generate_series(1, 1000000) a CROSS JOIN generate_series(1, 1000000) b \
                    WHERE a.value % 7 = b.value % 11";

/// Starts a server with the events of the example log.
fn server(folder: &Folder) -> Server {
    let server = Server::start(folder);
    let log = std::fs::read_to_string(root().join("examples/app.ndjson")).expect("the example log");
    server.post_lines(&log).is(200);
    server
}

/// Runs steps of the Python client, and returns their results.
#[track_caller]
pub(crate) fn flight(server: &Server, steps: &Value) -> Vec<Value> {
    let (flight, web) = (server.address("flight"), server.address("web"));
    let arguments = [format!("grpc://{flight}"), format!("http://{web}")];
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let answers = python("flight.py", &arguments, steps.to_string().as_bytes());
    let answers = answers.as_array().expect("a list of answers").clone();
    assert_eq!(Some(answers.len()), steps.as_array().map(Vec::len));
    answers
}

/// Returns the rows of the response to `POST /api/v1/sql`.
fn rows_over_http(server: &Server, sql: &str) -> Vec<Value> {
    let body = json!({"query": sql}).to_string();
    let headers = [("Content-Type", "application/json")];
    let answer = ask(server.address("web"), "POST", "/api/v1/sql", &headers, body.as_bytes());
    answer.expect("an answer").is(200).json()["rows"].as_array().expect("rows").clone()
}

/// Returns the gRPC status from the text of an error, because ADBC has fewer statuses than gRPC.
#[track_caller]
fn fails(answer: &Value, status: &str, parts: &[&str]) {
    assert_eq!(answer["status"], status, "{answer}");
    let error = answer["error"].as_str().expect("an error");
    for part in parts {
        assert!(error.contains(part), "'{part}' is not in: {error}");
    }
}

/// Scenario: the same questions over ADBC, over HTTP as an Arrow stream and over HTTP as JSON; rows are a second old.
/// Guarantee: all give the same columns, types and rows.
#[test]
fn flight_and_http_give_the_same_rows() {
    let folder = Folder::new();
    let server = server(&folder);
    let questions = [
        "SELECT * FROM events ORDER BY event_id",
        "SELECT sum(calls) AS calls, service, outcome FROM traffic GROUP BY service, outcome ORDER BY 2, 3",
        "SELECT * FROM codes ORDER BY dialect, code",
        "SELECT * FROM columns ORDER BY table_name, position",
        "SELECT category, count(*) AS n, avg(duration_us) FROM errors GROUP BY category ORDER BY category",
        "SELECT 1 WHERE false",
        "SELECT date '2024-02-29', 1.5::decimal(9,2), interval '1 hour', NULL, ARRAY['a', NULL], true, 'größe ☃'",
        "EXPLAIN SELECT 1",
        "SHOW TABLES",
    ];
    let steps: Vec<Value> =
        questions.iter().flat_map(|sql| [json!(["query", sql]), json!(["http", sql])]).collect();
    let answers = flight(&server, &json!(steps));
    for (sql, pair) in questions.iter().zip(answers.chunks(2)) {
        assert!(pair[0]["columns"].is_array(), "{sql}: {}", pair[0]);
        assert_eq!(pair[0], pair[1], "{sql}");
    }
    let stored = server.dump("events").len();
    assert_eq!(answers[0]["rows"].as_array().map(Vec::len), Some(stored));
    assert!(stored > 100, "{stored}");

    let sql = "SELECT service, category, count(*) AS n FROM events GROUP BY service, category ORDER BY 1, 2";
    let answers = flight(&server, &json!([["query", sql]]));
    let expected: Vec<Value> = rows_over_http(&server, sql)
        .iter()
        .map(|row| json!([row["service"], row["category"], row["n"]]))
        .collect();
    assert!(expected.len() > 10, "{expected:?}");
    assert_eq!(answers[0]["rows"], json!(expected));
}

/// Scenario: prepared statements with parameters of every usual type, run again with others; too few, several rows.
/// Guarantee: each run has the rows of its own parameters; types are told before; what cannot be bound is refused
/// with the reason.
#[test]
fn prepared_statements_take_parameters() {
    let folder = Folder::new();
    let server = server(&folder);
    let by_service = "SELECT count(*) FROM events WHERE service = $1 AND time > $2";
    let services = rows_over_http(
        &server,
        "SELECT service, count(*) AS n FROM events GROUP BY service ORDER BY service",
    );
    let parameters: Vec<Value> =
        services.iter().map(|row| json!([row["service"], "2000-01-01T00:00:00Z"])).collect();
    let answers = flight(
        &server,
        &json!([
            ["prepared", by_service, parameters],
            ["query", "SELECT $1, $2, $3, $4, $5", [7, "it's ü", null, 2.5, true]],
            [
                "query",
                "SELECT code FROM codes WHERE dialect = $1 AND code = $2",
                ["jsonrpc", "'; DROP TABLE events; --"]
            ],
            ["query", "SELECT $1 + 1 AS more", [41]],
            ["query", by_service, ["orders"]],
            ["query", "SELECT * FROM events WHERE service = ?", ["orders"]],
            ["bind_rows", "SELECT $1", [1, 2]],
            ["query", "SELECT $1", ["x".repeat(300_000)]],
            ["query", "SELECT 1", []],
            ["execute_schema", "SELECT time, code, category FROM events LIMIT 0"],
        ]),
    );
    let told: Vec<_> =
        answers[0]["parameters"].as_array().expect("types").iter().map(|it| &it["type"]).collect();
    assert_eq!(told, ["string", "timestamp[us, tz=UTC]"]);
    let counts: Vec<Value> = services.iter().map(|row| json!([[row["n"]]])).collect();
    assert!(counts.len() > 5 && answers[0]["answers"] == json!(counts), "{}", answers[0]);
    assert_eq!(answers[1]["rows"], json!([[7, "it's ü", null, 2.5, true]]));
    assert_eq!(answers[2]["rows"], json!([]));
    assert_eq!(answers[3], json!({"columns": [["more", "int64"]], "rows": [[42]]}));
    fails(&answers[4], "INVALID_ARGUMENT", &["$2"]);
    fails(&answers[5], "INVALID_ARGUMENT", &["line 1, column 38", "write parameters as $1"]);
    fails(&answers[6], "INVALID_ARGUMENT", &["one row of parameters"]);
    fails(&answers[7], "INTERNAL", &["the parameters take", "at most", "ResourceExhausted"]);
    assert_eq!(answers[8]["rows"], json!([[1]]));
    assert_eq!(answers[9][0], json!({"name": "time", "type": "timestamp[us, tz=UTC]"}));
    assert_eq!(answers[9].as_array().map(Vec::len), Some(3));
}

/// Scenario: a client looks around: catalogs, schemas, tables, their columns, types, keys, what the server can do.
/// Guarantee: it finds what SQL finds, every column of ours with what it holds, and the announced schema is that of the
/// rows.
#[test]
fn the_catalog_is_what_sql_says_it_is() {
    let folder = Folder::new();
    let server = server(&folder);
    let answers = flight(
        &server,
        &json!([
            ["objects", "tables", {"db_schema_filter": "public"}],
            ["objects", "all", {"table_name_filter": "ev_nts"}],
            ["table_schema", "events"],
            ["table_schema", "evnts"],
            ["table_types"],
            ["info"],
            ["raw_command", "CommandGetCatalogs", []],
            ["raw_command", "CommandGetDbSchemas", [[2, "pub%"]]],
            ["raw_command", "CommandGetTables", [[3, "%s"], [4, "VIEW"]]],
            ["raw_command", "CommandGetPrimaryKeys", [[3, "events"]]],
            ["raw_command", "CommandGetExportedKeys", [[3, "events"]]],
            ["raw_command", "CommandGetImportedKeys", [[3, "events"]]],
            ["raw_command", "CommandGetCrossReference", [[3, "events"], [6, "codes"]]],
            ["raw_command", "CommandGetXdbcTypeInfo", []],
            ["raw_command", "CommandGetSqlInfo", []],
            ["raw_command", "CommandStatementQuery", [[1, "SELECT 1 AS one"]]],
            ["raw_actions"],
        ]),
    );
    let sql = "SELECT table_name, CASE table_type WHEN 'VIEW' THEN 'VIEW' ELSE 'TABLE' END AS kind \
               FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name";
    let expected: Vec<Value> =
        rows_over_http(&server, sql).iter().map(|row| json!([row["table_name"], row["kind"]])).collect();
    assert!(expected.contains(&json!(["events", "TABLE"])) && expected.contains(&json!(["errors", "VIEW"])));
    let tables = answers[0][0]["catalog_db_schemas"][0]["db_schema_tables"].as_array().expect("tables");
    let found: Vec<Value> =
        tables.iter().map(|table| json!([table["table_name"], table["table_type"]])).collect();
    assert_eq!((&answers[0][0]["catalog_name"], found), (&json!("faultline"), expected.clone()));

    let sql =
        "SELECT column_name, data_type, about FROM columns WHERE table_name = 'events' ORDER BY position";
    let columns = rows_over_http(&server, sql);
    let told = answers[2].as_array().expect("columns");
    assert!(columns.len() > 20 && told.len() == columns.len(), "{told:?}");
    for (told, column) in told.iter().zip(&columns) {
        let told = json!([told["name"], told["named"], told["about"]]);
        assert_eq!(told, json!([column["column_name"], column["data_type"], column["about"]]));
    }
    let schemas = answers[1][0]["catalog_db_schemas"].as_array().expect("schemas");
    let public = schemas.iter().find(|schema| schema["db_schema_name"] == "public").expect("public");
    let names: Vec<&Value> = public["db_schema_tables"][0]["table_columns"]
        .as_array()
        .expect("columns")
        .iter()
        .map(|column| &column["column_name"])
        .collect();
    assert_eq!(names, columns.iter().map(|column| &column["column_name"]).collect::<Vec<_>>());

    fails(&answers[3], "NOT_FOUND", &[]);
    assert_eq!(answers[4], json!(["SYSTEM TABLE", "TABLE", "VIEW"]));
    assert_eq!(
        (&answers[5]["vendor_name"], &answers[5]["vendor_version"]),
        (&json!("Faultline"), &json!(env!("CARGO_PKG_VERSION")))
    );
    for answer in &answers[6..16] {
        assert_eq!(answer["announced"], true, "{answer}");
    }
    assert_eq!(answers[6]["rows"], json!([["faultline"]]));
    assert_eq!(answers[7]["rows"], json!([["faultline", "public"]]));
    let views: Vec<Value> = expected
        .iter()
        .filter(|table| table[1] == "VIEW" && table[0].as_str().is_some_and(|name| name.ends_with('s')))
        .map(|table| json!(["faultline", "public", table[0], "VIEW"]))
        .collect();
    assert_eq!(answers[8]["rows"], json!(views));
    for (keys, columns) in answers[9..13].iter().zip([6, 13, 13, 13]) {
        assert_eq!((&keys["rows"], keys["columns"].as_array().map(Vec::len)), (&json!([]), Some(columns)));
    }
    assert!(answers[13].to_string().contains("timestamp with time zone"), "{}", answers[13]);
    // That the server is read-only, by its number in the specification.
    let facts = answers[14]["rows"].as_array().expect("facts");
    assert!(facts.iter().any(|fact| fact[0] == 3 && fact[1] == true), "{facts:?}");
    assert_eq!(answers[15]["rows"], json!([[1]]));
    assert_eq!(answers[16], json!(["CreatePreparedStatement", "ClosePreparedStatement"]));
}

/// Scenario: statements that write, mistakes, and bytes that are not Flight SQL.
/// Guarantee: each is refused with its own status, with the reason, the place and a suggestion, and nothing changes.
#[test]
fn what_is_refused_says_why() {
    let folder = Folder::new();
    let server = server(&folder);
    let before = rows_over_http(&server, "SELECT count(*) AS n FROM events");
    let writes = [
        "DELETE FROM events",
        "INSERT INTO events SELECT * FROM events",
        "CREATE TABLE mine AS SELECT 1",
        "COPY events TO '/tmp/stolen.csv'",
        "SET datafusion.execution.batch_size = 1",
        "WITH gone AS (DELETE FROM events RETURNING *) SELECT * FROM gone",
        "SELECT 1; DROP TABLE events",
    ];
    let mut steps: Vec<Value> = writes.iter().map(|sql| json!(["query", sql])).collect();
    steps.extend([
        json!(["execute_many", "DELETE FROM events WHERE code = $1", [["A"], ["B"]]]),
        json!(["ingest", "events"]),
        json!(["query", "SELECT *\n  FROM evnts"]),
        json!(["query", "SELECT servic FROM events"]),
        json!(["query", "SELEC 1"]),
        json!(["query", "SELECT 'a'::int FROM events"]),
        json!(["query", format!("SELECT '{}'", "x".repeat(300_000))]),
        json!(["stream", "SELECT value FROM generate_series(1, 1000001)"]),
        json!(["raw_ticket", "SELECT 1"]),
        json!(["raw_descriptor", "events"]),
        json!(["raw_command", "CommandStatementSubstraitPlan", []]),
        json!(["raw_handshake", "anyone", "anything"]),
        json!(["query", "SELECT count(*) AS n FROM events"]),
    ]);
    let answers = flight(&server, &json!(steps));
    for (sql, answer) in writes.iter().zip(&answers) {
        fails(answer, "UNAUTHORIZED", &["not allowed"]);
        assert!(
            answer["error"].as_str().is_some_and(|error| error.contains("PermissionDenied")),
            "{sql}: {answer}"
        );
    }
    let rest = &answers[writes.len()..];
    fails(&rest[0], "UNAUTHORIZED", &["DELETE FROM is not allowed", "read-only"]);
    fails(&rest[1], "UNAUTHORIZED", &["writing to 'events' is not allowed"]);
    fails(
        &rest[2],
        "NOT_FOUND",
        &["there is no table 'evnts'", "line 2, column 8", "did you mean 'events'?"],
    );
    fails(
        &rest[3],
        "NOT_FOUND",
        &["there is no column 'servic'", "line 1, column 8", "did you mean 'service'?"],
    );
    fails(&rest[4], "INVALID_ARGUMENT", &["line 1, column 1"]);
    fails(&rest[5], "INVALID_ARGUMENT", &["'a'"]);
    fails(&rest[6], "INTERNAL", &["at most", "ResourceExhausted"]);
    fails(&rest[7], "OSError", &["more than 1000000 rows", "LIMIT", "ResourceExhausted"]);
    fails(&rest[8], "ArrowInvalid", &["Flight SQL"]);
    fails(&rest[9], "ArrowInvalid", &["Flight SQL"]);
    fails(&rest[10], "ArrowNotImplementedError", &[]);
    assert_eq!(rest[11]["flights"], 0);
    assert!(rest[11]["token"].as_str().is_some_and(|token| token.starts_with("Bearer ")), "{}", rest[11]);
    assert_eq!(rest[12]["rows"], json!([[before[0]["n"]]]));
}

/// Scenario: a long answer is read to its end; then clients go away in the middle of answers, and cancel queries that
/// have not answered yet, more often than queries may run at once.
/// Guarantee: the long answer comes in many batches, complete; and after all that the next query is answered at once,
/// because those who went took their queries along.
#[test]
fn long_answers_are_streamed_and_abandoned_ones_end() {
    let folder = Folder::new();
    let server = server(&folder);
    let answers = flight(
        &server,
        &json!([
            ["stream", "SELECT value FROM generate_series(1, 900000)"],
            ["abandon", ENDLESS, 20],
            ["cancel", SLOW, 12],
            ["timed", "SELECT count(*) FROM events"],
        ]),
    );
    assert_eq!((&answers[0]["rows"], &answers[0]["sum"]), (&json!(900_000), &json!(405_000_450_000_u64)));
    assert!(answers[0]["batches"].as_u64() > Some(20), "{}", answers[0]);
    assert_eq!(answers[1], 20);
    assert_eq!(answers[2], json!(vec!["CANCELLED"; 12]));
    assert!(answers[3]["seconds"].as_f64() < Some(8.0), "{}", answers[3]);
    let (_, highest) = server.resident();
    assert!(highest < 1 << 30, "{highest}");
}
