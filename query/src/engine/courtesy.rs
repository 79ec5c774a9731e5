//! Queries let others have their turn, whatever they do.
//!
//! The engine's leaves yield now and then, but an operator that makes many rows of few can go on for hours without
//! asking a leaf for more; then nothing can stop it, and nobody else gets the thread. So each of those yields too.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use std::sync::Arc;

/// The operators that make many rows of few.
const MULTIPLIERS: [&str; 8] = [
    "CrossJoinExec",
    "HashJoinExec",
    "NestedLoopJoinExec",
    "PiecewiseMergeJoinExec",
    "RecursiveQueryExec",
    "SortMergeJoinExec",
    "SymmetricHashJoinExec",
    "UnnestExec",
];

/// Puts a yield above every operator that makes many rows of few.
#[derive(Debug)]
pub(super) struct Courtesy;

impl PhysicalOptimizerRule for Courtesy {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|plan| {
            Ok(if MULTIPLIERS.contains(&plan.name()) {
                Transformed::yes(Arc::new(CooperativeExec::new(plan)) as _)
            } else {
                Transformed::no(plan)
            })
        })
        .data()
    }

    fn name(&self) -> &'static str {
        "courtesy"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
