//! Makes every query yield to the scheduler, whatever operators it runs.
//!
//! DataFusion's leaf operators yield regularly, but an operator that produces many rows from few can run for hours
//! without polling a leaf. Such a query could not be cancelled and would block its thread, so these operators yield too.

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use std::sync::Arc;

/// The operators that produce many rows from few.
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

/// An optimizer rule that wraps every operator that produces many rows from few in one that yields.
#[derive(Debug)]
pub(super) struct CooperativeYield;

impl PhysicalOptimizerRule for CooperativeYield {
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
        "cooperative_yield"
    }

    fn schema_check(&self) -> bool {
        true
    }
}
