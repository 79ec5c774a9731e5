//! Measures how long each view of the web page waits for its data: every endpoint of the API over HTTP, with 20 million
//! events stored, on two cores.
//!
//! `cargo bench --profile quick --bench page [-- EVENTS [ROUNDS]]` loads two weeks of generated traffic once (under
//! `target/page-bench`, through `faultline ingest`, so that calls are stored as well), starts `faultline serve` on it,
//! and requests each view in turn, as the page does. It prints a table with the median and the 95th percentile. With
//! `taskset`, the server has two cores, however many the machine has.

use anyhow::{Context, ensure};
use serde_json::Value;
use std::io::{BufWriter, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const EVENTS: u64 = 20_000_000;
/// The number of requests for each view and range.
const ROUNDS: u64 = 20;
const DAYS: i64 = 14;
const DAY: i64 = 86_400_000_000;
/// The duration of a piece of traffic, in microseconds. Traffic is made in pieces of ten minutes, so that all days are
/// equally full.
const PIECE: i64 = 600_000_000;
/// The number of lines for an event: half of the lines are calls that succeed.
const LINES_PER_EVENT: u64 = 2;
/// The time that the server may take to start, and for one response.
const PATIENCE: Duration = Duration::from_secs(300);
/// The goal for the 95th percentile.
const GOAL: Duration = Duration::from_secs(1);

#[allow(clippy::print_stdout)]
fn main() -> anyhow::Result<()> {
    let mut numbers = std::env::args().skip(1).filter_map(|argument| argument.parse().ok());
    let events = numbers.next().unwrap_or(EVENTS);
    let rounds = numbers.next().unwrap_or(ROUNDS).max(1);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().context("a target folder")?;
    let folder = target.join("page-bench").join(format!("{events}"));
    let data = folder.join("data");
    if !folder.join("made").exists() {
        println!("loading {events} events");
        std::fs::create_dir_all(&folder)?;
        load(&data, events)?;
        std::fs::write(folder.join("made"), "")?;
    }
    let server = Server::start(&data)?;
    let stored = server.get("/api/v1/status")?["tables"]["events"]["rows"].as_u64();
    println!("{} events stored, {rounds} requests for each line", stored.unwrap_or(events));
    println!("{:<34} {:>9} {:>9} {:>9}", "view and range", "p50 ms", "p95 ms", "max ms");
    let end = demo::START_MICROS + DAYS * DAY;
    let mut slow = Vec::new();
    for days in [1, DAYS] {
        let range = format!("from={}&to={}", time(end - days * DAY)?, time(end)?);
        for (name, path) in server.views(&range)? {
            let took = server.measure(&path, rounds)?;
            let [half, most, all] = [0.5, 0.95, 1.0].map(|share| quantile(&took, share));
            let name = format!("{name}, {days}d");
            println!("{name:<34} {:>9.1} {:>9.1} {:>9.1}", millis(half), millis(most), millis(all));
            if most > GOAL {
                slow.push(name);
            }
        }
    }
    println!("p95 over one second: {}", if slow.is_empty() { "none".to_owned() } else { slow.join("; ") });
    Ok(())
}

/// Loads two weeks of traffic in chronological order.
fn load(data: &Path, events: u64) -> anyhow::Result<()> {
    let _ = std::fs::remove_dir_all(data);
    let mut ingest = Command::new(env!("CARGO_BIN_EXE_faultline"))
        .args(["ingest", "--data-dir"])
        .arg(data)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let mut lines = BufWriter::with_capacity(1 << 20, ingest.stdin.take().context("a pipe")?);
    let pieces = DAYS * DAY / PIECE;
    let mut written = 0;
    let mut line = Vec::new();
    for piece in 0..pieces {
        let start = demo::START_MICROS + piece * PIECE;
        let mut traffic = demo::Traffic::with_mix(piece.unsigned_abs() + 7, demo::Mix::Everyday).at(start);
        let wanted = events * LINES_PER_EVENT * (piece.unsigned_abs() + 1) / pieces.unsigned_abs();
        while written < wanted {
            line.clear();
            traffic.next_line(&mut line);
            lines.write_all(&line)?;
            written += 1;
        }
    }
    lines.flush()?;
    drop(lines);
    // Some lines hold no record, as in every log, for which the exit code is not 0.
    let status = ingest.wait()?;
    ensure!(status.code().is_some_and(|code| code < 3), "ingest failed: {status}");
    Ok(())
}

/// A server on the data.
struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(data: &Path) -> anyhow::Result<Self> {
        let endpoints: PathBuf = data.join("endpoints.json");
        let _ = std::fs::remove_file(&endpoints);
        let has_taskset = Command::new("taskset").arg("--version").stdout(Stdio::null()).status().is_ok();
        let program = env!("CARGO_BIN_EXE_faultline");
        let mut command = if has_taskset { Command::new("taskset") } else { Command::new(program) };
        if has_taskset {
            command.args(["-c", "0,1", program]);
        }
        let child = command
            .args(["serve", "--listen-web", ":0", "--listen-otlp-http", ":0", "--listen-otlp-grpc", "off"])
            .args(["--listen-postgres", "off", "--listen-flight", "off", "--data-dir"])
            .arg(data)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut server = Self { child, address: String::new() };
        let began = Instant::now();
        while server.address.is_empty() {
            ensure!(began.elapsed() < PATIENCE, "the server does not get ready");
            ensure!(server.child.try_wait()?.is_none(), "the server ended");
            std::thread::sleep(Duration::from_millis(50));
            let Ok(text) = std::fs::read_to_string(&endpoints) else { continue };
            let endpoints: Value = serde_json::from_str(&text)?;
            server.address = endpoints["web"].as_str().context("an address")?.to_owned();
        }
        Ok(server)
    }

    /// Returns the requests of all views for a range, as the page makes them.
    fn views(&self, range: &str) -> anyhow::Result<Vec<(&'static str, String)>> {
        let groups = self.get(&format!("/api/v1/groups?{range}&limit=1"))?;
        let group = groups["groups"][0]["fingerprint"].as_str().context("a group")?;
        let event = groups["groups"][0]["newest_event_id"].as_str().context("an event")?;
        let services = self.get(&format!("/api/v1/services?{range}&buckets=40"))?;
        let service = services["services"][0]["service"].as_str().context("a service")?;
        let newest = groups["groups"][0]["last_seen"].as_str().context("a time")?;
        Ok(vec![
            ("overview", format!("/api/v1/overview?{range}")),
            ("groups", format!("/api/v1/groups?{range}")),
            ("group", format!("/api/v1/groups/{group}?{range}")),
            ("events", format!("/api/v1/events?{range}&kind=error")),
            ("event", format!("/api/v1/events/{event}?time={newest}")),
            ("services", format!("/api/v1/services?{range}&buckets=40")),
            ("service", format!("/api/v1/services?{range}&service={service}")),
            ("quotas", format!("/api/v1/quotas?{range}")),
            ("trust", format!("/api/v1/trust?{range}")),
            ("codes", format!("/api/v1/codes?{range}")),
            ("names", format!("/api/v1/names?{range}")),
        ])
    }

    /// Returns how long each request takes, after one that is not counted.
    fn measure(&self, path: &str, rounds: u64) -> anyhow::Result<Vec<Duration>> {
        self.get(path)?;
        let mut took = Vec::new();
        for _ in 0..rounds {
            let began = Instant::now();
            self.get(path)?;
            took.push(began.elapsed());
        }
        took.sort_unstable();
        Ok(took)
    }

    fn get(&self, path: &str) -> anyhow::Result<Value> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)?;
        let mut response = Vec::new();
        stream.read_to_end(&mut response)?;
        let head = response.windows(4).position(|window| window == b"\r\n\r\n").context("a response")?;
        let (head, body) = response.split_at(head);
        ensure!(
            head.starts_with(b"HTTP/1.1 200"),
            "{path}: {}{}",
            String::from_utf8_lossy(head),
            String::from_utf8_lossy(body)
        );
        Ok(serde_json::from_slice(body)?)
    }
}

fn time(micros: i64) -> anyhow::Result<String> {
    Ok(jiff::Timestamp::from_microsecond(micros)?.to_string())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Returns the smallest time that this share of all sorted times does not exceed.
fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let place = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(place.saturating_sub(1)).copied().unwrap_or_default()
}
