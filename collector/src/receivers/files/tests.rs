//! Tests with files that change as log files do, read in rounds with a simulated clock: every line must be stored
//! exactly once, whatever happens.

mod archives;
mod failures;
mod lines;
mod rotation;

use super::content_index::ContentIndex;
use super::tailer::{DeliveryTarget, PollOutcome, Tailer};
use super::timeouts::Timeouts;
use super::*;
use crate::counters::FileCounters;
use crate::pipeline::Position;
use std::fs;
use std::io::Write;
use std::sync::Mutex;

/// Everything that all tailers of a bench delivered.
#[derive(Default)]
struct Store {
    lines: Vec<String>,
    services: Vec<Option<String>>,
    positions: Vec<Position>,
}

/// A function that returns the rejection of a body, or `None` to accept it.
type Refuses = fn(&[u8]) -> Option<Rejection>;

/// A pipeline that keeps lines, and rejects the bodies that it is configured to reject.
#[derive(Clone, Default)]
struct Fake {
    store: Arc<Mutex<Store>>,
    counters: Arc<FileCounters>,
    refuses: Arc<Mutex<Option<Refuses>>>,
}

impl DeliveryTarget for Fake {
    fn deliver(&mut self, requests: Vec<Request>) -> Vec<Result<IngestResponse, Rejection>> {
        let refuses = *self.refuses.lock().unwrap();
        let mut store = self.store.lock().unwrap();
        let mut take = |request: Request| {
            if let Some(rejection) = refuses.and_then(|refuses| refuses(&request.body)) {
                return Err(rejection);
            }
            let text = String::from_utf8_lossy(&request.body).into_owned();
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            store.lines.extend(lines.iter().map(|line| (*line).to_owned()));
            store.services.push(request.defaults.service);
            store.positions.extend(request.position);
            Ok(IngestResponse { accepted: lines.len() as u64, ..IngestResponse::default() })
        };
        requests.into_iter().map(&mut take).collect()
    }

    fn counters(&self) -> &FileCounters {
        &self.counters
    }

    fn now(&self) -> i64 {
        1_000_000
    }
}

/// A directory of logs and a tailer that reads them.
struct Bench {
    folder: tempfile::TempDir,
    to: Fake,
    tailer: Tailer<Fake>,
    now: Instant,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let to = Fake::default();
        let tailer = tailer(folder.path(), &to);
        Self { folder, to, tailer, now: Instant::now() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("logs").join(name)
    }

    /// Appends to a file, and creates it if necessary.
    fn append(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let mut file = fs::File::options().create(true).append(true).open(self.path(name)).unwrap();
        file.write_all(bytes.as_ref()).unwrap();
    }

    fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    fn copy(&self, from: &str, to: &str) {
        fs::copy(self.path(from), self.path(to)).unwrap();
    }

    fn empty(&self, name: &str) {
        fs::File::options().write(true).truncate(true).open(self.path(name)).unwrap();
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).unwrap();
    }

    /// Advances the clock by `seconds`, and reads all new input each second.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            while self.tailer.round(self.now) == PollOutcome::Busy {}
        }
    }

    /// Drops the tailer without saving, and starts another with the positions of the WAL.
    fn crash(&mut self) {
        self.tailer = tailer(self.folder.path(), &self.to);
    }

    /// Saves and stops the tailer, and starts another after the WAL has lost all positions.
    fn stop_for_long(&mut self) {
        self.tailer.save();
        self.to.store.lock().unwrap().positions.clear();
        self.crash();
    }

    /// Checks that exactly these lines were stored, once each, in any order.
    #[track_caller]
    fn stored(&self, expected: &[&str]) {
        let mut lines = self.to.store.lock().unwrap().lines.clone();
        let mut expected = expected.to_vec();
        lines.sort();
        expected.sort_unstable();
        assert_eq!(lines, expected);
    }
}

fn tailer(folder: &Path, to: &Fake) -> Tailer<Fake> {
    fs::create_dir_all(folder.join("logs")).unwrap();
    let known = ContentIndex::open(folder.join("files.json"), &to.store.lock().unwrap().positions).unwrap();
    let pattern = folder.join("logs/*.log*").display().to_string();
    Tailer::new(vec![FilePattern { pattern, service: None }], Timeouts::default(), known, to.clone())
}

/// Returns numbered lines, long enough that a few fill a kibibyte.
fn numbered(numbers: std::ops::Range<usize>) -> Vec<String> {
    numbers.map(|number| format!("line {number} {}", "x".repeat(100))).collect()
}

fn joined(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn all(lines: &[String]) -> Vec<&str> {
    lines.iter().map(String::as_str).collect()
}

#[test]
fn a_watch_is_a_pattern_and_perhaps_a_service() {
    let read = |text: &str| text.parse::<FilePattern>().map(|watch| (watch.service, watch.pattern));
    assert_eq!(read("/l/*.log"), Ok((None, "/l/*.log".to_owned())));
    assert_eq!(read("orders=/l/*.log"), Ok((Some("orders".to_owned()), "/l/*.log".to_owned())));
    assert_eq!(read("/l/a=b.log"), Ok((None, "/l/a=b.log".to_owned())));
    assert!(read("orders=").unwrap_err().contains("missing"));
    assert!(read("/l/[a.log").unwrap_err().contains("pattern"));
}
