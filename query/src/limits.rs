//! Limits on the resources of one query and of all queries together.

use classifier::LimitConstraint;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The memory of a worker process beyond that of its query: plans, file buffers and cached Parquet footers.
const WORKER_MEMORY: usize = 64 << 20;

/// Limits on the resources of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// The run time of a query. Dashboards give up much earlier, and an analyst can narrow the query down.
    pub time: Duration,
    /// The time that a query may wait in the queue before the client learns to retry.
    pub wait: Duration,
    /// The memory of one query, for sorting, joining and grouping.
    pub query_memory: usize,
    /// The memory of all queries together. When it is exceeded, the largest query is killed.
    pub memory: usize,
    /// The number of rows in a result.
    pub rows: usize,
    /// The size of a response that must be built completely before it is sent.
    pub answer_bytes: usize,
    /// The number of queries that run at once. More would only slow each other down.
    pub concurrent: usize,
    /// The length of a statement. It is limited because planning cannot be interrupted.
    pub statement_bytes: usize,
    /// The number of columns in a result, limited for the same reason.
    pub columns: usize,
    /// The number of connections to the PostgreSQL endpoint.
    pub connections: usize,
    /// The number of connections from one address. It is lower than the total, so that one client cannot use them all.
    pub connections_per_address: usize,
    /// The time after which an idle PostgreSQL session is closed. Connection pools open another.
    pub idle: Duration,
}

impl Limits {
    /// The default limits, for a server that shares one machine with other programs.
    pub const DEFAULT: Self = Self {
        time: Duration::from_secs(30),
        wait: Duration::from_secs(10),
        query_memory: 256 << 20,
        memory: 512 << 20,
        rows: 1_000_000,
        answer_bytes: 64 << 20,
        concurrent: 8,
        statement_bytes: 256 << 10,
        columns: 1_000,
        connections: 100,
        connections_per_address: 75,
        idle: Duration::from_secs(60 * 60),
    };

    /// Returns the memory limit of a worker process, which the operating system enforces. It is one and a half times the
    /// memory that the engine accounts for, because the engine does not account for everything.
    #[must_use]
    pub const fn process_memory(&self) -> usize {
        self.query_memory.saturating_add(self.query_memory / 2).saturating_add(WORKER_MEMORY)
    }

    /// Checks that the limits are consistent with each other.
    ///
    /// # Errors
    /// Returns the first relation that does not hold.
    pub const fn check(&self) -> Result<(), LimitConstraint> {
        let query = ("query_memory", self.query_memory);
        LimitConstraint::check(&[
            LimitConstraint::fits(query, ("memory", self.memory), "one query must be able to run"),
            LimitConstraint::fits(
                ("answer_bytes", self.answer_bytes),
                query,
                "a response is built in the query's memory",
            ),
            LimitConstraint::at_most(
                ("statement_bytes", self.statement_bytes),
                MAX_STATEMENT_BYTES,
                "planning cannot be interrupted",
            ),
        ])
    }
}

/// The highest value that `statement_bytes` may be set to.
const MAX_STATEMENT_BYTES: usize = 16 << 20;

const _: () = assert!(Limits::DEFAULT.check().is_ok());

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
