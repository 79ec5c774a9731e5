//! What queries may take of the machine, as it is said on the command line.

use crate::quantity;
use query::Limits;
use std::time::Duration;

/// What queries may take.
#[derive(Debug, clap::Args)]
pub(crate) struct Patience {
    /// How long a query may run.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::duration, env = "FAULTLINE_QUERY_TIME")]
    query_time: Duration,
    /// Memory of one query; all together have twice as much.
    #[arg(long, value_name = "BYTES", default_value = "256MiB", value_parser = quantity::bytes, env = "FAULTLINE_QUERY_MEMORY")]
    query_memory: u64,
    /// Rows of an answer.
    #[arg(long, value_name = "ROWS", default_value_t = Limits::DEFAULT.rows, env = "FAULTLINE_QUERY_ROWS")]
    query_rows: usize,
    /// Queries that run at once; more wait for their turn.
    #[arg(long, value_name = "QUERIES", default_value_t = Limits::DEFAULT.concurrent, env = "FAULTLINE_QUERIES")]
    queries: usize,
}

impl Patience {
    /// The limits of an engine.
    pub(crate) fn limits(&self) -> Limits {
        let query_memory = usize::try_from(self.query_memory).unwrap_or(usize::MAX);
        Limits {
            time: self.query_time,
            query_memory,
            memory: query_memory.saturating_mul(2),
            answer_bytes: Limits::DEFAULT.answer_bytes.min(query_memory),
            rows: self.query_rows,
            // None at all would be no server.
            concurrent: self.queries.max(1),
            ..Limits::DEFAULT
        }
    }
}
