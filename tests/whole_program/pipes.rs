//! Scenario: the reader of the output disconnects. That is not a failure: no panic, no message, exit code 0.

use super::support::{Folder, OPEN, command};
use std::io::Read;
use std::process::Stdio;

#[test]
fn a_reader_that_is_gone_ends_every_command_quietly() {
    let folder = Folder::new();
    let file = folder.file("app.ndjson", format!("{OPEN}\n").repeat(2000));
    for arguments in [
        &["classify", &file][..],
        &["classify", "--summary", &file],
        &["codes"],
        &["codes", "-32002"],
        &["codes", "--format", "json"],
        &["completions", "bash"],
        &["--help"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output =
            command(arguments).stdin(Stdio::null()).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {err}");
        assert_eq!(err, "", "{arguments:?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_stops_the_work() {
    let mut child = command(&["classify"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // The log is endless, so the test ends only because the program does.
    let writer = std::thread::spawn(move || std::io::copy(&mut Endless, &mut stdin));
    let mut stdout = child.stdout.take().unwrap();
    stdout.read_exact(&mut [0; 100]).unwrap();
    drop(stdout);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(writer.join().unwrap().is_err(), "the log was cut off, too");
}

/// A reader of the same line for ever.
struct Endless;

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let line = format!("{OPEN}\n");
        let count = line.len().min(buffer.len());
        buffer[..count].copy_from_slice(&line.as_bytes()[..count]);
        Ok(count)
    }
}

/// Notes are for people; when stderr is closed, results are still written.
#[test]
fn a_closed_stderr_does_not_matter() {
    let folder = Folder::new();
    let file = folder.file("app.ndjson", format!("{OPEN}\n{{unreadable\n"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command(&["classify", &file]).stdin(Stdio::null()).stderr(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.starts_with(b"{\"line\":1,"));
}

/// Any other failure to write is an error, because the output would otherwise seem complete.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_an_error() {
    let folder = Folder::new();
    let file = folder.file("app.ndjson", format!("{OPEN}\n"));
    for arguments in [&["classify", &file][..], &["classify", "--summary", &file], &["codes"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output =
            command(arguments).stdin(Stdio::null()).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.starts_with("error: cannot write to stdout: "), "{err}");
    }
}
