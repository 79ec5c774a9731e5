//! A real `faultline serve` on free ports of loopback, ended with the benchmark.

use super::connection::{Protocol, Security, Target};
use super::process::Process;
use super::waited;
use anyhow::{Context, ensure};
use rustls::pki_types::ServerName;
use serde_json::Value;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The longest time for a start or a stop on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
const LISTENERS: [(&str, &str); 5] = [
    ("--listen-otlp-grpc", ":0"),
    ("--listen-otlp-http", ":0"),
    ("--listen-web", ":0"),
    ("--listen-postgres", "off"),
    ("--listen-flight", "off"),
];

pub(crate) struct Server {
    child: Child,
    pub(crate) process: Process,
    /// The time from the start of the process until it responds.
    pub(crate) took: Duration,
    endpoints: Value,
    security: Security,
    /// The file with its stderr.
    log: PathBuf,
}

impl Server {
    pub(crate) fn start(program: &Path, data: &Path) -> anyhow::Result<Self> {
        Self::start_with(program, data, &[], Security::default())
    }

    /// Starts a server with further arguments, which need this of its clients.
    pub(crate) fn start_with(
        program: &Path,
        data: &Path,
        arguments: &[&OsStr],
        security: Security,
    ) -> anyhow::Result<Self> {
        let log = data.with_extension("log");
        let begin = Instant::now();
        let child = Command::new(program)
            .args(["serve", "--wal-bytes", "64GiB", "--data-dir"])
            .arg(data)
            .args(LISTENERS.iter().flat_map(|(flag, address)| [flag, address]))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        let process = Process::of(child.id());
        let (took, endpoints) = (Duration::ZERO, Value::Null);
        let mut server = Self { child, process, took, endpoints, security, log };
        let endpoints = data.join("endpoints.json");
        let text = loop {
            if let Ok(text) = std::fs::read_to_string(&endpoints) {
                break text;
            }
            let ended = server.child.try_wait()?;
            ensure!(ended.is_none(), "the server ended: {}", server.said());
            waited(begin, PATIENCE, "the start")?;
        };
        server.took = begin.elapsed();
        server.endpoints = serde_json::from_str(&text)?;
        Ok(server)
    }

    /// Returns the address of `otlp_grpc`, `otlp_http` or `web`.
    pub(crate) fn address(&self, name: &str) -> anyhow::Result<SocketAddr> {
        Ok(self.endpoints[name].as_str().context("the listener is off")?.parse()?)
    }

    /// Returns a listener as a target of requests.
    pub(crate) fn target(&self, listener: &str, protocol: Protocol) -> anyhow::Result<Target> {
        Ok(Target { address: self.address(listener)?, protocol, security: self.security.clone() })
    }

    /// Returns the counters of the server.
    pub(crate) fn status(&self) -> anyhow::Result<Value> {
        let address = self.address("web")?;
        let mut request =
            "GET /api/v1/status HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n".to_owned();
        if let Some(token) = &self.security.token {
            request += &format!("Authorization: Bearer {token}\r\n");
        }
        request += "\r\n";
        let stream = TcpStream::connect(address)?;
        let text = match &self.security.tls {
            Some(tls) => {
                let name = ServerName::from(address.ip());
                let session = rustls::ClientConnection::new(Arc::clone(tls), name)?;
                ask(rustls::StreamOwned::new(session, stream), &request)?
            }
            None => ask(stream, &request)?,
        };
        let (_, body) = text.split_once("\r\n\r\n").context("no answer")?;
        Ok(serde_json::from_str(body)?)
    }

    /// Starts a server that cannot flush anything, because there is a file where its tables belong.
    pub(crate) fn start_unflushed(program: &Path, data: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(data)?;
        std::fs::write(data.join("tables"), "in the way")?;
        Self::start(program, data)
    }

    /// Waits until no more is unflushed than is usual, and returns how long that took.
    pub(crate) fn flushes(&self) -> anyhow::Result<Duration> {
        const MAY_WAIT: u64 = 32 << 20;
        let begin = Instant::now();
        loop {
            let status = self.status()?;
            let count = |part: &str, name: &str| status[part][name].as_u64().unwrap_or(u64::MAX);
            let unflushed = count("wal", "records") - count("flush", "flushed_records");
            if unflushed == count("buffer", "records") && count("buffer", "bytes") < MAY_WAIT {
                return Ok(begin.elapsed());
            }
            ensure!(status["flush"]["failing"] == 0, "flushing fails: {status}");
            waited(begin, PATIENCE, "flushing")?;
        }
    }

    /// Returns a count that the server reports just after it is ready: `replayed_events` or `stored_events`.
    pub(crate) fn count_of_start(&self, name: &str) -> anyhow::Result<u64> {
        let begin = Instant::now();
        let said = loop {
            let said = self.said();
            if said.contains(name) && said.ends_with('\n') {
                break said;
            }
            waited(begin, PATIENCE, "what it found")?;
        };
        let after = said.split(name).nth(1).unwrap_or_default();
        let number = after.trim_start_matches(|c: char| !c.is_ascii_digit());
        let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        Ok(number[..end].parse()?)
    }

    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        let signal = Command::new("kill").args(["-s", "TERM", &self.child.id().to_string()]).status()?;
        ensure!(signal.success(), "kill failed");
        let begin = Instant::now();
        while self.child.try_wait()?.is_none() {
            waited(begin, PATIENCE, "the stop")?;
        }
        Ok(())
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

fn ask(mut stream: impl Read + Write, request: &str) -> anyhow::Result<String> {
    stream.write_all(request.as_bytes())?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
