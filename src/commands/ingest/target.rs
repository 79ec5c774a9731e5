//! The opened target of a run: a data directory that this process claims for the time of the run, or a server.

use super::Arguments;
use super::destination::server::{IngestServer, IngestUrl};
use super::destination::{Delivery, Destination};
use super::ledger::{Ledger, LedgerError};
use crate::cli::exit_code::ExitError;
use crate::cli::terminal;
use crate::client::ServerAddress;
use crate::commands::running_pipeline::RunningPipeline;
use crate::config::{paths, registry};
use anyhow::Context;
use collector::Pipeline;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::delta::MaintenanceMode;
use store::maintenance::Maintenance;
use store::{DataDirectory, DirectoryError, DirectoryLock, LockError};

/// The name of the ledger in a data directory.
const LEDGER_FILE: &str = "ingest.json";

/// An opened target.
pub(super) enum IngestTarget {
    Directory { directory: DataDirectory, pipeline: Pipeline, maintenance: Maintenance, lock: DirectoryLock },
    IngestServer { server: Option<Box<IngestServer>>, ledger: PathBuf },
}

impl IngestTarget {
    /// Opens the target that the arguments name.
    pub(super) fn open(arguments: &Arguments) -> anyhow::Result<Self> {
        match &arguments.to {
            Some(target) => Self::server(arguments, target),
            None => Self::directory(arguments),
        }
    }

    fn directory(arguments: &Arguments) -> anyhow::Result<Self> {
        let registry = registry::load(arguments.registry.as_deref())?;
        let path = paths::data_dir(arguments.data_dir.as_deref());
        let (directory, lock) =
            DataDirectory::claim(&path).map_err(|error| directory_error(&path, &error))?;
        let RunningPipeline { pipeline, maintenance, replay, .. } = RunningPipeline::new(
            &arguments.storage,
            &arguments.limits,
            registry,
            &directory,
            MaintenanceMode::CheckpointsOnly,
        )?;
        if replay.damaged > 0 || replay.unreadable_segments > 0 {
            terminal::print_note("part of the log is damaged; everything else is there. Check the disk");
        }
        Ok(Self::Directory { directory, pipeline, maintenance, lock })
    }

    fn server(arguments: &Arguments, target: &IngestUrl) -> anyhow::Result<Self> {
        let server = IngestServer::new(target, &arguments.tls, &arguments.defaults())?;
        let ledger = paths::state_dir()?.join(target.ledger_file_name());
        Ok(Self::IngestServer { server: Some(Box::new(server)), ledger })
    }

    /// Returns the delivery and the ledger of a run.
    pub(super) fn start(&mut self, arguments: &Arguments) -> anyhow::Result<(Delivery, Ledger)> {
        let give_up_after = Duration::from_secs(arguments.wait);
        let (destination, ledger) = match self {
            Self::Directory { directory, pipeline, .. } => {
                let unusable = |error: LedgerError| ExitError::data_directory(error);
                let ledger = Ledger::open(directory.path().join(LEDGER_FILE)).map_err(unusable)?;
                (Destination::Directory(pipeline.clone()), ledger)
            }
            Self::IngestServer { server, ledger } => {
                let server = server.take().context("the server is taken once")?;
                (Destination::IngestServer(server), Ledger::open(ledger.clone())?)
            }
        };
        Ok((Delivery::new(destination, arguments.defaults(), give_up_after), ledger))
    }

    /// Waits until everything that was accepted is durable and flushed, and releases the data directory.
    pub(super) fn close(self) {
        if let Self::Directory { pipeline, maintenance, lock, .. } = self {
            pipeline.close();
            maintenance.stop();
            let stats = maintenance.stats();
            if let Some(error) = stats.last_error.filter(|_| stats.is_flush_failing) {
                terminal::print_note(&format!(
                    "everything is stored, in the log; it is flushed into the tables by the next run: {error}"
                ));
            }
            drop(lock);
        }
    }
}

/// Returns the error for a directory that cannot be claimed. If a server uses it, the message suggests sending to that
/// server.
fn directory_error(path: &Path, error: &DirectoryError) -> ExitError {
    let DirectoryError::Taken(LockError::Held { .. }) = error else {
        return ExitError::data_directory(error);
    };
    let address = ServerAddress::from_endpoints_file(path, "otlp_http");
    let url =
        address.map_or_else(|| "URL, the address of its OTLP/HTTP listener".to_owned(), |at| at.to_string());
    ExitError::data_directory(format!("{error}; or send to the server that runs there, with --to {url}"))
}
