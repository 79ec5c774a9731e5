//! Tests of retention: which data is deleted because of its age, by which command, and which never is.

mod archives;
pub(crate) mod clock;

use super::delta::{FLUSH_AT_ONCE, PATIENCE, until_flushed, until_status};
use super::server::Server;
use super::support::{Folder, Run, command};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// Failed calls of a time, each with an id of its own.
fn failures(name: &str, time: &str, count: usize) -> String {
    let line = |number| {
        format!(
            r#"{{"time":"{time}","service":"orders","request_id":"{name}.{number}","jsonrpc":"2.0","id":1,"error":{{"code":-32601,"message":"Method not found"}}}}"#
        ) + "\n"
    };
    (0..count).map(line).collect()
}

/// Returns the number of stored events whose id begins with a name.
fn stored(data_dir: &Path, name: &str) -> usize {
    let is_of = |event: &&Value| event["request_id"].as_str().is_some_and(|id| id.starts_with(name));
    super::server::dump(data_dir, "events").iter().filter(is_of).count()
}

/// Waits until a round of maintenance has gone over everything that is stored now.
#[track_caller]
fn until_maintained(server: &Server) {
    until_flushed(server);
    let rounds = server.status()["maintenance"]["rounds"].as_u64().expect("a number");
    // A round that began earlier may still be running.
    until_status(server, "maintenance", |status| {
        status["maintenance"]["rounds"].as_u64() >= Some(rounds + 2)
    });
}

/// Runs a command in a folder, with variables.
fn run_in(folder: &Folder, variables: &[(&str, &str)], arguments: &[&str]) -> Run {
    let output = command(arguments)
        .current_dir(folder.path())
        .env("XDG_STATE_HOME", folder.path().join("state"))
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .expect("the binary runs");
    Run {
        out: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        err: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        code: output.status.code().expect("no signal ended it"),
    }
}
