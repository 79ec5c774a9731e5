//! Runs the Python clients of `tests/clients`, and the story that they send.

use crate::whole_program::server::Server;
use crate::whole_program::support::root;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// The folder in which `tests/run` installs the Python clients.
const FOLDER: &str = "target/clients";

/// Runs a script with something on stdin, and returns the JSON that it prints.
#[track_caller]
pub(crate) fn python(script: &str, arguments: &[&str], stdin: &[u8]) -> Value {
    let folder = root().join(FOLDER);
    let wanted = std::fs::read(root().join("tests/clients/requirements.txt")).expect("the requirements");
    let is_ready = std::fs::read(folder.join("requirements.txt")).is_ok_and(|ready| ready == wanted);
    assert!(is_ready, "the Python clients are missing or old: run ./tests/run, which sets up {FOLDER}");
    let mut child = Command::new(folder.join("bin/python"))
        .arg(root().join("tests/clients").join(script))
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("OTEL_EXPORTER_OTLP_ENDPOINT")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Python starts");
    child.stdin.take().expect("stdin").write_all(stdin).expect("the script reads");
    let output = child.wait_with_output().expect("the script ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script} {arguments:?}: {said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{script} prints no JSON: {said}"))
}

/// Sends the story with an exporter of the SDK, and returns its report.
#[track_caller]
pub(crate) fn send(server: &Server, protocol: &str, compression: &str) -> Value {
    let address = server.address(if protocol == "grpc" { "otlp_grpc" } else { "otlp_http" });
    let sent = python("send.py", &[protocol, compression, &format!("http://{address}")], b"");
    assert_eq!((&sent["traces"][0], &sent["logs"][0]), (&"SUCCESS".into(), &"SUCCESS".into()), "{sent}");
    sent
}

/// The story as bytes, for requests that the SDK's exporters cannot make.
pub(crate) struct Encoded {
    pub(crate) told: Value,
    pub(crate) traces_json: Value,
    pub(crate) logs_json: Value,
    pub(crate) traces: Vec<u8>,
    pub(crate) logs: Vec<u8>,
}

pub(crate) fn story() -> &'static Encoded {
    static STORY: LazyLock<Encoded> = LazyLock::new(|| {
        let story = python("encode.py", &[], b"");
        let bytes = |signal: &str| from_hex(story[signal]["protobuf"].as_str().expect("hex"));
        Encoded {
            told: story["told"].clone(),
            traces_json: story["traces"]["json"].clone(),
            logs_json: story["logs"]["json"].clone(),
            traces: bytes("traces"),
            logs: bytes("logs"),
        }
    });
    &STORY
}

pub(crate) fn from_hex(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a hexadecimal digit") as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).expect("memory")
}
