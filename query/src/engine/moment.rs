//! The tables of one statement, each as it was when the statement first looked at it.
//!
//! A table that a statement names twice must be the same both times, or a self-join would see rows that its other side
//! does not.

use crate::source::Source;
use datafusion::common::{DataFusionError, Result};
use std::sync::Arc;
use store::Table;
use store::snapshot::{Horizon, Snapshot};
use tokio::sync::OnceCell;

/// The tables of one statement.
#[derive(Debug)]
pub(crate) struct Moment {
    source: Source,
    horizon: Horizon,
    tables: [OnceCell<Arc<Snapshot>>; Table::ALL.len()],
}

impl Moment {
    pub(super) fn new(source: Source, horizon: Horizon) -> Self {
        Self { source, horizon, tables: Default::default() }
    }

    /// The table as this statement sees it.
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
