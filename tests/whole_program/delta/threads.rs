//! The threads of a server that look after the tables, and strace on one of them: it kills the server, or lets a system
//! call fail, at a chosen call of that thread and of no other.

use super::until;
use crate::whole_program::server::Server;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The purpose of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thread {
    /// Flushes.
    Flusher,
    /// Merges, expires and clears away.
    Maintenance,
    /// Does what `deltalake` leaves to a runtime: it reads the tables' logs, and writes checkpoints.
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

    /// The threads of this name.
    fn of(self, server: &Server) -> Vec<PathBuf> {
        let tasks = super::tables::entries(Path::new(&format!("/proc/{}/task", server.pid())));
        let is_it = |task: &PathBuf| {
            std::fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim_end() == self.name())
        };
        tasks.into_iter().filter(is_it).collect()
    }
}

/// strace on threads of a running server; ended with the test.
pub(super) struct Traced {
    strace: Child,
    said: PathBuf,
    tasks: Vec<PathBuf>,
}

impl Traced {
    /// Injects something into a system call of a server's threads: as in `signal=KILL:when=3`. Each thread counts by
    /// itself. What they do is written to a file beside the data directory.
    #[track_caller]
    pub(super) fn attach(server: &Server, thread: Thread, call: &str, injection: &str) -> Self {
        let mut tasks = Vec::new();
        // A thread gives itself its name.
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
            // It had them, and the call came before we looked.
            return true;
        }
        let is_traced = |task: &PathBuf| {
            // A thread that has ended meanwhile is not missed.
            let Ok(status) = std::fs::read_to_string(task.join("status")) else { return true };
            status.lines().any(|line| {
                line.strip_prefix("TracerPid:")
                    .is_some_and(|tracer| tracer.trim() == self.strace.id().to_string())
            })
        };
        self.tasks.iter().all(is_traced)
    }

    /// The calls that were seen, the last one last.
    pub(super) fn calls(&self) -> Vec<String> {
        let said = std::fs::read_to_string(&self.said).unwrap_or_default();
        said.lines().filter(|line| line.contains('(')).map(str::to_owned).collect()
    }

    /// Lets the thread go.
    pub(super) fn detach(mut self) -> Vec<String> {
        self.end();
        self.calls()
    }

    fn end(&mut self) {
        // It lets its threads go when it is asked to end.
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
