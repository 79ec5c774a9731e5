//! Servers under strace, which kills them or lets system calls fail at chosen moments.
//!
//! strace counts the calls of each thread by itself: `when=3` is the third of whichever thread comes to three first.

use crate::whole_program::server::Server;
use crate::whole_program::support::Folder;
use std::process::{Command, Stdio};

/// Returns a strace command that injects a fault into a system call, to be followed by the server's own command. The
/// server stays a child of the test (`-D`), so that signals and exit codes are its own. (`--seccomp-bpf` is not used:
/// with it, strace 6.1 injects only the first signal.)
pub(crate) fn strace(call: &str, injection: &str) -> Command {
    let version = Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status();
    assert!(
        version.is_ok(),
        "needs strace to fail system calls: apt-get install strace, or run tests/run as root"
    );
    let mut command = Command::new("strace");
    command.args(["-D", "-f", "-qq", "-o", "/dev/null"]);
    command.args(["-e", &format!("trace={call}"), "-e", &format!("inject={call}:{injection}")]);
    command
}

/// Returns the same command, limited to calls on the first WAL segments of a folder's server; sockets are not affected.
pub(crate) fn strace_log(folder: &Folder, call: &str, injection: &str) -> Command {
    let mut command = strace(call, injection);
    for number in 1..=32 {
        command.arg("-P").arg(folder.path().join(format!("data/wal/{number:020}.log")));
    }
    command
}

/// Starts a server under such a command, without waiting for it.
pub(crate) fn spawn(folder: &Folder, mut strace: Command, arguments: &[&str]) -> Server {
    strace.arg(env!("CARGO_BIN_EXE_faultline"));
    Server::spawn(folder, strace, arguments)
}

/// Starts a server under such a command.
pub(crate) fn start(folder: &Folder, strace: Command, arguments: &[&str]) -> Server {
    let mut server = spawn(folder, strace, arguments);
    assert!(server.gets_ready(), "the server ended: {:?}\n{}", server.wait(), server.said());
    server
}
