//! Real MCP servers and clients, from their registries, against a running server: each failure that they make is seen
//! once, with its operation, category and message, and each call counts once.
//!
//! `tests/field/field.py` runs a setup and compares; `tests/run` installs the packages into `target/field`.

use super::support::{program, root};
use std::process::Command;

/// A call that only its client saw time out. If the traces of client and server are not linked, rates follow the server,
/// which reports a success.
const TIMEOUT_OF_CLIENT: &str = "scan_yard";

/// Runs a variant of a setup, and shows every difference between the failures that were made and those that were seen.
#[track_caller]
fn check(setup: &str, variant: &str) {
    check_but(setup, variant, "");
}

/// Does the same, with a call that Faultline is known to get wrong.
#[track_caller]
fn check_but(setup: &str, variant: &str, known: &str) {
    let (wanted, ready) = match setup {
        "typescript" => ("package-lock.json", "installed.json"),
        _ => ("requirements.txt", "requirements.txt"),
    };
    let wanted = std::fs::read(root().join("tests/field").join(setup).join(wanted)).expect("the packages");
    let ready = std::fs::read(root().join("target/field").join(setup).join(ready));
    let is_ready = ready.is_ok_and(|ready| ready == wanted);
    assert!(
        is_ready,
        "the packages of {setup} are missing or old: run ./tests/run, which sets up target/field"
    );
    let output = Command::new("python3")
        .arg(root().join("tests/field/field.py"))
        .arg(program())
        .arg(format!("{setup}/{variant}"))
        .env("FIELD_KNOWN", known)
        .output()
        .expect("python3 runs");
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
}

/// The official Python SDK as it comes, over stdio: what its spans cannot tell is not seen, and Faultline says so.
#[test]
fn python_sdk_without_replies() {
    check("python_sdk", "plain");
}

/// The official Python SDK with the middleware of docs/instrument.md, over streamable HTTP: server and client spans and
/// log records of a call are one failure.
#[test]
fn python_sdk_with_replies() {
    check("python_sdk", "middleware");
}

/// `FastMCP` as it comes, over stdio: raised errors are seen, returned ones cannot be.
#[test]
fn fastmcp_without_replies() {
    check("fastmcp", "plain");
}

/// `FastMCP` with the middleware of docs/instrument.md, over streamable HTTP, with client spans and log records.
#[test]
fn fastmcp_with_replies() {
    check("fastmcp", "middleware");
}

/// openllmetry on both sides of a server of `FastMCP` 2, over stdio: five spans of a call are one failure and one call.
#[test]
fn openllmetry_with_linked_traces() {
    check("openllmetry", "linked");
}

/// openllmetry as it is often set up: after the imports, so that client and server have traces of their own.
#[test]
fn openllmetry_with_unlinked_traces() {
    check_but("openllmetry", "unlinked", TIMEOUT_OF_CLIENT);
}

/// The official TypeScript SDK with the wrapped transport of docs/instrument.md, over stdio.
#[test]
fn typescript_spans() {
    check("typescript", "spans");
}

/// The official TypeScript SDK without any instrumentation: both directions of its stdio, teed into a file that the
/// server tails.
#[test]
fn typescript_wire() {
    check("typescript", "wire");
}

/// Version 1 of the official TypeScript SDK, over a teed stdio: a task that is polled until it ends is one call.
#[test]
fn typescript_tasks() {
    check("typescript", "tasks");
}

/// The code in docs/instrument.md is the code that runs here.
#[test]
fn documented_code_is_tested_code() {
    let read = |path: &str| std::fs::read_to_string(root().join(path)).expect(path);
    let page = read("docs/instrument.md");
    for script in ["python_sdk/reply_to_span.py", "fastmcp/reply_to_span.py"] {
        let code = read(&format!("tests/field/{script}"));
        assert!(
            page.contains(&format!("```python\n{code}```\n")),
            "docs/instrument.md does not show {script}"
        );
    }
    let linked = "../tests/field/typescript/reply-to-span.mjs";
    assert!(page.contains(linked), "docs/instrument.md does not link {linked}");
}
