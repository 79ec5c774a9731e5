//! `FileReceiver` that live as log files do, read in rounds whose time the test makes: every line comes once, whatever
//! happens.

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

/// What was delivered, by all tailers of a bench.
#[derive(Default)]
struct Store {
    lines: Vec<String>,
    services: Vec<Option<String>>,
    positions: Vec<Position>,
}

/// What is refused, by its body.
type Refuses = fn(&[u8]) -> Option<Rejection>;

/// A pipeline that keeps lines, and refuses what it is told to.
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

/// A folder of logs with a tailer on it.
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

    /// Adds to a file, which is made if need be.
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

    /// Lets so many seconds pass, and reads whatever there is each second.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.now += Duration::from_secs(1);
            while self.tailer.round(self.now) == PollOutcome::Busy {}
        }
    }

    /// Ends without a word, and begins again with what the log knows.
    fn crash(&mut self) {
        self.tailer = tailer(self.folder.path(), &self.to);
    }

    /// Ends as it should, and begins again, when the log has forgotten everything.
    fn stop_for_long(&mut self) {
        self.tailer.save();
        self.to.store.lock().unwrap().positions.clear();
        self.crash();
    }

    /// Checks that these lines were stored, once each, in whatever order.
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

/// Numbered lines, long enough that a few make a kibibyte.
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
