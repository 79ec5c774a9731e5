//! What queries may take of the machine, as it is said on the command line.

use crate::limits::Conflict;
use crate::quantity::{Bytes, Count, Time};
use query::Limits;

const DEFAULT: Limits = Limits::DEFAULT;

/// What queries may take.
#[derive(Debug, clap::Args)]
pub(crate) struct Patience {
    /// How long a query may run.
    #[arg(long, value_name = "TIME", default_value_t = Time(DEFAULT.time), env = "FAULTLINE_QUERY_TIME")]
    query_time: Time,
    /// Memory of one query; all together have twice as much.
    #[arg(long, value_name = "BYTES", default_value_t = Bytes(DEFAULT.query_memory), env = "FAULTLINE_QUERY_MEMORY")]
    query_memory: Bytes,
    /// Rows of an answer.
    #[arg(long, value_name = "ROWS", default_value_t = DEFAULT.rows, env = "FAULTLINE_QUERY_ROWS")]
    query_rows: usize,
    /// Queries that run at once; more wait for their turn.
    #[arg(long, value_name = "QUERIES", default_value_t = DEFAULT.concurrent, env = "FAULTLINE_QUERIES")]
    queries: usize,
    /// How long a query waits for its turn.
    #[arg(long, value_name = "TIME", default_value_t = Time(DEFAULT.wait), env = "FAULTLINE_QUERY_WAIT", hide_short_help = true)]
    query_wait: Time,
    /// An answer over HTTP, which is put together before it is sent; what is more is cut. Never more than query-memory.
    #[arg(long, value_name = "BYTES", default_value_t = Bytes(DEFAULT.answer_bytes), env = "FAULTLINE_QUERY_ANSWER_BYTES", hide_short_help = true)]
    query_answer_bytes: Bytes,
    /// A statement.
    #[arg(long, value_name = "BYTES", default_value_t = Bytes(DEFAULT.statement_bytes), env = "FAULTLINE_QUERY_STATEMENT_BYTES", hide_short_help = true)]
    query_statement_bytes: Bytes,
    /// Columns of an answer.
    #[arg(long, value_name = "COUNT", default_value_t = Count(DEFAULT.columns), env = "FAULTLINE_QUERY_COLUMNS", hide_short_help = true)]
    query_columns: Count,
    /// Connections to the PostgreSQL listener.
    #[arg(long, value_name = "COUNT", default_value_t = Count(DEFAULT.connections), env = "FAULTLINE_QUERY_CONNECTIONS", hide_short_help = true)]
    query_connections: Count,
    /// Connections to the PostgreSQL listener of one address.
    #[arg(long, value_name = "COUNT", default_value_t = Count(DEFAULT.connections_per_address), env = "FAULTLINE_QUERY_CONNECTIONS_PER_ADDRESS", hide_short_help = true)]
    query_connections_per_address: Count,
    /// How long a PostgreSQL session may be idle before it is ended.
    #[arg(long, value_name = "TIME", default_value_t = Time(DEFAULT.idle), env = "FAULTLINE_QUERY_IDLE", hide_short_help = true)]
    query_idle: Time,
}

impl Patience {
    /// The limits of an engine.
    pub(crate) fn limits(&self) -> Limits {
        let query_memory = self.query_memory.0;
        Limits {
            time: self.query_time.0,
            query_memory,
            memory: query_memory.saturating_mul(2),
            answer_bytes: self.query_answer_bytes.0.min(query_memory),
            rows: self.query_rows,
            // None at all would be no server.
            concurrent: self.queries.max(1),
            wait: self.query_wait.0,
            statement_bytes: self.query_statement_bytes.0,
            columns: self.query_columns.0,
            connections: self.query_connections.0,
            connections_per_address: self.query_connections_per_address.0,
            idle: self.query_idle.0,
        }
    }

    /// Whether they fit together.
    pub(crate) fn check(&self) -> Result<(), Conflict> {
        let flag = |name: &str| match name {
            "query_memory" | "memory" => "query_memory".to_owned(),
            other => format!("query_{other}"),
        };
        self.limits().check().map_err(|relation| Conflict::of(&relation, flag))
    }
}
