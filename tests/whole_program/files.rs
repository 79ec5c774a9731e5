//! Tests of `serve --files` and `--stdin`: whatever happens to files and to the server, every line is stored once.
//!
//! Lines carry a number, so that the stored lines can be compared with the written ones.

mod calls;
mod rotated;
mod stdin;
mod unreadable;
mod writer;

use super::server::{Server, dump};
use super::support::Folder;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The longest time until lines are stored on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns a failed call with a number of its own, without a newline.
fn line(number: u64) -> String {
    format!(
        r#"{{"tool":"get","request_id":"r{number}","jsonrpc":"2.0","id":{number},"error":{{"code":-32601,"message":"Method not found"}}}}"#
    )
}

/// A folder of logs beside a data directory.
struct Bench {
    folder: Folder,
}

impl Bench {
    fn new() -> Self {
        let folder = Folder::new();
        std::fs::create_dir(folder.path().join("logs")).expect("a folder");
        Self { folder }
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.path().join("logs").join(name)
    }

    fn serve(&self) -> Server {
        let pattern = format!("orders={}", self.log("app.log*").display());
        Server::start_with(&self.folder, &["--files", &pattern])
    }

    fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Waits until as many lines are stored as were written, then checks that each is there once.
    #[track_caller]
    fn stores_all(&self, written: u64) {
        let began = Instant::now();
        while (stored(&self.data_dir()).len() as u64) < written && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(200));
        }
        // Duplicates may arrive later.
        std::thread::sleep(Duration::from_secs(2));
        self.stores_each_once(written);
    }

    #[track_caller]
    fn stores_each_once(&self, written: u64) {
        let stored = stored(&self.data_dir());
        let wrong: Vec<(u64, usize)> = (0..written)
            .map(|number| (number, stored.get(&format!("r{number}")).copied().unwrap_or(0)))
            .filter(|(_, times)| *times != 1)
            .collect();
        let some = &wrong[..wrong.len().min(10)];
        assert!(wrong.is_empty(), "{} of {written} are not stored once: {some:?}", wrong.len());
        assert_eq!(stored.len() as u64, written);
    }
}

/// Returns the number of times that each line is stored.
fn stored(data_dir: &Path) -> BTreeMap<String, usize> {
    let mut ids = BTreeMap::new();
    for event in dump(data_dir, "events") {
        *ids.entry(event["request_id"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
    }
    ids
}
