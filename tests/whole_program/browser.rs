//! A real browser, and pages of other origins: they can neither store nor read anything, at any HTTP endpoint, unless
//! their origin is listed.
//!
//! Needs Chromium, which `tests/run` installs: a test that lacks it says so and fails.

use super::server::Server;
use super::support::{Folder, OPEN};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// The time that a browser may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The page that tries everything that can reach another origin, at every endpoint that it is given.
const PAGE: &str = include_str!("browser/page.html");

/// Serves the page, and receives its report.
struct Pages {
    address: SocketAddr,
    reports: Receiver<Value>,
}

impl Pages {
    fn start(plan: &Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let page = PAGE.replace("PLAN", &plan.to_string());
        let (sender, reports) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (page, sender) = (page.clone(), sender.clone());
                std::thread::spawn(move || answer(stream, &page, &sender));
            }
        });
        Self { address, reports }
    }

    /// Opens the page in a browser under a name of this machine, and returns what it reports.
    #[track_caller]
    fn visit(&self, host: &str) -> Value {
        let _browser = Browser::open(&format!("http://{host}:{}/", self.address.port()));
        self.reports.recv_timeout(PATIENCE).expect("the page reports")
    }
}

fn answer(mut stream: TcpStream, page: &str, reports: &Sender<Value>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok()?;
            }
            Some(_) => {}
            None => break,
        }
    }
    if first.starts_with("POST /report") {
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        reports.send(serde_json::from_slice(&body).ok()?).ok()?;
    }
    let body = if first.starts_with("GET / ") { page } else { "" };
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nConnection: close\r\n";
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).ok()
}

/// A browser without a window, which ends when it is dropped.
struct Browser {
    child: Child,
    _profile: Folder,
}

impl Browser {
    fn command(profile: &Folder) -> Command {
        let mut command = Command::new("chromium");
        command
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
            ])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    }

    #[track_caller]
    fn open(url: &str) -> Self {
        let profile = Folder::new();
        // The debugging port keeps the browser running until it is ended.
        let child =
            Self::command(&profile).arg("--remote-debugging-port=0").arg(url).stdout(Stdio::null()).spawn();
        Self {
            child: child.expect("chromium is missing: run ./tests/run, which installs it"),
            _profile: profile,
        }
    }

    /// Returns the text of a page that a person opens by its address.
    #[track_caller]
    fn shows(url: &str) -> String {
        let profile = Folder::new();
        let shown = Self::command(&profile).args(["--dump-dom", url]).output();
        String::from_utf8_lossy(&shown.expect("chromium is missing: run ./tests/run").stdout).into_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the requests that a page tries on a server: addresses with methods and bodies.
fn plan(server: &Server) -> Value {
    let at = |listener: &str, path: &str| format!("http://{}{path}", server.address(listener));
    let span = json!({"resourceSpans": [{"scopeSpans": [{"spans": [{
        "traceId": "0123456789abcdef0123456789abcdef", "spanId": "0123456789abcdef", "name": "call", "kind": 2,
        "startTimeUnixNano": "1793520000000000000", "endTimeUnixNano": "1793520000001000000",
        "attributes": [{"key": "error.code", "value": {"stringValue": "-32602"}}],
    }]}]}]});
    let trace_service = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    json!([
        ["POST", at("otlp_http", "/v1/envelopes?service=page"), OPEN, "application/x-ndjson"],
        ["POST", at("otlp_http", "/v1/traces"), span.to_string(), "application/json"],
        ["POST", at("otlp_http", "/v1/logs"), "{}", "application/json"],
        ["POST", at("otlp_grpc", trace_service), "", "application/grpc"],
        ["POST", at("flight", "/arrow.flight.protocol.FlightService/Handshake"), "", "application/grpc"],
        ["POST", at("web", "/api/v1/sql"), "SELECT 42 AS answer", "application/sql"],
        ["GET", at("web", "/api/v1/tail?recent=5"), "", ""],
        ["GET", at("web", "/api/v1/status"), "", ""],
        ["GET", at("web", "/metrics"), "", ""],
        ["GET", at("web", "/runbook"), "", ""],
        ["GET", at("web", "/healthz"), "", ""],
        ["GET", at("web", "/readyz"), "", ""],
    ])
}

fn number(server: &Server, metric: &str) -> f64 {
    let metrics = String::from_utf8(server.get("/metrics").is(200).body).expect("text");
    let lines = metrics.lines().filter(|line| line.starts_with(metric));
    lines
        .map(|line| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok()).expect("a number"))
        .sum()
}

/// Scenario: a browser on this machine opens a page that was served from another port, under both names of the machine.
/// The page tries `fetch` in every mode, beacons, forms, images, scripts, frames and event streams at every endpoint.
/// Guarantee: the page reads nothing, nothing is stored and no statement runs; each try is counted. A person who opens
/// a page of ours by its address sees it.
#[test]
fn a_page_of_another_origin_can_do_nothing() {
    let folder = Folder::new();
    let server = Server::start(&folder);
    let plan = plan(&server);
    let pages = Pages::start(&plan);
    for host in ["127.0.0.1", "localhost"] {
        let before = number(&server, "faultline_auth_denials_total{reason=\"cross_site\"}");
        let report = pages.visit(host);
        assert_eq!(report["read"], json!([]), "{host}: {report:#}");
        assert!(report["tried"].as_u64().is_some_and(|tried| tried > 80), "{report:#}");
        let after = number(&server, "faultline_auth_denials_total{reason=\"cross_site\"}");
        assert!(after - before > 60.0, "{host}: {before} then {after}: {report:#}");
    }
    assert_eq!(server.dump("events").len() + server.dump("traffic").len() + server.dump("rejects").len(), 0);
    let sources = &server.status()["sources"];
    for source in ["envelopes", "otlp_traces", "otlp_logs"] {
        let counted = &sources[source];
        assert_eq!(counted["accepted_records"], 0, "{counted:#}");
        assert!(
            counted["rejected_requests"]["cross_site"].as_u64().is_some_and(|refused| refused > 5),
            "{counted:#}"
        );
    }
    assert_eq!(number(&server, "faultline_queries_total"), 0.0);
    let shown = Browser::shows(&format!("http://{}/runbook", server.address("web")));
    assert!(shown.contains("<h1"), "{shown}");
}

/// Scenario: the same page, of an origin that is listed, and under another name, which is not.
/// Guarantee: the listed one can send and read, with headers that a browser asks leave for; the other one can do
/// nothing.
#[test]
fn a_page_of_a_listed_origin_can_send_and_read() {
    let folder = Folder::new();
    let mut server = Server::start(&folder);
    // The ports are fixed in advance, so that the plan can be made before the server starts.
    let listeners = ["otlp_http", "web", "otlp_grpc", "flight"];
    let addresses = listeners.map(|name| server.address(name).to_string());
    let pages = Pages::start(&plan(&server));
    assert!(server.stop().success());
    let origin = format!("http://127.0.0.1:{}", pages.address.port());
    let arguments = [
        ["--listen-otlp-http", &addresses[0]],
        ["--listen-web", &addresses[1]],
        ["--listen-otlp-grpc", &addresses[2]],
        ["--listen-flight", &addresses[3]],
        ["--allow-origin", &origin],
    ];
    server = Server::start_with(&folder, arguments.as_flattened());
    assert_eq!(pages.visit("localhost")["read"], json!([]));
    assert_eq!(server.dump("events").len(), 0);
    let report = pages.visit("127.0.0.1");
    let read = report["read"].as_array().expect("a list");
    let has = |way: &str, address: &str, text: &str| {
        read.iter().any(|entry| {
            let part = |at: usize| entry[at].as_str().unwrap_or_default();
            part(0) == way && part(1).contains(address) && part(2).contains(text)
        })
    };
    for (way, address, text) in [
        ("fetch", "/v1/envelopes", "\"accepted\":1"),
        ("fetch", "/v1/traces", "200 {"),
        ("fetch", "/api/v1/sql", "42"),
        ("fetch", "/api/v1/status", "\"sources\""),
        ("fetch", "/healthz", "ok"),
        ("events", "/api/v1/tail", "open"),
    ] {
        assert!(has(way, address, text), "{way} {address}: {report:#}");
    }
    assert!(!server.dump("events").is_empty());
}
