//! One Delta table: opening it, and committing to it.
//!
//! Invariants:
//! - There is one commit at a time. It happens completely or not at all, and is durable when the call returns
//!   (`object_store`).
//! - **The WAL's watermark is committed with the rows**: a commit of flushed rows carries, as the application
//!   transaction, the highest WAL sequence that is in the table from then on. It is read before flushing; records that
//!   it covers are not flushed again.
//! - A commit that fails may still have happened. So none of its files is deleted before the table has been loaded
//!   again and checked.
//! - `deltalake` writes no checkpoints and cleans nothing up; `checkpoint` does both, durably.

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

/// The application name of the watermark transactions.
pub(super) const APPLICATION: &str = "faultline";

/// The changes of a commit.
#[derive(Debug, Default)]
pub(super) struct Change {
    pub(super) added: Vec<DataFile>,
    pub(super) removed: Vec<Arc<DataFile>>,
    /// The new watermark, when rows were flushed.
    pub(super) flushed: Option<u64>,
    /// True if rows are only moved from file to file.
    pub(super) is_rearrangement: bool,
}

/// One Delta table of the store.
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
    /// The time when the folder was last searched for files that no commit names, in milliseconds since 1970.
    swept_ms: AtomicI64,
}

#[derive(Debug)]
struct State {
    delta: DeltaTable,
    /// True if a commit failed and it is not known whether it happened.
    is_doubtful: bool,
    /// Files that were removed from the table and may still be on disk.
    removed: HashMap<String, Removed>,
    /// The version of the newest checkpoint, as far as this process knows.
    checkpointed: Option<u64>,
}

/// A file that was removed from its table.
#[derive(Debug, Clone, Copy)]
pub(super) struct Removed {
    /// The time of the removal, in milliseconds since 1970.
    pub(super) at_ms: i64,
    /// True if a checkpoint includes the removal.
    pub(super) is_checkpointed: bool,
}

impl StoredTable {
    /// Opens a table whose log was checked, and creates it if it does not exist.
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

    /// Returns the version that readers see now.
    pub(super) fn files(&self) -> Arc<Files> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits a change. When this returns, it is durable and readers see it.
    ///
    /// # Errors
    /// Fails when the commit did not happen. If the disk cannot be read either, it may have happened; that is found out
    /// before the next commit.
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
            // They are removed only now, because the table was loaded again and does not name them.
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

    /// Finds out whether a failed commit happened, if there was one. It must be called before the watermark is read.
    pub(super) fn settle(&self) -> Result<(), DeltaError> {
        self.resolve(&mut self.state())
    }

    /// Removes files that no commit names. Files that cannot be removed now are removed by `vacuum`.
    pub(super) fn discard(&self, files: &[DataFile]) {
        for file in files {
            drop(self.disk.remove(&self.root.join(&file.path)));
        }
    }

    /// Finds out whether a failed commit happened.
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
        // The commit may exist without being durable yet.
        self.disk.sync_dir(&self.root.join(LOG)).map_err(DeltaError::Disk)?;
        *state = State { delta, is_doubtful: false, removed, checkpointed: None };
        self.show(files);
        Ok(())
    }

    /// Returns true if the table already includes this change. File names are never reused, so one file is enough to
    /// tell.
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

    /// Returns the files that this process may be reading, or may be about to read.
    pub(super) fn held_paths(&self) -> HashSet<String> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let held: Vec<Arc<Files>> = shown.iter().filter_map(Weak::upgrade).chain([self.files()]).collect();
        held.iter().flat_map(|files| &files.files).map(|file| file.path.clone()).collect()
    }

    /// Returns the files that were removed from the table and may still be on disk.
    pub(super) fn removed(&self) -> HashMap<String, Removed> {
        self.state().removed.clone()
    }

    /// Records that a checkpoint of the current version has become durable.
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

    /// Forgets removed files that no longer exist on disk.
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

    /// Works on the table's log while no commit can happen.
    pub(super) fn with_log<T>(
        &self,
        work: impl AsyncFnOnce(&DeltaTable) -> Result<T, DeltaTableError>,
    ) -> Result<T, DeltaError> {
        let mut state = self.state();
        self.resolve(&mut state)?;
        Ok(self.runtime.block_on(work(&state.delta))?)
    }
}

/// The folder of the Delta log.
pub(super) const LOG: &str = "_delta_log";

/// Returns the log store of a table. The table's folder is the root of the store, so its name does not matter.
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

/// Makes one attempt to commit. Nobody else writes, so an existing version is a doubtful commit of this process.
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
