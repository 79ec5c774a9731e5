//! The words of the domain, as functions: what a code means, what a message has in common with others, time in steps.

mod date_trunc;

use datafusion::common::Result;
use datafusion::prelude::SessionContext;
use std::sync::Arc;
use taxonomy::Rules;

/// Adds our functions to a session.
pub(crate) fn register(context: &SessionContext, _rules: &Arc<Rules>) -> Result<()> {
    context.register_udf(date_trunc::function());
    let mut context = context.clone();
    datafusion_functions_json::register_all(&mut context)
}
