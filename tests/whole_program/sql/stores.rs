//! The same rows in files, in the buffer, or half of them in each; made by the real binary.

use super::query_runner::QueryRunner;
use crate::whole_program::server::Server;
use crate::whole_program::support::{Folder, faultline};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// An option that keeps data however old it is.
const FOREVER: [&str; 4] = ["--keep-events", "forever", "--keep-traffic", "forever"];
/// Options that flush nothing during a test.
const NEVER_FLUSH: [&str; 4] = ["--flush-after", "1h", "--flush-bytes", "1GiB"];
/// Options for endpoints that these tests do not need.
const CLOSED: [&str; 4] = ["--listen-postgres", "off", "--listen-flight", "off"];

/// The location of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RowLocation {
    /// In files.
    Flushed,
    /// In the WAL and the memory of a server.
    Hot,
    /// The first half in files, the second hot.
    Both,
}

/// A data directory with rows in it.
pub(super) struct Store {
    // The server is dropped before its folder.
    server: Option<Server>,
    folder: Folder,
}

impl Store {
    /// Returns a store with the records of a log; without one it is empty.
    pub(super) fn new(location: RowLocation, log: Option<&Path>) -> Self {
        let folder = Folder::new();
        let text = log.map(|log| std::fs::read_to_string(log).expect("a log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let (flushed, hot) = match location {
            RowLocation::Flushed => (&lines[..], &[][..]),
            RowLocation::Hot => (&[][..], &lines[..]),
            RowLocation::Both => lines.split_at(lines.len() / 2),
        };
        if location != RowLocation::Hot {
            flush(&folder, flushed);
        }
        let server = (location != RowLocation::Flushed).then(|| serve(&folder, hot));
        let store = Self { server, folder };
        store.check(flushed, hot);
        store
    }

    /// Returns the library on the data directory.
    pub(super) fn directory(&self) -> QueryRunner {
        QueryRunner::of_directory(&self.path())
    }

    /// Returns the server.
    pub(super) fn server(&self) -> QueryRunner {
        QueryRunner::Server(self.server.as_ref().expect("a server").address("web"))
    }

    /// Sends spans to the server.
    pub(super) fn post_spans(&self, request: &Value) {
        let body = request.to_string();
        let server = self.server.as_ref().expect("a server");
        server.post("/v1/traces", &[("Content-Type", "application/json")], body.as_bytes()).is(200);
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Checks that the rows are where the test expects them.
    fn check(&self, flushed: &[&str], hot: &[&str]) {
        let files = files_below(&self.path().join("tables/events"));
        assert_eq!(files.iter().any(|file| file.ends_with(".parquet")), !flushed.is_empty(), "{files:?}");
        if let Some(server) = &self.server {
            let records = server.status()["buffer"]["records"].as_u64().expect("a number");
            assert_eq!(records > 0, !hot.is_empty(), "{records} hot records");
        }
    }
}

fn flush(folder: &Folder, lines: &[&str]) {
    let log = folder.file("flushed.ndjson", lines.join("\n"));
    let data = folder.path().join("data");
    let data = data.to_str().expect("UTF-8");
    let run = faultline(&[&["ingest", "--quiet", "--data-dir", data, &log], &FOREVER[..]].concat());
    // Exit code 1 means that some lines could not be read, which some stories need.
    assert!(run.code <= 1, "{}\n{}", run.out, run.err);
}

fn serve(folder: &Folder, lines: &[&str]) -> Server {
    let server = Server::start_with(folder, &[FOREVER, NEVER_FLUSH, CLOSED].concat());
    if !lines.is_empty() {
        server.post_lines(&lines.join("\n")).is(200);
    }
    server
}

fn files_below(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let below = |path: PathBuf| {
        if path.is_dir() { files_below(&path) } else { vec![path.display().to_string()] }
    };
    entries.flat_map(|entry| below(entry.expect("an entry").path())).collect()
}
