//! No secret is stored, logged or exported: a secret of each known kind in each field that senders can fill,
//! and then a search through every byte that the server left behind.
//!
//! Each secret is different, so that a leak shows its origin. Each is between two harmless words, most of which must be
//! found: redaction that removes everything would otherwise pass the search as well.

mod envelopes;
mod secrets;
mod telemetry;

use super::server::Server;
use super::support::Folder;
use secrets::Canaries;
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// Returns every byte of every file of a folder, without trailing zeros, because the WAL preallocates its files.
fn bytes_of(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            bytes.extend(bytes_of(&path));
        } else {
            let mut file = std::fs::read(&path).expect("the file can be read");
            let end = file.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            file.truncate(end);
            bytes.extend(file);
        }
    }
    bytes
}

/// Returns the words that occur in some bytes, in one pass for each length of word.
fn found_in<'w>(bytes: &[u8], words: &'w [(String, String)]) -> HashSet<&'w (String, String)> {
    let mut by_length: HashMap<usize, HashMap<&[u8], &(String, String)>> = HashMap::new();
    for word in words {
        by_length.entry(word.1.len()).or_default().insert(word.1.as_bytes(), word);
    }
    let of_length = |(length, words): (usize, HashMap<&[u8], &'w (String, String)>)| {
        bytes.windows(length).filter_map(move |window| words.get(window).copied()).collect::<Vec<_>>()
    };
    by_length.into_iter().flat_map(of_length).collect()
}

/// Sends canaries to a server that logs and traces all it can, stops it, and searches what is left: the data
/// directory, the log on stderr, and the data directory of the server that the traces went to.
fn check(send: impl FnOnce(&Server, &Folder, &mut Canaries)) {
    let (here, there) = (Folder::new(), Folder::new());
    let small = ["--wal-bytes", "64MiB"];
    let other = Server::start_with(&there, &small);
    let endpoint = format!("http://{}", other.address("otlp_http"));
    let variables = [("FAULTLINE_LOG", "debug"), ("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)];
    let server = Server::start_in(&here, &variables, &small);
    let mut canaries = Canaries::default();
    send(&server, &here, &mut canaries);
    let (data, log) = (server.data_dir().to_owned(), here.path().join("serve.log"));
    assert!(server.stop().success());
    let traced = other.status()["sources"]["otlp_traces"]["accepted_records"].as_u64();
    let exported = other.data_dir().to_owned();
    assert!(other.stop().success());
    let places = [
        ("the data directory", bytes_of(&data)),
        ("the log", std::fs::read(log).expect("the log")),
        ("our own traces", bytes_of(&exported)),
    ];
    assert!(places[1].1.windows(5).any(|window| window == b"DEBUG"), "the log has its debug lines");
    let mut leaks = Vec::new();
    for (place, bytes) in &places {
        let found = found_in(bytes, &canaries.secrets);
        leaks.extend(found.iter().map(|(field, secret)| format!("{field} in {place}: {secret}")));
    }
    assert!(leaks.is_empty(), "{} of {} leak:\n{}", leaks.len(), canaries.secrets.len(), leaks.join("\n"));
    assert!(traced > Some(0), "traces were sent");
    let stored = found_in(&places[0].1, &canaries.neighbours);
    let lost: Vec<_> = canaries.neighbours.iter().filter(|word| !stored.contains(word)).collect();
    assert!(lost.is_empty(), "{} of {} are gone: {lost:?}", lost.len(), canaries.neighbours.len());
}

/// Sends secrets in envelopes: every field of replies, lines that cannot be read or hold nothing, heads of requests.
#[test]
fn no_secret_of_an_envelope_is_kept() {
    check(|server, _, canaries| {
        envelopes::replies(server, canaries);
        envelopes::unusable(server, canaries);
        envelopes::heads(server, canaries);
    });
}

/// Sends secrets in spans and log records: every field that OTLP has, read or not, in protobuf and JSON, well formed or
/// not.
#[test]
fn no_secret_of_telemetry_is_kept() {
    check(|server, folder, canaries| {
        telemetry::spans(server, canaries);
        telemetry::logs(server, canaries);
        telemetry::malformed(server, canaries);
        telemetry::heads(server, folder, canaries);
    });
}
