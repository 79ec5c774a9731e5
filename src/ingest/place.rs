//! The place that is ingested into, opened: a data directory of our own for as long as it takes, or a server.

use super::Arguments;
use super::destination::server::{Server, Target};
use super::destination::{Delivery, Destination};
use super::ledger::{Ledger, LedgerError};
use crate::client::Address;
use crate::opened::Opened;
use crate::refused::Refused;
use crate::{places, registry, terminal};
use anyhow::Context;
use collector::Pipeline;
use std::path::{Path, PathBuf};
use std::time::Duration;
use store::keeper::Keeper;
use store::lake::Maintenance;
use store::{DataDirectory, DirectoryError, DirectoryLock, LockError};

/// The ledger's name in a data directory.
const LEDGER: &str = "ingest.json";

/// An opened place.
pub(super) enum Place {
    Directory { directory: DataDirectory, pipeline: Pipeline, keeper: Keeper, lock: DirectoryLock },
    Server { server: Option<Box<Server>>, ledger: PathBuf },
}

impl Place {
    /// Opens the place that the arguments name.
    pub(super) fn open(arguments: &Arguments) -> anyhow::Result<Self> {
        match &arguments.to {
            Some(target) => Self::server(arguments, target),
            None => Self::directory(arguments),
        }
    }

    fn directory(arguments: &Arguments) -> anyhow::Result<Self> {
        let registry = registry::load(arguments.registry.as_deref())?;
        let path = places::data_dir(arguments.data_dir.as_deref());
        let (directory, lock) = DataDirectory::claim(&path).map_err(|error| taken(&path, &error))?;
        let Opened { pipeline, keeper, replay, .. } = Opened::new(
            &arguments.room,
            &arguments.limits,
            registry,
            &directory,
            Maintenance::CheckpointsOnly,
        )?;
        if replay.damaged > 0 || replay.unreadable_segments > 0 {
            terminal::note("part of the log is damaged; everything else is there. Check the disk");
        }
        Ok(Self::Directory { directory, pipeline, keeper, lock })
    }

    fn server(arguments: &Arguments, target: &Target) -> anyhow::Result<Self> {
        let server = Server::new(target, &arguments.trust, &arguments.defaults())?;
        let ledger = places::state_folder()?.join(target.file_name());
        Ok(Self::Server { server: Some(Box::new(server)), ledger })
    }

    /// What a run works with.
    pub(super) fn take(&mut self, arguments: &Arguments) -> anyhow::Result<(Delivery, Ledger)> {
        let patience = Duration::from_secs(arguments.wait);
        let (destination, ledger) = match self {
            Self::Directory { directory, pipeline, .. } => {
                let refuse = |error: LedgerError| Refused::directory(error);
                let ledger = Ledger::open(directory.path().join(LEDGER)).map_err(refuse)?;
                (Destination::Directory(pipeline.clone()), ledger)
            }
            Self::Server { server, ledger } => {
                let server = server.take().context("a place is taken once")?;
                (Destination::Server(server), Ledger::open(ledger.clone())?)
            }
        };
        Ok((Delivery::new(destination, arguments.defaults(), patience), ledger))
    }

    /// Waits until everything that was taken is durable and sealed, and gives the place back.
    pub(super) fn close(self) {
        if let Self::Directory { pipeline, keeper, lock, .. } = self {
            pipeline.close();
            keeper.stop();
            let stats = keeper.stats();
            if let Some(error) = stats.last_error.filter(|_| stats.is_seal_failing) {
                terminal::note(&format!(
                    "everything is stored, in the log; it is sealed into the tables by the next run: {error}"
                ));
            }
            drop(lock);
        }
    }
}

/// Why a directory cannot be had; a server that has it can take files, too.
fn taken(path: &Path, error: &DirectoryError) -> Refused {
    let DirectoryError::Taken(LockError::Held { .. }) = error else { return Refused::directory(error) };
    let address = Address::of_endpoint(path, "otlp_http");
    let url =
        address.map_or_else(|| "URL, the address of its OTLP/HTTP listener".to_owned(), |at| at.to_string());
    Refused::directory(format!("{error}; or send to the server that runs there, with --to {url}"))
}
