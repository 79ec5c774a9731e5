//! A thread that writes numbered lines to a log as an application does: at speed, sometimes half a line at a time, into
//! the file that it has open, whatever its name is by now.

use super::line;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

pub(super) struct Writer {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

struct Shared {
    path: PathBuf,
    /// Held while a line is written.
    file: Mutex<File>,
    written: AtomicU64,
    is_over: AtomicBool,
}

impl Writer {
    pub(super) fn start(path: &Path) -> Self {
        let shared = Arc::new(Shared {
            path: path.to_owned(),
            file: Mutex::new(open(path)),
            written: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || shared.write()
        });
        Self { shared, thread }
    }

    /// Opens the log by its name again, as after a signal from logrotate.
    pub(super) fn reopen(&self) {
        *self.shared.file.lock().expect("the writer lives") = open(&self.shared.path);
    }

    /// Runs a function while no line is written, because lines that the writer itself would lose are not part of the
    /// test.
    pub(super) fn meanwhile(&self, act: impl FnOnce()) {
        let held = self.shared.file.lock().expect("the writer lives");
        act();
        drop(held);
    }

    /// Ends the thread, and returns the number of lines that it wrote.
    pub(super) fn end(self) -> u64 {
        self.shared.is_over.store(true, Ordering::Relaxed);
        self.thread.join().expect("the writer lives");
        self.shared.written.load(Ordering::Relaxed)
    }
}

impl Shared {
    fn write(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            for _ in 0..20 {
                let number = self.written.load(Ordering::Relaxed);
                let text = line(number) + "\n";
                let (one, two) = text.split_at(if number.is_multiple_of(3) { 40 } else { 0 });
                let mut file = self.file.lock().expect("nobody panics");
                file.write_all(one.as_bytes()).expect("there is room");
                file.write_all(two.as_bytes()).expect("there is room");
                self.written.store(number + 1, Ordering::Relaxed);
            }
            std::thread::sleep(Duration::from_millis(4));
        }
    }
}

fn open(path: &Path) -> File {
    File::options().create(true).append(true).open(path).expect("the log opens")
}
