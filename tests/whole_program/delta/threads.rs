//! Runs strace on one of a server's maintenance threads: it kills the server, or lets a system call fail, at a chosen
//! call of that thread and of no other.

use super::until;
use crate::whole_program::server::Server;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The purpose of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thread {
    /// Flushing.
    Flusher,
    /// Merging, removing expired rows and deleting files.
    Maintenance,
    /// The runtime of `deltalake`, which reads the Delta logs and writes checkpoints.
    DeltaTables,
}

impl Thread {
    fn name(self) -> &'static str {
        match self {
            Self::Flusher => "flusher",
            Self::Maintenance => "maintenance",
            Self::DeltaTables => "delta",
        }
    }

    /// Returns the threads with this name.
    fn of(self, server: &Server) -> Vec<PathBuf> {
        let tasks = super::tables::entries(Path::new(&format!("/proc/{}/task", server.pid())));
        let is_it = |task: &PathBuf| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() == self.name())
        };
        tasks.into_iter().filter(is_it).collect()
    }
}

/// An strace on threads of a running server, which ends with the test.
pub(super) struct Traced {
    strace: Child,
    said: PathBuf,
    tasks: Vec<PathBuf>,
}

impl Traced {
    /// Injects a fault into a system call of a server's threads, as in `signal=KILL:when=3`. Calls are counted for each
    /// thread. The trace is written to a file beside the data directory.
    #[track_caller]
    pub(super) fn attach(server: &Server, thread: Thread, call: &str, injection: &str) -> Self {
        let mut tasks = Vec::new();
        // A thread sets its name itself, after it has started.
        until("the thread is there", || {
            tasks = thread.of(server);
            !tasks.is_empty()
        });
        let said = server.data_dir().with_file_name("strace.log");
        let mut command = Command::new("strace");
        command.args(["-qq", "-y", "-s", "0", "-e", &format!("trace={call}")]);
        command.args(["-e", &format!("inject={call}:{injection}"), "-o"]).arg(&said);
        for task in &tasks {
            command.arg("-p").arg(super::tables::name(task));
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let strace = command.spawn().expect("needs strace: apt-get install strace, or run tests/run as root");
        let mut traced = Self { strace, said, tasks };
        until("strace has the thread", || traced.is_attached());
        traced
    }

    #[track_caller]
    fn is_attached(&mut self) -> bool {
        if self.strace.try_wait().expect("strace can be asked").is_some() {
            let mut said = String::new();
            let mut stderr = self.strace.stderr.take().expect("a pipe");
            std::io::Read::read_to_string(&mut stderr, &mut said).expect("text");
            assert!(
                said.is_empty(),
                "strace ended; it needs root to trace a thread of another process: {said}"
            );
            // The threads existed, and the call came before this check.
            return true;
        }
        let is_traced = |task: &PathBuf| {
            // A thread that has ended meanwhile does not matter.
            let Ok(status) = std::fs::read_to_string(task.join("status")) else { return true };
            status.lines().any(|line| {
                line.strip_prefix("TracerPid:")
                    .is_some_and(|tracer| tracer.trim() == self.strace.id().to_string())
            })
        };
        self.tasks.iter().all(is_traced)
    }

    /// Returns the observed calls, oldest first.
    pub(super) fn calls(&self) -> Vec<String> {
        let said = std::fs::read_to_string(&self.said).unwrap_or_default();
        said.lines().filter(|line| line.contains('(')).map(str::to_owned).collect()
    }

    /// Detaches from the threads.
    pub(super) fn detach(mut self) -> Vec<String> {
        self.end();
        self.calls()
    }

    fn end(&mut self) {
        // strace detaches when it is asked to end.
        let pid = i32::try_from(self.strace.id()).ok().and_then(rustix::process::Pid::from_raw);
        if let (Some(pid), Ok(None)) = (pid, self.strace.try_wait()) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.strace.wait();
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        self.end();
    }
}
