//! The words of the domain, as functions: what a code means, what a message has in common with others, time in steps.
//!
//! Each is documented where it is made, and `information_schema.routines` shows that. Those of the engine that build
//! something as large as they are told to are `bounded` here: what they build is counted by no memory limit.

mod bounded;
mod checked;
mod codes;
mod date_trunc;
mod histogram_quantile;
mod template;
mod text;
mod time_bucket;

use classifier::Rules;
use datafusion::common::Result;
use datafusion::logical_expr::{DocSection, Documentation, ScalarUDF};
use datafusion::prelude::SessionContext;
use std::sync::Arc;

/// The section of the documentation that lists our own functions.
const SECTION: DocSection =
    DocSection { include: true, label: "Faultline", description: Some("The words of the error history") };

/// Adds our functions to a session.
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

/// The functions that no other engine has, in the order in which documentation shows them.
pub fn own(rules: &Arc<Rules>) -> [ScalarUDF; 5] {
    [
        ScalarUDF::from(codes::Category::new(rules)),
        ScalarUDF::from(codes::Canonical::new(rules)),
        ScalarUDF::from(template::Template::new()),
        ScalarUDF::from(time_bucket::TimeBucket::new()),
        ScalarUDF::from(histogram_quantile::HistogramQuantile::new()),
    ]
}

fn documentation(about: &str, syntax: &str, arguments: &[(&str, &str)]) -> Documentation {
    let documentation = Documentation::builder(SECTION, about, syntax);
    arguments.iter().fold(documentation, |all, (name, about)| all.with_argument(*name, *about)).build()
}
