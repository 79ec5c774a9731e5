//! Ensures that only one process uses a data directory.
//!
//! The lock is a kernel lock (`flock`), so it ends with its process, however that ends. The file stays; only the lock
//! on it has a meaning.
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file in the data directory that is locked.
const FILE: &str = "LOCK";

/// The reason why the data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process uses the directory. The remedy is to stop it, or to use another directory.
    #[error("another faultline{} is using {}; stop it or choose another --data-dir",
        .holder.map(|pid| format!(" (process {pid})")).unwrap_or_default(), .directory.display())]
    Held {
        /// The requested directory.
        directory: PathBuf,
        /// The process that holds the lock, if it could be read.
        holder: Option<u32>,
    },
    /// The lock file cannot be created or locked.
    #[error("cannot lock {}: {error}; check its owner and permissions, or choose another --data-dir", .path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
}

/// Holds a data directory for this process until it is dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Locks the directory, which must exist. The error names the process that holds it.
    pub fn take(directory: &Path) -> Result<Self, LockError> {
        let path = directory.join(FILE);
        match lock(&path) {
            Ok(Ok(file)) => Ok(Self { _file: file }),
            Ok(Err(holder)) => Err(LockError::Held { directory: directory.to_owned(), holder }),
            Err(error) => Err(LockError::Io { path, error }),
        }
    }

    /// Locks a folder that is about to become a data directory, and leaves no file in it.
    pub(crate) fn take_folder(directory: &Path) -> Result<Self, LockError> {
        let io = |error| LockError::Io { path: directory.to_owned(), error };
        let file = File::open(directory).map_err(io)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {
                Err(LockError::Held { directory: directory.to_owned(), holder: None })
            }
            Err(TryLockError::Error(error)) => Err(io(error)),
        }
    }
}

/// Returns the locked file with the id of this process in it, or the process that holds the lock.
fn lock(path: &Path) -> io::Result<Result<File, Option<u32>>> {
    let mut file =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Err(holder(&mut file))),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // The process id is only informative; a full disk must not keep a server from starting because of it.
    if let Err(error) = sign(&mut file) {
        tracing::warn!(%error, path = %path.display(), "cannot write the process id into the lock file");
    }
    Ok(Ok(file))
}

fn sign(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(32).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_second_is_told_who_was_first() {
        let folder = tempfile::tempdir().unwrap();
        let first = DirectoryLock::take(folder.path()).unwrap();
        let text = DirectoryLock::take(folder.path()).unwrap_err().to_string();
        let (pid, place) = (std::process::id(), folder.path().display());
        assert_eq!(
            text,
            format!(
                "another faultline (process {pid}) is using {place}; stop it or choose another --data-dir"
            )
        );
        drop(first);
        DirectoryLock::take(folder.path()).unwrap();
    }

    /// A killed process that held the lock leaves nothing behind that prevents a start.
    #[test]
    fn a_killed_process_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        std::fs::write(&path, "4242\n").unwrap();
        let Ok(mut child) = Command::new("flock")
            .arg(&path)
            .args(["-c", "echo locked; exec sleep 60"])
            .stdout(Stdio::piped())
            .spawn()
        else {
            return; // no flock(1) on this machine
        };
        let mut said = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut said).unwrap();
        let text = DirectoryLock::take(folder.path()).unwrap_err().to_string();
        assert!(text.contains("process 4242"), "{text}");
        // flock(1) waits for its command, which shares the lock, so that process must end, too.
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        for pid in std::fs::read_to_string(children).unwrap_or_default().split_whitespace() {
            Command::new("kill").args(["-9", pid]).status().unwrap();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while DirectoryLock::take(folder.path()).is_err() {
            assert!(std::time::Instant::now() < deadline, "still locked");
            std::thread::yield_now();
        }
    }
}
