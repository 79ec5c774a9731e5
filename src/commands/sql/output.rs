//! The destination of rows: stdout, or a file, which appears when it contains all rows of a result.

use crate::cli::terminal;
use anyhow::Context;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The destination of rows.
#[derive(Debug)]
pub(super) struct Output {
    path: Option<PathBuf>,
    /// The number of results that are in the file already.
    results: usize,
}

impl Output {
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self { path, results: 0 }
    }

    /// Returns the path of the file, or `None` for stdout.
    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the number of results that are in the file already.
    pub(super) fn results(&self) -> usize {
        self.results
    }

    /// Opens a sink for the next result. The first one replaces the content of the file, and others are appended.
    pub(super) fn begin(&mut self) -> anyhow::Result<Sink> {
        let Some(path) = &self.path else { return Ok(Sink::Stdout) };
        let context = || format!("cannot write '{}'", path.display());
        // A device or a pipe cannot be replaced, so rows are appended.
        let is_special_file = fs::metadata(path).is_ok_and(|found| !found.is_file());
        if is_special_file || self.results > 0 {
            let file = File::options().append(true).open(path).with_context(context)?;
            return Ok(Sink::Append(BufWriter::new(file)));
        }
        Ok(Sink::New(NewFile::temporary(path).with_context(context)?))
    }

    /// Ends a result, which is now in the file.
    pub(super) fn end(&mut self, sink: Sink) -> anyhow::Result<()> {
        let path = self.path.as_deref().unwrap_or(Path::new("stdout"));
        sink.end().with_context(|| format!("cannot write '{}'", path.display()))?;
        self.results += 1;
        Ok(())
    }
}

/// The destination of one result.
pub(super) enum Sink {
    Stdout,
    Append(BufWriter<File>),
    New(NewFile),
}

impl Sink {
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => terminal::write_stdout(bytes),
            Self::Append(file) => file.write_all(bytes),
            Self::New(file) => file.writer.write_all(bytes),
        }
    }

    fn end(self) -> io::Result<()> {
        match self {
            Self::Stdout => Ok(()),
            Self::Append(mut file) => file.flush(),
            Self::New(file) => file.commit(),
        }
    }
}

/// A file that gets its name when it is complete, and is removed if it never is.
pub(super) struct NewFile {
    writer: BufWriter<File>,
    temporary: PathBuf,
    path: PathBuf,
    is_complete: bool,
}

impl NewFile {
    fn temporary(path: &Path) -> io::Result<Self> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(format!(".{}.part", std::process::id()));
        let temporary = PathBuf::from(temporary);
        let writer = BufWriter::new(File::create(&temporary)?);
        Ok(Self { writer, temporary, path: path.to_owned(), is_complete: false })
    }

    fn commit(mut self) -> io::Result<()> {
        self.writer.flush()?;
        fs::rename(&self.temporary, &self.path)?;
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.is_complete {
            // The file may already be gone, and an error here does not matter.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}
