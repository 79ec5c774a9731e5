//! One Delta table: opening it, and committing to it.
//!
//! What always holds:
//! - One commit at a time, each whole or not at all, and durable when it is answered (`object_store`).
//! - **The log's watermark goes with the rows**: a commit of flushed rows carries, as the application transaction, the
//!   highest sequence of the log that is in the table from then on. It is read before flushing; what it covers is
//!   not flushed again.
//! - A commit that fails may have happened. So nothing that it names is deleted; the table is loaded anew, and looked
//!   at.
//! - `deltalake` writes no checkpoint and cleans nothing up: that is done by us, durably, in `checkpoint`.

use super::files::{DataFile, Files};
use super::layout;
use super::object_store::FolderStore;
use super::{DeltaError, schema_evolution};
use crate::disk::Disk;
use crate::schema::Table;
use deltalake_core::kernel::transaction::{CommitBuilder, CommitProperties};
use deltalake_core::kernel::{Action, Transaction};
use deltalake_core::logstore::{LogStoreRef, StorageConfig, logstore_with};
use deltalake_core::operations::create::CreateBuilder;
use deltalake_core::protocol::{DeltaOperation, SaveMode};
use deltalake_core::{DeltaTable, DeltaTableError, ensure_table_uri};
use futures_util::StreamExt;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use tokio::runtime::Handle;

/// The interval at which a table's folder is searched for files that no commit names.
const SWEEP_MS: i64 = 60 * 60 * 1000;

/// Whose transactions these are.
pub(super) const APPLICATION: &str = "faultline";

/// The changes of a commit.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) added: Vec<DataFile>,
    pub(super) removed: Vec<Arc<DataFile>>,
    /// The new watermark, when rows were flushed.
    pub(super) flushed: Option<u64>,
    /// Rows are only moved from file to file.
    pub(super) is_rearrangement: bool,
}

/// One Delta table of ours.
#[derive(Debug)]
pub(super) struct StoredTable {
    pub(super) table: Table,
    pub(super) disk: Arc<dyn Disk>,
    pub(super) root: PathBuf,
    runtime: Handle,
    state: Mutex<State>,
    /// The version that readers see.
    current: RwLock<Arc<Files>>,
    /// Versions that readers have seen, and may still be reading.
    shown: Mutex<Vec<Weak<Files>>>,
    /// When the folder was last looked through for files that no commit names, in milliseconds since 1970.
    swept_ms: AtomicI64,
}

#[derive(Debug)]
struct State {
    delta: DeltaTable,
    /// A commit failed, and it is not known whether it happened.
    is_doubtful: bool,
    /// Files that were taken out of the table, as far as they may still be on disk.
    removed: HashMap<String, Removed>,
    /// The version of the newest checkpoint, as far as this process knows.
    checkpointed: Option<u64>,
}

/// A file that was taken out of its table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Removed {
    /// When, in milliseconds since 1970.
    pub(super) at_ms: i64,
    /// A checkpoint says so, too.
    pub(super) is_checkpointed: bool,
}

impl StoredTable {
    /// Opens a table whose log was looked through; makes it if it is not there.
    pub(super) fn open(
        table: Table,
        disk: Arc<dyn Disk>,
        root: &Path,
        runtime: Handle,
    ) -> Result<Self, DeltaError> {
        let store = log_store(&disk, root)?;
        let (delta, files, removed) = runtime.block_on(async {
            let mut delta = DeltaTable::new(Arc::clone(&store));
            if !delta.verify_deltatable_existence().await? {
                create(table, Arc::clone(&store)).await?;
            }
            delta.load().await?;
            if let Some(metadata) = schema_evolution::new_columns(table, delta.snapshot()?)? {
                commit(&delta, vec![Action::Metadata(metadata)], None, schema_evolution::operation(table)?)
                    .await?;
                delta.update_state().await?;
            }
            let files = files(table, &delta).await?;
            Ok::<_, DeltaTableError>((delta.clone(), files, tombstones(&delta).await?))
        })?;
        let state = Mutex::new(State { delta, is_doubtful: false, removed, checkpointed: None });
        let (root, current, shown) = (root.to_owned(), RwLock::new(Arc::new(files)), Mutex::default());
        Ok(Self { table, disk, root, runtime, state, current, shown, swept_ms: AtomicI64::new(0) })
    }

    /// The table as readers see it now.
    pub(super) fn files(&self) -> Arc<Files> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits a change. When this returns, it is durable and readers see it.
    ///
    /// # Errors
    /// It did not happen; or, when the disk cannot be read any more either, that is not known, and is found out before
    /// the next commit.
    pub(super) fn commit(&self, change: &Change, now_ms: i64) -> Result<(), DeltaError> {
        let mut state = self.state();
        self.resolve(&mut state)?;
        if self.has_happened(change) {
            return Ok(());
        }
        let mut actions: Vec<Action> =
            change.added.iter().map(|file| file.add(!change.is_rearrangement)).collect();
        actions.extend(change.removed.iter().map(|file| file.remove(!change.is_rearrangement, now_ms)));
        let committed = self.runtime.block_on(async {
            commit(&state.delta, actions, change.flushed, operation(change)).await?;
            state.delta.update_state().await
        });
        if let Err(error) = committed {
            tracing::warn!(table = self.table.name(), %error, "a commit failed; looking whether it happened");
            state.is_doubtful = true;
            self.resolve(&mut state)?;
            if self.has_happened(change) {
                return Ok(());
            }
            // Only now, when the table was read anew and does not name them.
            self.discard(&change.added);
            return Err(error.into());
        }
        let removed = Removed { at_ms: now_ms, is_checkpointed: false };
        state.removed.extend(change.removed.iter().map(|file| (file.path.clone(), removed)));
        let version = state.delta.version().unwrap_or_default();
        let before = self.files();
        let is_kept = |file: &&Arc<DataFile>| !change.removed.iter().any(|gone| gone.path == file.path);
        let mut files: Vec<_> = before.files.iter().filter(is_kept).cloned().collect();
        files.extend(change.added.iter().cloned().map(Arc::new));
        let flushed = change.flushed.unwrap_or(before.flushed);
        self.show(Files { table: self.table, version, flushed, files });
        Ok(())
    }

    /// Finds out what became of a commit that failed, if one did. To be called before the watermark is read.
    pub(super) fn settle(&self) -> Result<(), DeltaError> {
        self.resolve(&mut self.state())
    }

    /// Removes files that no commit names. What cannot be removed now is removed by `vacuum`.
    pub(super) fn discard(&self, files: &[DataFile]) {
        for file in files {
            drop(self.disk.remove(&self.root.join(&file.path)));
        }
    }

    /// Finds out what became of a commit that failed.
    fn resolve(&self, state: &mut State) -> Result<(), DeltaError> {
        if !state.is_doubtful {
            return Ok(());
        }
        let store = log_store(&self.disk, &self.root)?;
        let (delta, files, removed) = self.runtime.block_on(async {
            let mut delta = DeltaTable::new(store);
            delta.load().await?;
            let files = files(self.table, &delta).await?;
            let removed = tombstones(&delta).await?;
            Ok::<_, DeltaTableError>((delta, files, removed))
        })?;
        // It may be there and yet not be durable.
        self.disk.sync_dir(&self.root.join(LOG)).map_err(DeltaError::Disk)?;
        *state = State { delta, is_doubtful: false, removed, checkpointed: None };
        self.show(files);
        Ok(())
    }

    /// Whether the table shows this change already. File names are never used twice, so one tells for all.
    fn has_happened(&self, change: &Change) -> bool {
        let files = self.files();
        let is_there = |path: &str| files.files.iter().any(|file| file.path == path);
        match (change.added.first(), change.removed.first()) {
            (Some(added), _) => is_there(&added.path),
            (None, Some(removed)) => !is_there(&removed.path),
            (None, None) => true,
        }
    }

    fn show(&self, files: Files) {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *current, Arc::new(files));
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.retain(|files| files.strong_count() > 0);
        shown.push(Arc::downgrade(&before));
    }

    /// The files that somebody in this process may be reading, or be about to.
    pub(super) fn held_paths(&self) -> HashSet<String> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let held: Vec<Arc<Files>> = shown.iter().filter_map(Weak::upgrade).chain([self.files()]).collect();
        held.iter().flat_map(|files| &files.files).map(|file| file.path.clone()).collect()
    }

    /// Files that were taken out of the table, as far as they may still be on disk.
    pub(super) fn removed(&self) -> HashMap<String, Removed> {
        self.state().removed.clone()
    }

    /// A checkpoint of the table as it is has become durable.
    pub(super) fn is_checkpointed(&self) {
        let mut state = self.state();
        let version = state.delta.version();
        state.checkpointed = version;
        for removed in state.removed.values_mut() {
            removed.is_checkpointed = true;
        }
    }

    /// Returns the number of commits since the newest checkpoint.
    pub(super) fn since_checkpoint(&self) -> u64 {
        let state = self.state();
        let version = state.delta.version().unwrap_or_default();
        version - state.checkpointed.unwrap_or_default().min(version)
    }

    /// Forgets files that were taken out of the table and are gone from the disk.
    pub(super) fn forget_removed(&self, is_gone: impl Fn(&str, &Removed) -> bool) {
        self.state().removed.retain(|path, removed| !is_gone(path, removed));
    }

    /// Returns true when it is time to search the folder for files that no commit names; the caller must then do it.
    pub(super) fn sweep_is_due(&self, now_ms: i64) -> bool {
        let is_due = now_ms - self.swept_ms.load(Ordering::Relaxed) >= SWEEP_MS;
        if is_due {
            self.swept_ms.store(now_ms, Ordering::Relaxed);
        }
        is_due
    }

    /// Does something to the table's log while nobody commits.
    pub(super) fn with_log<T>(
        &self,
        work: impl AsyncFnOnce(&DeltaTable) -> Result<T, DeltaTableError>,
    ) -> Result<T, DeltaError> {
        let mut state = self.state();
        self.resolve(&mut state)?;
        Ok(self.runtime.block_on(work(&state.delta))?)
    }
}

/// The folder of a table's log.
pub(super) const LOG: &str = "_delta_log";

/// The log of a table in a folder. The folder is the root of its store, whatever it is called on the machine.
pub(super) fn log_store(disk: &Arc<dyn Disk>, root: &Path) -> Result<LogStoreRef, DeltaTableError> {
    let store = Arc::new(FolderStore::new(Arc::clone(disk), root));
    logstore_with(store, &ensure_table_uri("memory:///")?, StorageConfig::default())
}

async fn create(table: Table, store: LogStoreRef) -> Result<(), DeltaTableError> {
    let quiet =
        CommitProperties::default().with_create_checkpoint(false).with_cleanup_expired_logs(Some(false));
    let created = CreateBuilder::new()
        .with_log_store(store)
        .with_table_name(table.name())
        .with_comment(table.about())
        .with_columns(schema_evolution::columns(table)?)
        .with_partition_columns([layout::PARTITION])
        .with_configuration(schema_evolution::configuration(table))
        .with_save_mode(SaveMode::ErrorIfExists)
        .with_commit_properties(quiet);
    created.await.map(drop)
}

/// One attempt: nobody else writes, so a version that exists already is a commit of ours in doubt.
async fn commit(
    delta: &DeltaTable,
    actions: Vec<Action>,
    flushed: Option<u64>,
    operation: DeltaOperation,
) -> Result<(), DeltaTableError> {
    let transaction =
        flushed.map(|flushed| Action::Txn(Transaction::new(APPLICATION, flushed.cast_signed())));
    let actions = actions.into_iter().chain(transaction).collect();
    let prepared = CommitBuilder::default().with_actions(actions).with_max_retries(0);
    prepared
        .build(Some(delta.snapshot()?), delta.log_store(), operation)
        .into_prepared_commit_future()
        .await?
        .await
        .map(drop)
}

fn operation(change: &Change) -> DeltaOperation {
    if change.is_rearrangement {
        DeltaOperation::Optimize { predicate: None, target_size: 0 }
    } else if change.added.is_empty() {
        DeltaOperation::Delete { predicate: None }
    } else {
        let partition_by = Some(vec![layout::PARTITION.to_owned()]);
        DeltaOperation::Write { mode: SaveMode::Append, partition_by, predicate: None }
    }
}

/// Returns the files of a loaded table.
pub(super) async fn files(table: Table, delta: &DeltaTable) -> Result<Files, DeltaTableError> {
    let state = delta.snapshot()?;
    let flushed = state.transaction_version(&*delta.log_store(), APPLICATION).await?;
    Ok(Files {
        table,
        version: state.version(),
        flushed: flushed.map_or(0, i64::unsigned_abs),
        files: state.log_data().iter().map(|view| Arc::new(DataFile::of_log(&view))).collect(),
    })
}

/// Returns the removed files that the table's log still names.
async fn tombstones(delta: &DeltaTable) -> Result<HashMap<String, Removed>, DeltaTableError> {
    let store = delta.log_store();
    let mut stream = delta.snapshot()?.all_tombstones(&*store);
    let mut removed = HashMap::new();
    while let Some(tombstone) = stream.next().await {
        let tombstone = tombstone?;
        let at_ms = tombstone.deletion_timestamp().unwrap_or_default();
        removed.insert(tombstone.path().into_owned(), Removed { at_ms, is_checkpointed: false });
    }
    Ok(removed)
}
