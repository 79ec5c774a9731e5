//! Table snapshots of one statement, each taken when the statement first reads the table.
//!
//! A table that a statement names twice must be the same both times. Otherwise one side of a self-join would see rows
//! that the other side does not.

use crate::source::DataSource;
use datafusion::common::{DataFusionError, Result};
use std::sync::Arc;
use store::Table;
use store::snapshot::{Horizon, Snapshot};
use tokio::sync::OnceCell;

/// The snapshots of the tables that one statement reads.
#[derive(Debug)]
pub(crate) struct StatementSnapshot {
    source: DataSource,
    horizon: Horizon,
    tables: [OnceCell<Arc<Snapshot>>; Table::ALL.len()],
}

impl StatementSnapshot {
    pub(super) fn new(source: DataSource, horizon: Horizon) -> Self {
        Self { source, horizon, tables: Default::default() }
    }

    /// Returns the table as this statement sees it, and takes the snapshot on the first call.
    pub(crate) async fn snapshot(&self, table: Table) -> Result<Arc<Snapshot>> {
        let take = || async {
            let (source, horizon) = (self.source.clone(), self.horizon);
            let taken = tokio::task::spawn_blocking(move || source.snapshot(table, &horizon));
            let taken = taken.await.map_err(|error| DataFusionError::External(error.into()))?;
            taken.map(Arc::new).map_err(|error| DataFusionError::External(error.into()))
        };
        self.tables[table as usize].get_or_try_init(take).await.map(Arc::clone)
    }
}
