//! `faultline sql`: single queries, files of them, and the prompt, on a data directory and through a server.
//!
//! Needs the Python clients of `tests/clients`, which read the answers and type at the prompt.

mod formats;
mod mistakes;
mod prompt;
mod targets;

use super::support::{Folder, Run, faultline, root};
use std::path::Path;

/// A data directory with the events of the example log.
struct Stored {
    folder: Folder,
    data_dir: String,
}

impl Stored {
    fn new() -> Self {
        let folder = Folder::new();
        let data_dir = folder.path().join("data").to_str().expect("the path is UTF-8").to_owned();
        let log = root().join("examples/app.ndjson");
        let log = log.to_str().expect("the path is UTF-8");
        faultline(&["ingest", log, "--data-dir", &data_dir, "--quiet"]).ends_with(0);
        Self { folder, data_dir }
    }

    /// Runs a query on it.
    fn sql(&self, arguments: &[&str]) -> Run {
        faultline(&[&["sql", "--data-dir", &self.data_dir], arguments].concat())
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("the path is UTF-8").to_owned()
    }
}

/// Every file below a folder, with its size.
fn files_below(folder: &Path) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.push((path.display().to_string(), 0));
            found.extend(files_below(&path));
        } else {
            found.push((path.display().to_string(), path.metadata().expect("a file").len()));
        }
    }
    found.sort();
    found
}
