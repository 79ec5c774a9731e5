//! Tests of the files in `deploy/`, as far as is possible without a container engine, a cluster or systemd itself.
//!
//! | file | proves |
//! |---|---|
//! | `names` | the variables, flags and settings that are named exist; settings files have no mistakes |
//! | `systemd` | the unit is well formed and tight, and the server needs no system call that it forbids |
//! | `containers` | the image has what it is built from; compose names images, ports and paths that exist; its secrets work |
//! | `kubernetes` | the manifests fit their schemas and each other; the rules are those of `dashboards/` |
//! | `packages` | the packages of a release can be installed, and what they bring starts |
//! | `senders` | the requests of the configured collectors are accepted |
//!
//! Needs systemd-analyze, strace, promtool, amtool, dpkg, binutils and the Python clients: a test that lacks one says
//! so and fails.

mod containers;
mod kubernetes;
mod names;
mod packages;
mod senders;
mod systemd;

use super::otlp::client::python;
use super::support::root;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The listeners by their names in the settings, with their default ports.
const PORTS: [(&str, u64); 5] =
    [("otlp_grpc", 4317), ("otlp_http", 4318), ("postgres", 5433), ("web", 7070), ("flight", 8815)];

/// Returns a file of the repository.
#[track_caller]
fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the documents of a YAML file.
#[track_caller]
fn yaml(file: &str) -> Vec<Value> {
    let path = root().join(file);
    let documents = python("deploy.py", &[path.to_str().expect("a path")], b"");
    documents[path.to_str().expect("a path")].as_array().expect("documents").clone()
}

/// Every file below a folder of the repository.
fn files(folder: &str) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.path() {
                // The output of make-secrets is ignored.
                path if path.is_dir() && !path.ends_with("compose/secrets") => folders.push(path),
                path if path.is_file() => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    files
}

/// Runs a tool, which must succeed, and returns its output.
#[track_caller]
fn tool(program: &str, arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(program).args(arguments).current_dir(folder).output();
    let output = output.unwrap_or_else(|error| panic!("{program} is missing ({error}): see tests/run"));
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}:\n{said}");
    said.into_owned()
}

/// Returns the strings of a list.
fn strings(list: &Value) -> Vec<&str> {
    list.as_array().map(|list| list.iter().filter_map(Value::as_str).collect()).unwrap_or_default()
}
