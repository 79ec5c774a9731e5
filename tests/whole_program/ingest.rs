//! Tests of `faultline ingest`: whatever its input is, and however it is interrupted, every line is stored once.
//!
//! Lines carry a request id of their own, so that the stored lines can be compared with those in the files.

mod already_ingested;
mod files;
mod interrupted;
mod mistakes;
mod served;

use super::server::dump;
use super::support::{Folder, Run, command};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A folder with a data directory, files to ingest, and a state of its own.
struct Bench {
    folder: Folder,
}

impl Bench {
    fn new() -> Self {
        Self { folder: Folder::new() }
    }

    fn data_dir(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        self.folder.file(name, bytes)
    }

    /// Returns the command, not started yet, for the data directory of this folder unless the arguments name a server.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(&["ingest"]);
        command.args(arguments).current_dir(self.folder.path());
        command.env("XDG_STATE_HOME", self.folder.path().join("state")).env_remove("FAULTLINE_DATA_DIR");
        if !arguments.contains(&"--to") {
            command.arg("--data-dir").arg(self.data_dir());
        }
        command.stderr(Stdio::piped());
        command
    }

    fn spawn(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdin(Stdio::null()).spawn().expect("the binary starts")
    }

    /// Ingests to the end, with nothing on stdin.
    fn ingest(&self, arguments: &[&str]) -> Run {
        ended(self.spawn(arguments))
    }

    /// Ingests, with this on stdin.
    fn ingest_stdin(&self, arguments: &[&str], stdin: &[u8]) -> Run {
        let mut child = self.command(arguments).spawn().expect("the binary starts");
        let mut pipe = child.stdin.take().expect("stdin is a pipe");
        pipe.write_all(stdin).expect("it reads its stdin");
        drop(pipe);
        ended(child)
    }

    /// Returns the stored events.
    fn events(&self) -> Vec<Value> {
        dump(&self.data_dir(), "events")
    }

    /// Checks that exactly these ids are stored, this often.
    #[track_caller]
    fn stores(&self, expected: &BTreeMap<String, usize>) {
        let stored = self.ids();
        let all: std::collections::BTreeSet<&String> = stored.keys().chain(expected.keys()).collect();
        let wrong: Vec<String> = all
            .into_iter()
            .filter(|id| stored.get(*id) != expected.get(*id))
            .map(|id| format!("{id}: {:?} of {:?}", stored.get(id), expected.get(id)))
            .collect();
        assert!(wrong.is_empty(), "{} ids differ: {:?}", wrong.len(), &wrong[..wrong.len().min(10)]);
    }

    /// Returns the number of times that each request id is stored.
    fn ids(&self) -> BTreeMap<String, usize> {
        let mut ids = BTreeMap::new();
        for event in self.events() {
            *ids.entry(event["request_id"].as_str().unwrap_or_default().to_owned()).or_default() += 1;
        }
        ids
    }
}

/// Waits for the end.
fn ended(child: Child) -> Run {
    let output = child.wait_with_output().expect("the binary ends");
    Run {
        out: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        err: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        code: output.status.code().expect("no signal ended it"),
    }
}

/// Returns a failed call with an id of its own, without a newline.
fn line(id: usize) -> String {
    // White space makes the line long, and nothing else.
    format!(
        r#"{{"service":"orders","tool":"get","request_id":"r{id}",{:1500}"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"Method not found"}}}}"#,
        ""
    )
}

/// Returns a log of such lines.
fn log(ids: Range<usize>) -> String {
    ids.map(|id| line(id) + "\n").collect()
}

/// Returns short lines that yield more than a WAL of 8 MiB holds.
fn too_much(ids: Range<usize>) -> String {
    log(ids).replace(' ', "")
}

/// Returns each of these ids with the same count.
fn each(ids: Range<usize>, times: usize) -> BTreeMap<String, usize> {
    ids.map(|id| (format!("r{id}"), times)).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}
