//! A real `faultline serve` on free ports of loopback, which ends with the test that started it; and a client that
//! sends exactly the bytes it is given.

use super::support::{Folder, faultline, program};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// The longest time for a start, a stop or a response on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running server.
pub(crate) struct Server {
    child: Child,
    data_dir: PathBuf,
    /// The file with its stderr.
    log: PathBuf,
    pub(crate) endpoints: Value,
}

/// Puts a file where the tables belong, so that nothing can be flushed and the WAL keeps everything.
pub(crate) fn forbid_flushing(folder: &Folder) {
    std::fs::create_dir_all(folder.path().join("data")).expect("a data directory");
    std::fs::write(tables_of(folder), "in the way").expect("a file in the way");
}

/// Removes that file again.
pub(crate) fn allow_flushing(folder: &Folder) {
    std::fs::remove_file(tables_of(folder)).expect("the file in the way");
}

fn tables_of(folder: &Folder) -> PathBuf {
    folder.path().join("data/tables")
}

impl Server {
    /// Starts a server on a data directory of this folder.
    pub(crate) fn start(folder: &Folder) -> Self {
        Self::start_with(folder, &[])
    }

    /// Starts a server with further arguments.
    pub(crate) fn start_with(folder: &Folder, arguments: &[&str]) -> Self {
        Self::run(folder, Command::new(program()), arguments)
    }

    /// Starts a server with environment variables of its own.
    pub(crate) fn start_in(folder: &Folder, variables: &[(&str, &str)], arguments: &[&str]) -> Self {
        let mut command = Command::new(program());
        command.envs(variables.iter().copied());
        Self::run(folder, command, arguments)
    }

    /// Starts a server under another program, such as strace; the command ends where the server's own begins.
    pub(crate) fn run(folder: &Folder, command: Command, arguments: &[&str]) -> Self {
        let mut server = Self::spawn(folder, command, arguments);
        assert!(server.gets_ready(), "the server ended: {:?}\n{}", server.wait(), server.said());
        server
    }

    /// Starts a server without waiting for it.
    pub(crate) fn spawn(folder: &Folder, command: Command, arguments: &[&str]) -> Self {
        Self::spawn_as("serve", folder, command, arguments)
    }

    /// Starts another command that has the flags of `serve`, without waiting for it.
    pub(crate) fn spawn_as(
        subcommand: &str,
        folder: &Folder,
        mut command: Command,
        arguments: &[&str],
    ) -> Self {
        let data_dir = folder.path().join("data");
        // The files of an earlier server would otherwise be taken for those of this one.
        let _ = std::fs::remove_file(data_dir.join("endpoints.json"));
        let log = folder.path().join("serve.log");
        let stderr = File::options().create(true).append(true).open(&log).expect("a log file");
        let child = command
            .arg(subcommand)
            .arg("--data-dir")
            .arg(&data_dir)
            .args(free_ports(arguments))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("the server starts");
        Self { child, data_dir, log, endpoints: Value::Null }
    }

    /// Takes over a server that a test has started with its own streams, and waits for it.
    pub(crate) fn attach(child: Child, data_dir: PathBuf) -> Self {
        let log = data_dir.join("serve.log");
        let mut server = Self { child, data_dir, log, endpoints: Value::Null };
        assert!(server.gets_ready(), "the server ended: {:?}", server.wait());
        server
    }

    /// Waits until it accepts requests. Returns false when it ended instead.
    pub(crate) fn gets_ready(&mut self) -> bool {
        let began = Instant::now();
        let path = self.data_dir.join("endpoints.json");
        loop {
            if let Ok(text) = std::fs::read_to_string(&path) {
                self.endpoints = serde_json::from_str(&text).expect("endpoints.json is JSON");
                return true;
            }
            if self.has_ended() {
                return false;
            }
            assert!(began.elapsed() < PATIENCE, "the server does not get ready\n{}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns true if the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("the server can be asked").is_some()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Returns all of stderr so far, including that of earlier servers of the same folder.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Returns the address of a listener, by its name in `endpoints.json`.
    #[track_caller]
    pub(crate) fn address(&self, name: &str) -> SocketAddr {
        let address = self.endpoints[name].as_str().expect("the listener is on");
        address.parse().expect("an address")
    }

    /// Posts lines to `/v1/envelopes`.
    pub(crate) fn post_lines(&self, lines: &str) -> Answer {
        self.post("/v1/envelopes", &[("Content-Type", "application/x-ndjson")], lines.as_bytes())
    }

    /// Posts a body to the OTLP/HTTP listener.
    pub(crate) fn post(&self, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        ask(self.address("otlp_http"), "POST", path, headers, body).expect("an answer")
    }

    /// Gets a path of the web listener.
    pub(crate) fn get(&self, path: &str) -> Answer {
        ask(self.address("web"), "GET", path, &[], b"").expect("an answer")
    }

    /// Returns the counters.
    pub(crate) fn status(&self) -> Value {
        self.get("/api/v1/status").json()
    }

    /// Returns the stored rows of a table, read from the data directory.
    pub(crate) fn dump(&self, table: &str) -> Vec<Value> {
        dump(&self.data_dir, table)
    }

    /// Returns the resident memory in bytes: the present and the highest value.
    pub(crate) fn resident(&self) -> (u64, u64) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).expect("/proc");
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name)).expect("a field");
            line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
        };
        (field("VmRSS:"), field("VmHWM:"))
    }

    /// Sends a signal, by its name without `SIG`.
    pub(crate) fn signal(&self, name: &str) {
        let signal = match name {
            "TERM" => Signal::TERM,
            "INT" => Signal::INT,
            "KILL" => Signal::KILL,
            "HUP" => Signal::HUP,
            other => panic!("no signal {other}"),
        };
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, signal).expect("the process is ours");
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    /// Kills it, as a crash would.
    pub(crate) fn kill(mut self) {
        let _ = self.child.kill();
        self.wait();
    }

    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the server can be asked") {
                return status;
            }
            assert!(began.elapsed() < PATIENCE, "the server does not stop\n{}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Free ports for the listeners whose addresses are not given.
fn free_ports(arguments: &[&str]) -> Vec<&'static str> {
    let listeners =
        ["--listen-otlp-grpc", "--listen-otlp-http", "--listen-web", "--listen-postgres", "--listen-flight"];
    listeners.into_iter().filter(|flag| !arguments.contains(flag)).flat_map(|flag| [flag, ":0"]).collect()
}

/// Returns the stored rows of a table, by `faultline dump`.
pub(crate) fn dump(data_dir: &Path, table: &str) -> Vec<Value> {
    let data_dir = data_dir.to_str().expect("the path is UTF-8");
    faultline(&["dump", "--data-dir", data_dir, "--table", table]).ends_with(0).events()
}

/// An HTTP answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// The head, with names in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// Returns the value of a header, by its name in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{} {}", self.head, String::from_utf8_lossy(&self.body));
        self
    }
}

/// Sends one request over a connection of its own.
pub(crate) fn ask(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<Answer> {
    let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !head.to_ascii_lowercase().contains("\r\ncontent-length:") {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(head.as_bytes())?;
    // A server that has read enough may close the connection before everything is sent; its response can still be read.
    let _ = stream.write_all(body);
    read_answer(&mut stream)
}

/// Reads an answer to its end.
pub(crate) fn read_answer(stream: &mut TcpStream) -> std::io::Result<Answer> {
    let mut bytes = Vec::new();
    match stream.read_to_end(&mut bytes) {
        Err(error) if bytes.is_empty() => return Err(error),
        _ => {}
    }
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let end = end.ok_or_else(|| std::io::Error::other(format!("no answer in {} bytes", bytes.len())))?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let (first, rest) = head.split_once("\r\n").unwrap_or((&head, ""));
    let status = first.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    let lower = rest.lines().map(|line| match line.split_once(':') {
        Some((name, value)) => format!("{}:{value}\n", name.to_ascii_lowercase()),
        None => format!("{line}\n"),
    });
    Ok(Answer { status, head: lower.collect(), body: bytes[end + 4..].to_vec() })
}
