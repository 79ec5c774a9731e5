//! SQL functions for error data, such as `category(code)`, `template(message)` and `time_bucket(step, time)`.
//!
//! Each function is documented where it is defined, and `information_schema.routines` shows that documentation. The
//! module `bounded` limits the engine's functions that build results of a size that their arguments state, because no
//! memory limit covers such results.

mod bounded;
mod checked;
mod codes;
mod date_trunc;
mod histogram_quantile;
mod template;
mod text;
mod time_bucket;
pub(crate) mod udf;

use classifier::Rules;
use datafusion::common::Result;
use datafusion::logical_expr::{DocSection, Documentation, ScalarUDF};
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// The section of the documentation that lists the functions of Faultline.
const SECTION: DocSection =
    DocSection { include: true, label: "Faultline", description: Some("The words of the error history") };

/// Adds the functions of Faultline to a session.
pub(crate) fn register(context: &SessionContext, rules: &Arc<Rules>) -> Result<()> {
    for function in own(rules) {
        context.register_udf(function);
    }
    context.register_udf(date_trunc::function());
    context.register_udaf(checked::sum());
    let mut context = context.clone();
    bounded::register(&mut context)?;
    datafusion_functions_json::register_all(&mut context)
}

/// Returns the functions that no other engine has, in the order in which the documentation shows them.
pub fn own(rules: &Arc<Rules>) -> [ScalarUDF; 5] {
    [
        codes::category(rules),
        codes::canonical(rules),
        template::function(),
        ScalarUDF::from(time_bucket::TimeBucket::new()),
        histogram_quantile::function(),
    ]
}

fn documentation(about: &str, syntax: &str, arguments: &[(&str, &str)]) -> Documentation {
    let documentation = Documentation::builder(SECTION, about, syntax);
    arguments.iter().fold(documentation, |all, (name, about)| all.with_argument(*name, *about)).build()
}
