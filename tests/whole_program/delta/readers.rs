//! Other programs open the tables as they are: delta-rs, `DuckDB` and Polars see what `faultline dump` sees, and so
//! does our own SQL.

use super::tables::{Folder as TableFolder, TABLES};
use super::{number, until_status};
use crate::whole_program::otlp::client::python;
use crate::whole_program::server::{Server, dump};
use crate::whole_program::support::Folder;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// The number of consecutive days of traffic.
const DAYS: i64 = 4;
const DAY_US: i64 = 86_400_000_000;
const NEW_YEAR_2024_US: i64 = 1_704_067_200_000_000;
/// The number of requests per day, each with a key, and the number of lines of each.
const REQUESTS: usize = 8;
const LINES: usize = 60;
/// Options for small files without retention.
const ARGUMENTS: [&str; 12] = [
    "--flush-bytes",
    "64KiB",
    "--flush-after",
    "100ms",
    "--keep-events",
    "forever",
    "--keep-traffic",
    "forever",
    "--keep-rejects",
    "forever",
    "--vacuum-grace",
    "1s",
];

/// Names and times that are difficult for statistics: longer than a bound, not ASCII, at the ends of the calendar.
const HARD: [(&str, &str); 10] = [
    ("größe-☃", "2024-11-03T23:59:59.999999Z"),
    ("größe-☃", "2024-11-04T00:00:00.000001Z"),
    ("日本語のサービス日本語のサービス日本語のサービス日本語のサービス", "2024-11-04T12:00:00.0005Z"),
    (
        "\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}\u{10ffff}",
        "2024-11-04T12:00:01Z",
    ),
    ("it's \\\"quoted\\\" % _ ", "2024-11-04T12:00:02Z"),
    (
        "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz-1",
        "2024-11-04T12:00:03Z",
    ),
    ("before-1970", "1969-12-31T23:59:59.999999Z"),
    ("before-1970", "1901-02-03T04:05:06.000007Z"),
    ("far", "2999-12-31T23:59:59.999999Z"),
    ("epoch", "1970-01-01T00:00:00Z"),
];

/// Scenario: traffic of every dialect over several days, with hard names and times, flushed into many small files, some
/// of them merged, with a checkpoint; then the server stops.
/// Guarantee: every reader opens every table, and agrees with `dump` on rows, distinct ids, sums, first and last times,
/// whole and by group, and on questions by day, by time and by name, where files are skipped by what is said of them.
#[test]
fn every_reader_sees_what_dump_sees() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &ARGUMENTS);
    load(&server);
    until_status(&server, "files are merged, and there is a checkpoint", |status| {
        number(status, ["maintenance", "compacted_files"]) >= 8
            && number(status, ["maintenance", "checkpoints"]) >= 1
    });
    let data_dir = server.data_dir().to_owned();
    assert!(server.stop().success());
    let events = TableFolder::of(&data_dir, "events");
    assert!(events.days().len() >= DAYS as usize, "{:?}", events.days());
    assert!(events.rows().len() > 12, "{:?}", events.rows());
    let stored: BTreeMap<&str, Vec<Value>> =
        ["events", "traffic", "rejects"].into_iter().map(|table| (table, dump(&data_dir, table))).collect();
    let questions: Vec<Question> =
        stored.iter().flat_map(|(table, rows)| Question::of(table, rows)).collect();
    assert!(questions.len() > 40, "{}", questions.len());
    compare(&data_dir, &questions, &stored);
    requests_are_there(&data_dir);
}

/// Scenario: times at the very ends of what a record can say.
/// Guarantee: they are stored, and every reader still opens the table and sees all rows, with and without a condition.
#[test]
fn times_at_the_ends_of_the_calendar_do_not_close_a_table() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &ARGUMENTS);
    for time in ["0001-01-01T00:00:00Z", "0000-01-01T00:00:00Z", "-99999999999", "2024-11-04T00:00:00Z"] {
        server.post_lines(&line("edge", time)).is(200);
    }
    let data_dir = server.data_dir().to_owned();
    assert!(server.stop().success());
    let stored = BTreeMap::from([("events", dump(&data_dir, "events"))]);
    assert_eq!(stored["events"].len(), 4);
    let whole = Question::new("events");
    let named = whole.clone().given("service", "=", json!("edge"), "text");
    let one = whole.clone().given("date", "=", json!("2024-11-04"), "date");
    let late = whole.clone().given("time", ">=", json!(NEW_YEAR_2024_US), "time");
    let early = whole.clone().given("time", "<", json!(NEW_YEAR_2024_US), "time");
    let answers = ask(&data_dir, &[whole, named, one, late, early], &[]);
    for (reader, answers) in answers.as_object().expect("readers") {
        let rows: Vec<_> =
            answers.as_array().expect("answers").iter().map(|answer| answer[0][1].clone()).collect();
        assert_eq!(json!(rows), json!([4, 4, 1, 1, 3]), "{reader}: {answers}");
    }
}

/// Sends the traffic, one request after the other.
fn load(server: &Server) {
    // Times in the future would be replaced.
    let first = jiff::Timestamp::now().as_microsecond() - (DAYS + 1) * DAY_US;
    for day in 0..DAYS {
        let mut traffic = demo::Traffic::new(day.unsigned_abs()).at(first + day * DAY_US);
        for request in 0..REQUESTS {
            let mut body = Vec::new();
            (0..LINES).for_each(|_| traffic.next_line(&mut body));
            body.extend_from_slice(b"{not json\n");
            let (service, time) = HARD[(day as usize * REQUESTS + request) % HARD.len()];
            body.extend_from_slice(line(service, time).as_bytes());
            let key = format!("key-{day}-{request}");
            let headers = [("Content-Type", "application/x-ndjson"), ("Idempotency-Key", &*key)];
            server.post("/v1/envelopes", &headers, &body).is(200);
        }
        // The pause keeps days from being flushed together.
        super::until_flushed(server);
    }
}

/// Returns a failure of a service at a time.
fn line(service: &str, time: &str) -> String {
    format!(
        "{{\"service\":\"{service}\",\"time\":\"{time}\",\"tool\":\"get\",\"duration_ms\":7,\"jsonrpc\":\"2.0\",\"id\":1,\
         \"error\":{{\"code\":-32601,\"message\":\"Method not found\"}}}}\n"
    )
}

/// Responses to keys are in a table too, which `dump` does not print; their number is that of the requests.
#[track_caller]
fn requests_are_there(data_dir: &Path) {
    let question = Question {
        table: "requests",
        time: "time",
        sums: &[],
        distinct: "key",
        group: None,
        given: Vec::new(),
    };
    let expected = DAYS * REQUESTS as i64;
    for (reader, answers) in ask(data_dir, &[question], &[]).as_object().expect("readers") {
        assert_eq!((&answers[0][0][1], &answers[0][0][2]), (&expected.into(), &expected.into()), "{reader}");
    }
}

/// Queries every reader, and compares each result with the output of `dump`.
#[track_caller]
fn compare(data_dir: &Path, questions: &[Question], stored: &BTreeMap<&str, Vec<Value>>) {
    let answers = ask(data_dir, questions, &[env!("CARGO_BIN_EXE_faultline")]);
    let answers = answers.as_object().expect("readers");
    assert_eq!(answers.len(), 4);
    for (reader, answers) in answers {
        for (question, answer) in questions.iter().zip(answers.as_array().expect("answers")) {
            let expected = question.answer(&stored[question.table]);
            assert_eq!(answer, &expected, "{reader}: {question:?}");
        }
    }
}

/// Queries the readers, including Faultline itself if it is named.
fn ask(data_dir: &Path, questions: &[Question], ours: &[&str]) -> Value {
    let asked: Vec<Value> = questions.iter().map(Question::json).collect();
    let tables = data_dir.join("tables");
    assert!(TABLES.iter().all(|table| tables.join(table).exists()));
    let arguments = [&[tables.to_str().expect("UTF-8")], ours].concat();
    python("delta.py", &arguments, json!(asked).to_string().as_bytes())
}

/// A query in the format of `delta.py`, which can be computed from the rows of `dump` as well.
#[derive(Debug, Clone)]
struct Question {
    table: &'static str,
    time: &'static str,
    sums: &'static [&'static str],
    distinct: &'static str,
    group: Option<&'static str>,
    given: Vec<(&'static str, &'static str, Value, &'static str)>,
}

impl Question {
    /// Returns the query for all rows of a table.
    fn new(table: &'static str) -> Self {
        let (time, sums, distinct): (_, &[&str], _) = match table {
            "events" => ("time", &["duration_us"], "event_id"),
            "traffic" => ("minute", &["calls", "failures", "duration_sum_us"], "service"),
            "rejects" => ("time", &["bytes"], "sample"),
            other => panic!("no table {other}"),
        };
        Self { table, time, sums, distinct, group: None, given: Vec::new() }
    }

    /// Returns all queries for a table: whole, by group, by day, by time and by name.
    fn of(table: &'static str, rows: &[Value]) -> Vec<Self> {
        let whole = Self::new(table);
        let groups: &[&str] = match table {
            "events" => &["category", "dialect", "service", "canonical"],
            "traffic" => &["outcome", "service"],
            _ => &["reason", "source"],
        };
        let mut questions = vec![whole.clone()];
        questions.extend(groups.iter().map(|group| Self { group: Some(group), ..whole.clone() }));
        for day in days(rows, whole.time) {
            questions.push(whole.clone().given("date", "=", json!(day), "date"));
        }
        for name in distinct(rows, groups[groups.len() - 1]) {
            questions.push(whole.clone().given(groups[groups.len() - 1], "=", json!(name), "text"));
        }
        for name in distinct(rows, "service") {
            questions.push(whole.clone().given("service", "=", json!(name), "text"));
        }
        let mut times: Vec<i64> = rows.iter().map(|row| micros(&row[whole.time])).collect();
        times.sort_unstable();
        for (from, to) in [(1, 3), (2, 2), (4, 7)] {
            let (from, to) = (times[times.len() * from / 8], times[times.len() * to / 8]);
            questions.push(whole.clone().given(whole.time, ">=", json!(from), "time").given(
                whole.time,
                "<",
                json!(to + 1),
                "time",
            ));
        }
        questions
    }

    fn given(
        mut self,
        column: &'static str,
        operator: &'static str,
        value: Value,
        kind: &'static str,
    ) -> Self {
        self.given.push((column, operator, value, kind));
        self
    }

    fn json(&self) -> Value {
        json!({
            "table": self.table,
            "time": self.time,
            "sums": self.sums,
            "distinct": self.distinct,
            "group": self.group,
            "where": self.given,
        })
    }

    /// Computes the result from the rows of `dump`.
    fn answer(&self, rows: &[Value]) -> Value {
        let mut groups: BTreeMap<Option<&str>, Vec<&Value>> = BTreeMap::new();
        if self.group.is_none() {
            groups.insert(Some("all"), Vec::new());
        }
        for row in rows.iter().filter(|row| self.is_asked_for(row)) {
            let group = self.group.map_or(Some("all"), |group| row[group].as_str());
            groups.entry(group).or_default().push(row);
        }
        groups.into_iter().map(|(group, rows)| self.answer_of(group, &rows)).collect()
    }

    fn is_asked_for(&self, row: &Value) -> bool {
        self.given.iter().all(|(column, operator, value, kind)| match (*kind, *operator) {
            ("date", _) => value == &json!(day_of(micros(&row[self.time]))),
            ("time", ">=") => micros(&row[*column]) >= value.as_i64().expect("micros"),
            ("time", _) => micros(&row[*column]) < value.as_i64().expect("micros"),
            _ => &row[*column] == value,
        })
    }

    fn answer_of(&self, group: Option<&str>, rows: &[&Value]) -> Value {
        let distinct: HashSet<&str> = rows.iter().filter_map(|row| row[self.distinct].as_str()).collect();
        let mut answer = vec![json!(group), json!(rows.len()), json!(distinct.len())];
        for column in self.sums {
            let values: Vec<i64> = rows.iter().filter_map(|row| row[*column].as_i64()).collect();
            answer.push(if values.is_empty() { Value::Null } else { json!(values.iter().sum::<i64>()) });
        }
        let times = || rows.iter().map(|row| micros(&row[self.time]));
        answer.extend([json!(times().min()), json!(times().max())]);
        answer.into()
    }
}

fn micros(time: &Value) -> i64 {
    let time: jiff::Timestamp = time.as_str().expect("a time").parse().expect("RFC 3339");
    time.as_microsecond()
}

fn day_of(micros: i64) -> String {
    let time = jiff::Timestamp::from_microsecond(micros).expect("a time");
    time.to_string().split_once('T').expect("a date and a time").0.to_owned()
}

/// Returns the days of rows.
fn days(rows: &[Value], time: &str) -> Vec<String> {
    let mut days: Vec<_> = rows.iter().map(|row| day_of(micros(&row[time]))).collect();
    days.sort_unstable();
    days.dedup();
    days
}

/// Returns the values of a column.
fn distinct(rows: &[Value], column: &str) -> Vec<String> {
    let mut values: Vec<_> = rows.iter().filter_map(|row| Some(row[column].as_str()?.to_owned())).collect();
    values.sort_unstable();
    values.dedup();
    values
}
