//! Where rows go: to stdout, or into a file, which is there when all rows of its answer are in it.

use crate::terminal;
use anyhow::Context;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Where rows go.
#[derive(Debug)]
pub(super) struct Output {
    path: Option<PathBuf>,
    /// Answers that are in the file already.
    answers: usize,
}

impl Output {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self { path, answers: 0 }
    }

    /// The file, unless it is stdout.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Answers that are in the file already.
    pub(super) fn answers(&self) -> usize {
        self.answers
    }

    /// A place for one more answer. The first replaces what was in the file, others come behind it.
    pub(super) fn begin(&mut self) -> anyhow::Result<Sink> {
        let Some(path) = &self.path else { return Ok(Sink::Stdout) };
        let cannot = || format!("cannot write '{}'", path.display());
        // A device or a pipe cannot be replaced, and takes what it is given.
        let is_other = fs::metadata(path).is_ok_and(|found| !found.is_file());
        if is_other || self.answers > 0 {
            let file = File::options().append(true).open(path).with_context(cannot)?;
            return Ok(Sink::Append(BufWriter::new(file)));
        }
        Ok(Sink::New(NewFile::beside(path).with_context(cannot)?))
    }

    /// Ends an answer: now it is in the file.
    pub(super) fn end(&mut self, sink: Sink) -> anyhow::Result<()> {
        let path = self.path.as_deref().unwrap_or(Path::new("stdout"));
        sink.end().with_context(|| format!("cannot write '{}'", path.display()))?;
        self.answers += 1;
        Ok(())
    }
}

/// Where one answer goes.
pub(super) enum Sink {
    Stdout,
    Append(BufWriter<File>),
    New(NewFile),
}

impl Sink {
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => terminal::print(bytes),
            Self::Append(file) => file.write_all(bytes),
            Self::New(file) => file.writer.write_all(bytes),
        }
    }

    fn end(self) -> io::Result<()> {
        match self {
            Self::Stdout => Ok(()),
            Self::Append(mut file) => file.flush(),
            Self::New(file) => file.take_its_name(),
        }
    }
}

/// A file that gets its name when it is whole, and is gone if it never is.
pub(super) struct NewFile {
    writer: BufWriter<File>,
    beside: PathBuf,
    path: PathBuf,
    is_whole: bool,
}

impl NewFile {
    fn beside(path: &Path) -> io::Result<Self> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}.part", std::process::id()));
        let beside = PathBuf::from(beside);
        let writer = BufWriter::new(File::create(&beside)?);
        Ok(Self { writer, beside, path: path.to_owned(), is_whole: false })
    }

    fn take_its_name(mut self) -> io::Result<()> {
        self.writer.flush()?;
        fs::rename(&self.beside, &self.path)?;
        self.is_whole = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_whole {
            // It may have gone already, and nobody misses it.
            let _ = fs::remove_file(&self.beside);
        }
    }
}
