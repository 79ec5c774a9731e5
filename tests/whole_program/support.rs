//! Runs the binary, and holds the few lines of input that many tests share.

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use tempfile::TempDir;

/// A failure that its protocol reports as a success.
pub(crate) const HIDDEN: &str = r#"{"service":"orders","tool":"pay","jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"{\"success\":false,\"error\":{\"code\":\"RATE_LIMIT_QUOTA_PAUSE\",\"message\":\"Paused\"}}"}]}}"#;
/// A failure that its protocol reports as such.
pub(crate) const OPEN: &str = r#"{"service":"orders","tool":"get","jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"Method not found"}}"#;
/// A call that succeeded.
pub(crate) const WORKED: &str = r#"{"service":"orders","jsonrpc":"2.0","id":9,"result":{"content":[]}}"#;
/// A readable record without a failure.
pub(crate) const NOTHING: &str = r#"{"level":"info","text":"started"}"#;
/// A line that is neither JSON nor logfmt.
pub(crate) const UNREADABLE: &str = "{not json";

/// The output of a run, and how it ended.
pub(crate) struct Run {
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) code: i32,
}

impl Run {
    /// Checks the exit code, and shows everything when it is another.
    #[track_caller]
    pub(crate) fn ends_with(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }

    /// Returns the events on stdout.
    #[track_caller]
    pub(crate) fn events(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

/// Runs the binary with an empty stdin.
pub(crate) fn faultline(arguments: &[&str]) -> Run {
    with_stdin(arguments, b"")
}

/// Runs the binary with this on stdin.
pub(crate) fn with_stdin(arguments: &[&str], stdin: &[u8]) -> Run {
    let mut child = command(arguments).stderr(Stdio::piped()).spawn().expect("the binary starts");
    let mut pipe = child.stdin.take().expect("stdin is a pipe");
    let stdin = stdin.to_vec();
    // Stdin is written on a thread, because the child may write before it has read everything.
    let writer = std::thread::spawn(move || pipe.write_all(&stdin));
    let output = child.wait_with_output().expect("the binary ends");
    // A child that rejects its arguments reads nothing.
    let _ = writer.join().expect("the writer ends");
    Run {
        out: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        err: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        code: output.status.code().expect("no signal ended it"),
    }
}

/// The program under test: the one that was built with the tests, or the one that `FAULTLINE_PROGRAM` names, which may
/// be an optimised build (for the long runs) or an installed package.
pub(crate) fn program() -> &'static str {
    static PROGRAM: OnceLock<String> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        std::env::var("FAULTLINE_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_faultline").to_owned())
    })
}

/// Returns the binary, not started yet, with pipes for stdin and stdout.
pub(crate) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// A folder of files that goes away with the test.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary folder"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, bytes).expect("the file can be written");
        path.to_str().expect("the path is UTF-8").to_owned()
    }
}

/// Lines, each with its newline.
pub(crate) fn lines(lines: &[&str]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Returns the file that ships as the example of an operator's registry.
pub(crate) fn example_registry() -> String {
    format!("{}/examples/registry.toml", env!("CARGO_MANIFEST_DIR"))
}

/// Returns the root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the binary, run in the root of the repository, so that what it prints does not depend on where that is.
pub(crate) fn in_root(arguments: &[&str]) -> Run {
    let output =
        command(arguments).current_dir(root()).stderr(Stdio::piped()).output().expect("the binary runs");
    Run {
        out: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        err: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
        code: output.status.code().expect("no signal ended it"),
    }
}

/// Checks a text against a committed file, or writes that file when `UPDATE_EXPECTED` is set, which only
/// `tests/update-expected` does.
#[track_caller]
pub(crate) fn check_expected(file: &str, actual: &str) {
    let path = root().join(file);
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder can be made");
        std::fs::write(path, actual).expect("the file can be written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let differs = expected.lines().zip(actual.lines()).position(|(expected, actual)| expected != actual);
    let line = differs.unwrap_or(expected.lines().count().min(actual.lines().count()));
    assert!(
        expected == actual,
        "{file} differs at line {}; if that is meant, run tests/update-expected and read the difference\n\
         expected: {}\n  actual: {}",
        line + 1,
        expected.lines().nth(line).unwrap_or("(no such line)"),
        actual.lines().nth(line).unwrap_or("(no such line)"),
    );
}
