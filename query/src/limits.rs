//! What one query, and all of them together, may take of the machine.

use serde::{Deserialize, Serialize};
use std::time::Duration;
use taxonomy::Relation;

/// Memory of a worker process beside what its query may take: plans, buffers of files, footers that are kept.
const WORKER_MEMORY: usize = 64 << 20;

/// What queries may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How long a query may run: a dashboard has given up long before, and an analyst can narrow it down.
    pub time: Duration,
    /// How long a query waits for its turn before the client is told to come back.
    pub wait: Duration,
    /// Memory of one query, for what it sorts, joins and groups.
    pub query_memory: usize,
    /// Memory of all queries together; past it the largest is ended.
    pub memory: usize,
    /// Rows of an answer.
    pub rows: usize,
    /// Bytes of an answer that has to be put together before it is sent.
    pub answer_bytes: usize,
    /// Queries that run at once: more would only slow each other down.
    pub concurrent: usize,
    /// The length of a statement: planning takes time that cannot be interrupted.
    pub statement_bytes: usize,
    /// Columns of an answer, for the same reason.
    pub columns: usize,
    /// Connections to the PostgreSQL door.
    pub connections: usize,
    /// Those of one address: a part of all, so that no client can take them from the others.
    pub connections_per_address: usize,
    /// A PostgreSQL session that asks nothing for this long is ended; pools of connections open another.
    pub idle: Duration,
}

impl Limits {
    /// What serves one machine.
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

    /// What the process of one query may take, enforced by the operating system: half as much again as the engine
    /// accounts for, since it does not account for everything.
    #[must_use]
    pub const fn process_memory(&self) -> usize {
        self.query_memory.saturating_add(self.query_memory / 2).saturating_add(WORKER_MEMORY)
    }

    /// Whether the bounds fit together.
    ///
    /// # Errors
    /// The first relation that does not hold.
    pub const fn check(&self) -> Result<(), Relation> {
        let query = ("query_memory", self.query_memory);
        Relation::check(&[
            Relation::fits(query, ("memory", self.memory), "one query must be able to run"),
            Relation::fits(
                ("answer_bytes", self.answer_bytes),
                query,
                "an answer is put together in the query's memory",
            ),
            Relation::at_most(
                ("statement_bytes", self.statement_bytes),
                LONGEST,
                "planning takes time that cannot be interrupted",
            ),
        ])
    }
}

/// No statement can be allowed to be longer.
const LONGEST: usize = 16 << 20;

const _: () = assert!(Limits::DEFAULT.check().is_ok());

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
