//! The inputs that the server reads itself: log files and standard input.
//!
//! Invariant: files are no longer read when the pipeline is closed, and their read positions are saved.

use anyhow::Context;
use collector::Pipeline;
use collector::receivers::files::{FilePattern, FileReceiver};
use collector::receivers::stdin::StdinReceiver;
use std::path::Path;
use tokio::runtime::Handle;

/// The flags for local inputs.
#[derive(Debug, clap::Args)]
pub(super) struct FileInputArgs {
    /// Tail these log files, and read archives (.gz, .zst) once; quote the pattern; may be repeated. Lines that name no service
    /// get SERVICE, or else the name of the file.
    #[arg(long, value_name = "[SERVICE=]GLOB", env = "FAULTLINE_FILES")]
    files: Vec<FilePattern>,
    /// Read lines from standard input; the server continues at its end.
    #[arg(long)]
    stdin: bool,
    /// The service of lines on standard input that name none.
    #[arg(long, value_name = "NAME", env = "FAULTLINE_STDIN_SERVICE")]
    stdin_service: Option<String>,
    /// Copy standard input to standard output, unchanged; lines that cannot be stored within five seconds are copied without
    /// being stored, and counted.
    #[arg(long, requires = "stdin")]
    tee: bool,
}

/// The running file inputs.
pub(super) struct FileInputs {
    files: Option<FileReceiver>,
}

impl FileInputArgs {
    /// Starts to read the inputs.
    pub(super) fn start(
        &self,
        directory: &Path,
        pipeline: &Pipeline,
        runtime: &Handle,
    ) -> anyhow::Result<FileInputs> {
        if self.stdin {
            let (pipeline, runtime) = (pipeline.clone(), runtime.clone());
            let stdin =
                StdinReceiver { pipeline, service: self.stdin_service.clone(), tee: self.tee, runtime };
            let read = move || stdin.run(std::io::stdin().lock(), std::io::stdout().lock());
            // The thread may wait for input forever, and ends with the process.
            drop(std::thread::Builder::new().name("stdin".to_owned()).spawn(read)?);
        }
        if self.files.is_empty() {
            return Ok(FileInputs { files: None });
        }
        let files = FileReceiver::start(self.files.clone(), directory, pipeline.clone(), runtime.clone())
            .context("cannot begin to read files")?;
        Ok(FileInputs { files: Some(files) })
    }
}

impl FileInputs {
    /// Stops reading, after the records that were read are stored.
    pub(super) async fn stop(self) {
        let stopped = tokio::task::spawn_blocking(move || self.files.map(FileReceiver::stop));
        if stopped.await.is_err() {
            tracing::error!("reading files did not end as it should");
        }
    }
}
