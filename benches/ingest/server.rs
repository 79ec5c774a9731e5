//! A real `faultline serve` on free ports of loopback, ended with the benchmark.

use crate::process::Process;
use crate::waited;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The longest time for a start or a stop on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Server {
    child: Child,
    pub(crate) process: Process,
    /// The time from the start of the process until it responds.
    pub(crate) took: Duration,
    endpoints: Value,
    /// The file with its stderr.
    log: PathBuf,
}

impl Server {
    pub(crate) fn start(program: &Path, data: &Path) -> anyhow::Result<Self> {
        let log = data.with_extension("log");
        let begin = Instant::now();
        let child = Command::new(program)
            .args(["serve", "--wal-bytes", "64GiB", "--data-dir"])
            .arg(data)
            .args([
                "--listen-otlp-grpc",
                ":0",
                "--listen-otlp-http",
                ":0",
                "--listen-web",
                ":0",
                "--listen-postgres",
                "off",
                "--listen-flight",
                "off",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()?;
        let process = Process::of(child.id());
        let mut server = Self { child, process, took: Duration::ZERO, endpoints: Value::Null, log };
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

    /// Returns the counters of the server.
    pub(crate) fn status(&self) -> anyhow::Result<Value> {
        let mut stream = TcpStream::connect(self.address("web")?)?;
        stream.write_all(b"GET /api/v1/status HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n")?;
        let mut text = String::new();
        stream.read_to_string(&mut text)?;
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

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
