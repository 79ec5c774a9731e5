//! The prompt, typed at in a terminal.

use super::super::otlp::client::python;
use super::super::server::Server;
use super::super::support::{Folder, OPEN, lines};
use super::Stored;
use super::mistakes::LONG;
use serde_json::{Value, json};

/// The prompt. The line that is being typed is redrawn again and again, but not below itself.
const PROMPT: &str = "\n\rfaultline> ";
/// The bytes that a terminal sends for these keys.
const INTERRUPT: &str = "\u{3}";
const END: &str = "\u{4}";
const UP: &str = "\u{1b}[A";

/// The steps at the prompt, and its output.
struct Session {
    steps: Vec<Value>,
}

/// The output after each line, and the exit code.
struct Shown {
    answers: Vec<String>,
    rest: String,
    code: i64,
}

impl Session {
    fn new() -> Self {
        Self { steps: vec![json!(["expect", PROMPT])] }
    }

    /// Types something, and waits until this is shown.
    fn until(mut self, keys: &str, shown: &str) -> Self {
        self.steps.push(json!(["type", keys]));
        self.steps.push(json!(["expect", shown]));
        self
    }

    /// Types a line, and waits until this is shown and there is a prompt again.
    fn line(self, keys: &str, shown: &str) -> Self {
        let mut session = self.until(&format!("{keys}\r"), shown);
        if shown != PROMPT {
            session.steps.push(json!(["expect", PROMPT]));
        }
        session
    }

    /// Types at the prompt of a terminal this wide, and ends with Ctrl-D.
    #[track_caller]
    fn run(mut self, state: &Folder, columns: u16, place: &[&str]) -> Shown {
        self.steps.push(json!(["type", END]));
        let columns = columns.to_string();
        let home = format!("XDG_STATE_HOME={}", state.path().display());
        let program = ["env", "NO_COLOR=1", "TERM=xterm", &home, env!("CARGO_BIN_EXE_faultline"), "sql"];
        let arguments = [&[columns.as_str()], &program[..], place].concat();
        let told = python("prompt.py", &arguments, Value::from(self.steps).to_string().as_bytes());
        let answers = told["shown"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned());
        let rest = told["rest"].as_str().unwrap().to_owned();
        Shown { answers: answers.collect(), rest, code: told["code"].as_i64().unwrap() }
    }
}

impl Shown {
    fn all(&self) -> String {
        self.answers.concat() + &self.rest
    }
}

/// Scenario: somebody looks around: commands, statements over several lines, a mistake, several statements at once.
/// Guarantee: everything is answered, nothing ends the prompt, and Ctrl-D ends it well.
#[test]
fn a_person_looks_around() {
    let stored = Stored::new();
    let state = Folder::new();
    let report = stored.folder.file("report.sql", "SELECT 'from the file' AS text;\nSELECT nothing_such;");
    let output = stored.path("rows.ndjson");
    let shown = Session::new()
        .line(".tables", "Every error, warning and audit event")
        .line(".schema codes", "The code as servers send it")
        .line(".schema nothing", "there is no table 'nothing'")
        .until("SELECT 40 +\r", "\n")
        .line("2 AS sum;", "1 row in ")
        .line("SELECT categroy FROM events;", "^ did you mean 'category'?")
        .line("SELECT 'first' AS a; SELECT 'second' AS b;", "second\n")
        .line(".mode json", PROMPT)
        .line("SELECT 7 AS n;", "{\"n\":7}")
        .line(".mode", "mode json")
        .line(".mode parquet", ".output first")
        .line(".mode xml", "there is no mode 'xml'")
        .line(".mode auto", PROMPT)
        .line(".timer off", "timer off")
        .line("SELECT 'quick' AS w;", "1 row\n")
        .line(&format!(".read {report}"), "there is no column 'nothing_such'")
        .line(".read /no/such/file.sql", "cannot read '/no/such/file.sql'")
        .line(&format!(".output {output}"), "rows go to")
        .line("SELECT 'in the file' AS w;", "in ")
        .line("SELECT 'behind it' AS w;", "in ")
        .line(".output /no/such/folder/x.csv", "rows go to")
        .line("SELECT 1;", "cannot write")
        .line(".output", "shown again")
        .line("SELECT 'seen again' AS w;", "seen again\n")
        .line(".nonsense", ".help lists them")
        .line(".help", "Ctrl-D ends")
        .run(&state, 100, &["--data-dir", &stored.data_dir]);
    assert_eq!(shown.code, 0);
    let all = shown.all();
    assert!(shown.answers[0].contains(&format!("{}: 202 events", stored.data_dir)), "{all}");
    assert!(shown.answers[0].contains("SELECT category, count(*)"), "{all}");
    assert!(all.contains("\n sum\n") || all.contains("sum\n"), "{all}");
    assert!(all.contains("\n 42\n"), "a figure stands to the right of its column: {all}");
    assert!(all.contains("from the file\n"), "{all}");
    assert_eq!(std::fs::read_to_string(output).unwrap(), "{\"w\":\"in the file\"}\n{\"w\":\"behind it\"}\n");
}

/// Scenario: TAB after the beginning of tables, columns, functions, keywords, commands and files.
/// Guarantee: what fits there is completed, as the statement that then runs shows.
#[test]
fn tab_completes() {
    let stored = Stored::new();
    let state = Folder::new();
    let file = stored.folder.file("completed_by_tab.sql", "SELECT 'read' AS word;");
    let begun = file.replace("completed_by_tab.sql", "completed_b");
    let shown = Session::new()
        .line("SEL\t count(*) AS n FR\t traf\t;", "1 row in ")
        .line("SELECT canon\t AS c FROM events LIM\t 1;", "1 row in ")
        .line("SELECT date_tr\t('day', ti\t) AS day FROM ev\ts ORDER BY 1 LIMIT 1;", "1 row in ")
        .until("SELECT * FROM e\t", "event_counts  events\n\rfaultline> SELECT * FROM e")
        .until(INTERRUPT, PROMPT)
        .line(".sch\t cod\t", "required_details")
        .line(&format!(".read {begun}\t"), "read\n")
        .line(".mo\t js\t", PROMPT)
        .line(".mode", "mode json")
        .run(&state, 100, &["--data-dir", &stored.data_dir]);
    assert_eq!(shown.code, 0);
    let all = shown.all();
    assert!(!all.contains("error:"), "{all}");
    assert!(all.contains("2026-11-01 00:00:00"), "{all}");
}

/// Scenario: a query that would run for years, on a directory and on a server; Ctrl-C; Ctrl-C on a half-typed line.
/// Guarantee: the query stops, the prompt goes on, and the next answer comes.
#[test]
fn ctrl_c_stops_the_query_and_not_the_prompt() {
    let stored = Stored::new();
    let state = Folder::new();
    let session = || {
        Session::new()
            .until(&format!("{LONG};\r"), "Ctrl-C stops the query")
            .until(INTERRUPT, "stopped")
            .until("", PROMPT)
            .until("SELECT half a line", "half a line")
            .until(INTERRUPT, PROMPT)
            .until("SELECT 'over\r", "\n")
            .until(INTERRUPT, PROMPT)
            .until(INTERRUPT, PROMPT)
            .line("SELECT 'still' || ' here' AS word;", "still here")
    };
    assert_eq!(session().run(&state, 250, &["--data-dir", &stored.data_dir]).code, 0);
    let folder = Folder::new();
    let server = Server::start(&folder);
    server.post_lines(&lines(&[OPEN])).is(200);
    let url = format!("http://{}", server.address("web"));
    let shown = session().line(".tables", "Every known code").run(&state, 250, &["--server", &url]);
    assert_eq!(shown.code, 0);
    assert!(shown.answers[0].contains(&format!("the server at {url}: 1 event.")), "{}", shown.answers[0]);
}

/// Scenario: rows of fifty columns, and long texts, on terminals of several widths.
/// Guarantee: no line is wider than the terminal; long texts are cut, and what has no room is shown record by record.
#[test]
fn tables_fit_the_terminal() {
    let stored = Stored::new();
    let state = Folder::new();
    for columns in [60_u16, 100, 200] {
        let shown = Session::new()
            .line("SELECT time, canonical, message, details FROM errors LIMIT 5;", "5 rows in ")
            .line("SELECT * FROM events LIMIT 2;", "2 rows in ")
            .line("SELECT code, NULL AS nothing, '' AS empty FROM codes LIMIT 1;", "1 row in ")
            .line(".mode vertical", PROMPT)
            .line("SELECT 1 AS one, 'b' AS two;", "1 row in ")
            .run(&state, columns, &["--data-dir", &stored.data_dir]);
        let all = shown.all();
        // Text that the spinner or the line editor drew earlier on the same line has been erased.
        let answers = all.lines().filter(|line| !line.contains(PROMPT.trim())).skip(3);
        let widths = answers.map(|line| line.rsplit('\r').next().unwrap_or(line).chars().count());
        assert!(widths.max().unwrap() <= columns.into(), "{columns}: {all}");
        // In 60 columns there is no room for even the beginnings of the texts side by side.
        assert_eq!(all.contains('…'), columns > 60, "{columns}: {all}");
        assert!(all.contains("── record 2 ──") && all.contains("NULL"), "{columns}: {all}");
        assert!(all.contains("columns without a value"), "{columns}: {all}");
        assert!(all.contains("one  1\ntwo  b\n"), "{columns}: {all}");
    }
}

/// Scenario: a second prompt of the same user; one whose history cannot be written.
/// Guarantee: what was typed before is found with the arrow key; no history stops nobody.
#[test]
fn what_was_typed_is_remembered() {
    let stored = Stored::new();
    let state = Folder::new();
    let place = ["--data-dir", stored.data_dir.as_str()];
    Session::new().line("SELECT 'rem' || 'embered' AS word;", "remembered").run(&state, 100, &place);
    let history = state.path().join("faultline/history");
    assert!(std::fs::read_to_string(&history).unwrap().contains("'rem' || 'embered'"));
    let shown = Session::new().line(UP, "remembered").run(&state, 100, &place);
    assert_eq!(shown.code, 0);
    let blocked = Folder::new();
    blocked.file("faultline", "in the way");
    let shown =
        Session::new().line("SELECT 'un' || 'stopped' AS word;", "unstopped").run(&blocked, 100, &place);
    assert_eq!(shown.code, 0);
}
