//! What is read without anybody sending it: log files, and standard input.
//!
//! What always holds: files are read no more when the pipeline is closed, and how far they were read is written down.

use anyhow::Context;
use collector::Pipeline;
use collector::receive::files::{Files, Watch};
use collector::receive::stdin::Stdin;
use std::path::Path;
use tokio::runtime::Handle;

/// What to read.
#[derive(Debug, clap::Args)]
pub(super) struct Read {
    /// Read these log files as they grow and rotate, and archives (.gz, .zst) once; quoted, may be repeated. With SERVICE=
    /// lines that name no service are of that one, otherwise of the file's name.
    #[arg(long, value_name = "[SERVICE=]GLOB", env = "FAULTLINE_FILES")]
    files: Vec<Watch>,
    /// Take lines from standard input; at its end the server goes on.
    #[arg(long)]
    stdin: bool,
    /// The service of lines of standard input that name none.
    #[arg(long, value_name = "NAME", env = "FAULTLINE_STDIN_SERVICE")]
    stdin_service: Option<String>,
    /// Pass standard input on to standard output, unchanged; when there is no room for five seconds, lines are passed on
    /// without being stored, and counted.
    #[arg(long, requires = "stdin")]
    tee: bool,
}

/// What is being read.
pub(super) struct Reading {
    files: Option<Files>,
}

impl Read {
    /// Begins.
    pub(super) fn start(
        &self,
        directory: &Path,
        pipeline: &Pipeline,
        runtime: &Handle,
    ) -> anyhow::Result<Reading> {
        if self.stdin {
            let (pipeline, runtime) = (pipeline.clone(), runtime.clone());
            let stdin = Stdin { pipeline, service: self.stdin_service.clone(), tee: self.tee, runtime };
            let read = move || stdin.run(std::io::stdin().lock(), std::io::stdout().lock());
            // It may wait for its input for ever, and ends with the process.
            drop(std::thread::Builder::new().name("stdin".to_owned()).spawn(read)?);
        }
        if self.files.is_empty() {
            return Ok(Reading { files: None });
        }
        let files = Files::start(self.files.clone(), directory, pipeline.clone(), runtime.clone())
            .context("cannot begin to read files")?;
        Ok(Reading { files: Some(files) })
    }
}

impl Reading {
    /// Ends, with what is on its way stored.
    pub(super) async fn stop(self) {
        let stopped = tokio::task::spawn_blocking(move || self.files.map(Files::stop));
        if stopped.await.is_err() {
            tracing::error!("reading files did not end as it should");
        }
    }
}
