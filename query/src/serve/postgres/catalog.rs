//! What PostgreSQL clients ask about tables, columns and the server itself. Registered once, for all doors.

use crate::engine::CATALOG;
use datafusion::common::{DataFusionError, Result};
use datafusion::prelude::SessionContext;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::setup_pg_catalog;

/// Adds the catalog to a session.
pub(crate) fn register(context: &SessionContext) -> Result<()> {
    setup_pg_catalog(context, CATALOG, EmptyContextProvider).map_err(|error| -> DataFusionError { *error })
}
