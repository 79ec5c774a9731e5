//! The real Prometheus and Alertmanager, on free ports of loopback, ended with the test that started them.

use super::super::server::{Answer, ask};
use super::super::support::Folder;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

/// Prometheus or Alertmanager.
pub(crate) struct Monitor {
    child: Child,
    log: PathBuf,
    pub(crate) address: SocketAddr,
}

impl Monitor {
    pub(crate) fn prometheus(folder: &Folder, config: &Path) -> Self {
        let data = folder.path().join("prometheus");
        Self::start(folder, "prometheus", config, &["--storage.tsdb.path", data.to_str().expect("a path")])
    }

    pub(crate) fn alertmanager(folder: &Folder, config: &Path) -> Self {
        let data = folder.path().join("alertmanager");
        let arguments = ["--storage.path", data.to_str().expect("a path"), "--cluster.listen-address="];
        Self::start(folder, "prometheus-alertmanager", config, &arguments)
    }

    fn start(folder: &Folder, program: &str, config: &Path, arguments: &[&str]) -> Self {
        let log = folder.path().join(format!("{program}.log"));
        let stderr = std::fs::File::create(&log).expect("a log file");
        let mut child = Command::new(program)
            .arg(format!("--config.file={}", config.display()))
            .arg("--web.listen-address=127.0.0.1:0")
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{program} is missing ({error}): install its Debian package, as tests/run does")
            });
        let began = Instant::now();
        let address = loop {
            let said = std::fs::read_to_string(&log).unwrap_or_default();
            if let Some(address) = listening(&said) {
                break address;
            }
            let ended = child.try_wait().expect("a process");
            assert!(ended.is_none() && began.elapsed() < PATIENCE, "{program} does not listen:\n{said}");
            std::thread::sleep(Duration::from_millis(50));
        };
        Self { child, log, address }
    }

    /// Sends a request to its HTTP interface.
    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Value {
        let began = Instant::now();
        loop {
            let answer = ask(self.address, "GET", path, &[], b"");
            match answer {
                Ok(answer) if answer.status == 200 => return body(&answer),
                other => assert!(began.elapsed() < PATIENCE, "{other:?}\n{}", self.said()),
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Makes it reload its configuration.
    pub(crate) fn reload(&self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::HUP).expect("the process is ours");
    }

    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// Returns the JSON of a response, which is chunked when it is long.
fn body(answer: &Answer) -> Value {
    if answer.header("transfer-encoding") != Some("chunked") {
        return answer.json();
    }
    let (mut whole, mut rest) = (Vec::new(), &*answer.body);
    while let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let length = std::str::from_utf8(&rest[..end]).expect("a length");
        let length = usize::from_str_radix(length, 16).expect("a length");
        whole.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = &rest[end + 2 + length + 2..];
    }
    serde_json::from_slice(&whole).expect("JSON")
}

/// Returns the address that a log names as the listener.
fn listening(log: &str) -> Option<SocketAddr> {
    let line = log.lines().find(|line| line.contains("msg=\"Listening on\""))?;
    line.rsplit("address=").next()?.trim().parse().ok()
}

impl Drop for Monitor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
