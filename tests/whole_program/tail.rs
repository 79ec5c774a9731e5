//! `faultline tail` and `GET /api/v1/tail`: events of a real server, while they come.

use super::server::{Answer, Server, ask, read_answer};
use super::support::{Folder, HIDDEN, OPEN, WORKED, faultline, lines};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The longest time for one step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time without events after which the test concludes that none come.
const QUIET: Duration = Duration::from_millis(700);

/// A running `faultline tail`.
struct Tail {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

impl Tail {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_faultline"))
            .arg("tail")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let out = lines_of(child.stdout.take().expect("a pipe"));
        let err = lines_of(child.stderr.take().expect("a pipe"));
        Self { child, out, err }
    }

    /// Starts it on a server, and waits until it follows.
    fn follow(server: &Server, arguments: &[&str]) -> Self {
        let data_dir = server.data_dir().to_str().expect("a path").to_owned();
        let tail = Self::start(&[&["--data-dir", &data_dir], arguments].concat());
        tail.notes("following");
        tail
    }

    /// Waits for a note that holds these words.
    #[track_caller]
    fn notes(&self, words: &str) -> String {
        let began = Instant::now();
        loop {
            let line = self.err.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no note says '{words}'"));
            if line.contains(words) {
                return line;
            }
            assert!(began.elapsed() < PATIENCE, "no note says '{words}', but {line}");
        }
    }

    #[track_caller]
    fn line(&self) -> String {
        self.out.recv_timeout(PATIENCE).expect("a line")
    }

    #[track_caller]
    fn event(&self) -> Value {
        let line = self.line();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no JSON: {line}"))
    }

    #[track_caller]
    fn events(&self, count: usize) -> Vec<Value> {
        (0..count).map(|_| self.event()).collect()
    }

    #[track_caller]
    fn is_silent(&self) {
        assert_eq!(self.out.recv_timeout(QUIET), Err(RecvTimeoutError::Timeout));
    }

    fn interrupt(mut self) -> i32 {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::INT).expect("the process is ours");
        self.child.wait().expect("it ends").code().expect("no signal ended it")
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines_of(pipe: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

/// Returns a reply that failed.
fn failed(service: &str, code: &str, message: &str) -> String {
    let reply = json!({"success": false, "error": {"code": code, "message": message}}).to_string();
    let line = json!({"service": service, "tool": "pay", "jsonrpc": "2.0", "id": 1,
                      "result": {"content": [{"type": "text", "text": reply}]}});
    format!("{line}\n")
}

/// Returns the stored events, by their ids.
fn stored(data_dir: &Path) -> Vec<Value> {
    sorted(super::server::dump(data_dir, "events"))
}

fn sorted(mut events: Vec<Value>) -> Vec<Value> {
    events.sort_by_key(|event| event["event_id"].as_str().map(str::to_owned));
    events
}

/// Scenario: events are sent while two tails run, one with the newest events first; some are flushed meanwhile.
/// Guarantee: each prints every event once, as `dump` prints it, and only events; Ctrl-C ends it with 0.
#[test]
fn events_are_shown_as_they_come() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--flush-after", "300ms"]);
    server.post_lines(&lines(&[HIDDEN, OPEN, WORKED])).is(200);
    let all = Tail::follow(&server, &[]);
    let mut seen = all.events(2);
    let new = Tail::follow(&server, &["--recent", "0"]);
    let mut only_new = Vec::new();
    for round in 0..20 {
        server.post_lines(&failed("orders", "NOT_FOUND_ORDER", &format!("order {round}"))).is(200);
        server.post_lines(&lines(&[WORKED])).is(200);
        seen.push(all.event());
        only_new.push(new.event());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(only_new, seen[2..]);
    all.is_silent();
    assert_eq!(sorted(seen), stored(server.data_dir()));
    assert_eq!((all.interrupt(), new.interrupt()), (0, 0));
}

/// Scenario: events of several services, codes and categories, and a tail for each filter.
/// Guarantee: each shows what its filters name, and nothing else; several of a kind are any of them; a condition is
/// SQL.
#[test]
fn filters_choose() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let filters: [(&[&str], &[usize]); 11] = [
        (&["--service", "orders"], &[0, 1]),
        (&["--service", "orders", "--service", "it's"], &[0, 1, 3]),
        (&["--category", "rate-limit"], &[1, 3]),
        (&["--category", "RATE_LIMIT", "--service", "orders"], &[1]),
        (&["--code", "NOT_FOUND_ORDER"], &[0]),
        (&["--code", "NOT_FOUND_*"], &[0, 2]),
        (&["--code", "NOT%*"], &[]),
        (&["--where", "hidden AND service LIKE 'or%' AND message IS NOT NULL"], &[0, 1]),
        (&["--where", "time > now() - interval '1 hour' AND length(message) = 6 -- short"], &[0, 1, 2, 3]),
        (&["--where", "events.date = current_date AND category IN ('TOKEN')"], &[]),
        (&["--where", "duration_us > 5"], &[]),
    ];
    let tails: Vec<Tail> = filters.iter().map(|(filter, _)| Tail::follow(&server, filter)).collect();
    let sent = [
        failed("orders", "NOT_FOUND_ORDER", "first "),
        failed("orders", "RATE_LIMIT_EXCEEDED", "second"),
        failed("stock", "NOT_FOUND_SHELF", "third "),
        failed("it's", "RATE_LIMIT_EXCEEDED", "fourth"),
    ];
    for line in &sent {
        server.post_lines(line).is(200);
    }
    let names = ["first ", "second", "third ", "fourth"];
    for (tail, (filter, wanted)) in tails.iter().zip(filters) {
        let shown: Vec<Value> =
            tail.events(wanted.len()).iter().map(|event| event["message"].clone()).collect();
        assert_eq!(
            json!(shown),
            json!(wanted.iter().map(|place| names[*place]).collect::<Vec<_>>()),
            "{filter:?}"
        );
    }
    std::thread::sleep(QUIET);
    for (tail, (filter, _)) in tails.iter().zip(filters) {
        assert_eq!(tail.out.try_recv().ok(), None, "{filter:?}");
    }
    // The newest matching events come first for a client that starts later.
    let late = Tail::follow(&server, &["--service", "orders", "--recent", "1"]);
    assert_eq!(late.event()["message"], "second");
    late.is_silent();
}

/// Scenario: conditions and names that make no sense, and servers that are not there.
/// Guarantee: one sentence that says what, where and what to do, and the exit code that the help tells.
#[test]
fn mistakes_are_told_in_a_sentence() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let data_dir = server.data_dir().to_str().expect("a path");
    let long = format!("service = '{}'", "x".repeat(5_000));
    let mistakes: [(&[&str], &[&str]); 13] = [
        (
            &["--where", "sevrity = 'critical'"],
            &["no column 'sevrity'", "line 1, column 1", "did you mean 'severity'?"],
        ),
        (&["--where", "severity ="], &["Expected: an expression"]),
        (&["--where", "severity = 'a' OR OR"], &["line 1, column 19"]),
        (&["--where", "severity"], &["neither true nor false", "compare it"]),
        (&["--where", "true AND code IN (SELECT code FROM codes)"], &["cannot contain a query"]),
        (&["--where", "exists (select 1)"], &["cannot contain a query"]),
        (&["--where", "count(*) > 1"], &["one event at a time"]),
        (&["--where", "code = $1"], &["no parameters"]),
        (&["--where", "true; DROP TABLE events"], &["end of expression"]),
        (&["--where", "true yes"], &["end of expression, found: yes"]),
        (&["--where", &long], &["at most 4096"]),
        (&["--category", "rate-limt"], &["no category 'rate-limt'", "did you mean 'RATE_LIMIT'?"]),
        (&["--recent", "1001"], &["1001"]),
    ];
    for (arguments, words) in mistakes {
        let run = faultline(&[&["tail", "--data-dir", data_dir], arguments].concat()).ends_with(2);
        for word in words {
            assert!(run.err.contains(word), "'{word}' is not in: {}", run.err);
        }
        assert!(run.out.is_empty() && run.err.len() < 1_000, "{}", run.err);
    }
    faultline(&["tail", "--server", "http://h:1", "--data-dir", "x"]).ends_with(2);
    faultline(&["tail", "--server", "127.0.0.1:7070"]).ends_with(2);
    // There is no server, nobody uses the directory, or another program listens there.
    let otlp = format!("http://{}", server.address("otlp_http"));
    let empty = Folder::new();
    let empty = empty.path().to_str().expect("a path");
    let absent: [(&[&str], &[&str]); 4] = [
        (
            &["--server", "http://127.0.0.1:1"],
            &["cannot reach http://127.0.0.1:1", "check that a server listens there"],
        ),
        (&["--server", &otlp], &["no events", "port 7070"]),
        (&["--data-dir", "/no/such/folder"], &["/no/such/folder", "faultline serve"]),
        (&["--data-dir", empty], &["faultline serve"]),
    ];
    for (arguments, words) in absent {
        let run = faultline(&[&["tail"], arguments].concat()).ends_with(1);
        for word in words {
            assert!(run.err.contains(word), "'{word}' is not in: {}", run.err);
        }
    }
}

/// Scenario: the server is killed while a tail runs, and comes back on other ports; then it is stopped and comes back.
/// Guarantee: the tail says so, finds it again by its directory, and shows every event once; a stop is not held up.
#[test]
fn a_restarted_server_is_found_again() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let tail = Tail::follow(&server, &[]);
    server.post_lines(&failed("orders", "NOT_FOUND_ORDER", "before")).is(200);
    let mut seen = tail.events(1);
    server.kill();
    tail.notes("waiting for the server");
    let server = Server::start(&folder);
    tail.notes("connected again");
    server.post_lines(&failed("orders", "NOT_FOUND_ORDER", "after")).is(200);
    seen.extend(tail.events(1));
    let data_dir = server.data_dir().to_owned();
    let began = Instant::now();
    assert!(server.stop().success());
    assert!(began.elapsed() < Duration::from_secs(20), "a tail holds up the stop: {:?}", began.elapsed());
    tail.notes("the server is stopping");
    let server = Server::start(&folder);
    tail.notes("connected again");
    server.post_lines(&failed("orders", "NOT_FOUND_ORDER", "again")).is(200);
    seen.extend(tail.events(1));
    tail.is_silent();
    let messages: Vec<&Value> = seen.iter().map(|event| &event["message"]).collect();
    assert_eq!(messages, ["before", "after", "again"]);
    assert_eq!(sorted(seen.clone()), stored(&data_dir));
    assert!(tail.err.try_iter().all(|note| !note.contains("went before")), "nothing was missed");
    assert_eq!(tail.interrupt(), 0);
}

/// Scenario: a message with escape sequences, line breaks and marks that turn text around.
/// Guarantee: neither form prints any of it raw; a line stays a line.
#[test]
fn hostile_text_does_nothing_to_a_terminal() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let pretty = Tail::follow(&server, &["--format", "pretty"]);
    let json = Tail::follow(&server, &["--format", "json"]);
    let hostile =
        "\u{1b}[2J\u{1b}]0;owned\u{7}\r\nsecond line\u{9b}31m\u{202e}txt.exe\n\ndata: forged\n\nevent: end";
    server.post_lines(&failed("orders\u{1b}[31m", "NOT_FOUND_ORDER", hostile)).is(200);
    let line = pretty.line();
    assert!(line.contains("NOT_FOUND_ORDER") && line.contains("second line"), "{line}");
    assert!(line.contains("\\u{1b}") && line.contains("\\u{202e}"), "{line}");
    let printed = json.line();
    for text in [&line, &printed] {
        assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
    }
    let event: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(json!([event]), json!(stored(server.data_dir())));
    pretty.is_silent();
    json.is_silent();
}

/// Guarantee: a failure in a reply that said success is marked in the format for people, and no other; a note on stderr
/// and the help page say what the mark means.
#[test]
fn hidden_failures_are_marked() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    server.post_lines(&lines(&[HIDDEN, OPEN])).is(200);
    let data_dir = server.data_dir().to_str().expect("a path").to_owned();
    let tail = Tail::start(&["--data-dir", &data_dir, "--format", "pretty"]);
    tail.notes("▒ marks a failure in a reply that said success");
    for line in [tail.line(), tail.line()] {
        assert_eq!(line.contains('▒'), line.contains("Paused"), "{line}");
    }
    assert!(faultline(&["tail", "--help"]).out.contains("▒ marks a hidden failure"));
    tail.interrupt();
}

/// Scenario: a terminal of sixty columns, with and without `NO_COLOR`.
/// Guarantee: a line is as wide as the terminal, in colours that tell the severity, or in none.
#[test]
fn a_terminal_gets_lines_that_fit() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    server.post_lines(&failed("orders", "INTERNAL_ERROR", &"日本語 ".repeat(50))).is(200);
    let data_dir = server.data_dir().display();
    let run = |environment: &str| {
        let command = format!(
            "stty cols 60; {environment} timeout --signal=INT --preserve-status 5 '{}' tail --quiet --data-dir '{data_dir}'",
            env!("CARGO_BIN_EXE_faultline")
        );
        let run = Command::new("script").args(["-qec", &command, "/dev/null"]).stdin(Stdio::null()).output();
        let run = run.expect("`script` is there (apt-get install bsdutils)");
        assert!(run.status.success(), "{run:?}");
        String::from_utf8(run.stdout).expect("UTF-8").trim_end().to_owned()
    };
    let plain = run("NO_COLOR=1 TERM=xterm");
    assert!(plain.ends_with('…') && !plain.contains('\u{1b}') && plain.contains("INTERNAL_"), "{plain:?}");
    let wide = |c: char| if c > '\u{2e80}' { 2 } else { 1 };
    let width: usize = plain.chars().map(wide).sum();
    assert!((58..=60).contains(&width), "{width}: {plain}");
    let coloured = run("TERM=xterm");
    assert!(coloured.contains("\u{1b}[31m") || coloured.contains("\u{1b}[91m"), "{coloured:?}");
}

/// Scenario: the help page of the command, on a running server.
/// Guarantee: its examples work as printed, and exit codes are told.
#[test]
fn the_examples_of_its_help_work() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    server.post_lines(&lines(&[HIDDEN, OPEN])).is(200);
    let help = faultline(&["tail", "--help"]).ends_with(0).out;
    let (_, examples) = help.split_once("Examples:\n").expect("examples");
    let examples: Vec<&str> = examples.lines().take_while(|line| line.starts_with("  ")).collect();
    assert!(examples.len() >= 4 && help.contains("Exit codes:\n  0"), "{help}");
    let program = Path::new(env!("CARGO_BIN_EXE_faultline")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("a path"));
    let web = format!("http://{}", server.address("web"));
    for example in examples {
        let example = example.replace("http://127.0.0.1:7070", &web);
        let example = example.replacen("faultline", "timeout --signal=INT --preserve-status 3 faultline", 1);
        let output = Command::new("bash")
            .args(["-c", &format!("set -o pipefail; {example}")])
            .env("PATH", &path)
            .env("FAULTLINE_DATA_DIR", server.data_dir())
            .output()
            .expect("bash is there");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("following"), "{example}: {said}");
    }
}

/// One request to `/api/v1/tail` over a connection of its own, read message by message.
struct Raw {
    stream: BufReader<TcpStream>,
}

impl Raw {
    fn open(server: &Server, query: &str, last: Option<&str>) -> Self {
        let address = server.address("web");
        let mut stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        let last = last.map(|last| format!("Last-Event-ID: {last}\r\n")).unwrap_or_default();
        // With HTTP/1.0, the body is sent without chunks.
        let head = format!("GET /api/v1/tail?{query} HTTP/1.0\r\nHost: {address}\r\n{last}\r\n");
        stream.write_all(head.as_bytes()).expect("the request is sent");
        Self { stream: BufReader::new(stream) }
    }

    /// Returns the next lines up to an empty one.
    fn message(&mut self) -> String {
        let mut message = String::new();
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line).expect("a line");
            if line.trim_end().is_empty() {
                return message;
            }
            message.push_str(line.trim_end());
            message.push('\n');
        }
    }

    /// Returns the next event with its id, and skips messages that only contain a position.
    fn event(&mut self) -> (String, Value) {
        loop {
            let message = self.message();
            let field =
                |name: &str| message.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            if let Some(data) = field("data: ") {
                return (field("id: ").unwrap_or_default(), serde_json::from_str(&data).expect("JSON"));
            }
        }
    }
}

/// Scenario: a reader comes back from the middle of a record, from its end, after what it knew was flushed, and from a
/// place that is still to come.
/// Guarantee: it goes on at the very next event, and hears of a gap when something in between is no longer there.
#[test]
fn a_reader_goes_on_where_it_was() {
    let folder = Folder::new();
    let server = Server::start_with(&folder, &["--flush-after", "1h"]);
    let mut first = Raw::open(&server, "", None);
    assert!(first.message().starts_with("HTTP/1.0 200"));
    assert!(first.message().contains("retry: "));
    let three: String = ["a", "b", "c"].map(|name| failed(name, "NOT_FOUND_ORDER", name)).concat();
    server.post_lines(&three).is(200);
    let events: Vec<(String, Value)> = (0..3).map(|_| first.event()).collect();
    server.post_lines(&failed("d", "NOT_FOUND_ORDER", "d")).is(200);
    let (last, fourth) = first.event();
    drop(first);
    for (place, (id, _)) in events.iter().enumerate() {
        let mut again = Raw::open(&server, "recent=5", Some(id));
        again.message();
        for (_, expected) in &events[place + 1..] {
            assert_eq!(&again.event().1, expected, "after {id}");
        }
        assert_eq!(again.event(), (last.clone(), fourth.clone()));
    }
    let data_dir = server.data_dir().to_owned();
    // A clean stop flushes everything.
    assert!(server.stop().success());
    let server = Server::start_with(&folder, &["--flush-after", "1h"]);
    for (id, is_missed) in [(&*events[0].0, true), (&*last, false), ("1000000", true)] {
        let mut again = Raw::open(&server, "", Some(id));
        again.message();
        server.post_lines(&failed("e", "NOT_FOUND_ORDER", id)).is(200);
        let mut next = again.event().1;
        if is_missed {
            assert_eq!(next["after"], id, "{next}");
            next = again.event().1;
        }
        // Events that were sent in between come first.
        while next["message"] != id {
            assert!(next.get("after").is_none(), "{next}");
            next = again.event().1;
        }
    }
    assert_eq!(stored(&data_dir).len(), 7);
}

/// Scenario: readers who read nothing while megabytes of events come; more readers than are taken; wrong questions.
/// Guarantee: a reader who does not read is told so and dropped; there is a bound on readers, and places become free
/// when readers go; ingest goes on all the while.
#[test]
fn slow_and_many_readers_are_bounded() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let web = server.address("web");
    let refused = |query: &str| -> Answer {
        ask(web, "GET", &format!("/api/v1/tail?{query}"), &[], b"").expect("an answer")
    };
    let error = refused("where=sevrity%3D1").is(400).json();
    assert_eq!(error["error"]["position"], json!({"line": 1, "column": 1}), "{error}");
    assert_eq!(error["error"]["remedy"], "did you mean 'severity'?");
    refused("wehre=true").is(400);
    ask(web, "POST", "/api/v1/tail", &[], b"").expect("an answer").is(405);

    let mut open: Vec<Raw> = (0..32).map(|_| Raw::open(&server, "service=nobody", None)).collect();
    for raw in &mut open {
        assert!(raw.message().starts_with("HTTP/1.0 200"));
    }
    let busy = refused("").is(503);
    assert!(
        busy.json()["error"]["message"].as_str().is_some_and(|text| text.contains("32 tails")),
        "{busy:?}"
    );
    drop(open);
    let began = Instant::now();
    let mut slow = loop {
        let mut raw = Raw::open(&server, "", None);
        if raw.message().starts_with("HTTP/1.0 200") {
            break raw;
        }
        assert!(began.elapsed() < PATIENCE, "places do not become free");
        std::thread::sleep(Duration::from_millis(100));
    };
    // This is more than sockets and queues hold.
    let body: String = (0..500)
        .map(|n| failed("orders", "NOT_FOUND_ORDER", &format!("{n} {}", "x".repeat(8_000))))
        .collect();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(20) {
        server.post_lines(&body).is(200);
    }
    let last = std::iter::from_fn(|| Some(slow.message())).find(|message| message.contains("event: end"));
    assert!(last.is_some_and(|last| last.contains("nothing was read")), "the slow reader is told");
    assert!(server.resident().1 < 1 << 30, "{:?}", server.resident());
    // It continues, or is told that it cannot.
    let mut again = Raw::open(&server, "", Some("1"));
    again.message();
    assert!(again.event().1.is_object());
    let mut rest = TcpStream::connect(web).expect("a connection");
    rest.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").expect("a request");
    read_answer(&mut rest).expect("an answer").is(200);
}
