//! Settings that limit the resources of queries.

use super::limits::LimitConflict;
use crate::cli::units::{ByteSize, Count, HumanDuration};
use query::Limits;

const DEFAULTS: Limits = Limits::DEFAULT;

/// The flags that bound what queries use.
#[derive(Debug, clap::Args)]
pub(crate) struct QueryLimitArgs {
    /// Longest run time of a query.
    #[arg(long, value_name = "TIME", default_value_t = HumanDuration(DEFAULTS.time), env = "FAULTLINE_QUERY_TIME")]
    query_time: HumanDuration,
    /// Memory of one query; all running queries together may use twice as much.
    #[arg(long, value_name = "BYTES", default_value_t = ByteSize(DEFAULTS.query_memory), env = "FAULTLINE_QUERY_MEMORY")]
    query_memory: ByteSize,
    /// Largest number of rows in a query result.
    #[arg(long, value_name = "ROWS", default_value_t = DEFAULTS.rows, env = "FAULTLINE_QUERY_ROWS")]
    query_rows: usize,
    /// Number of queries that run at the same time; further queries wait.
    #[arg(long, value_name = "QUERIES", default_value_t = DEFAULTS.concurrent, env = "FAULTLINE_QUERIES")]
    queries: usize,
    /// Longest time that a query waits until it can start.
    #[arg(long, value_name = "TIME", default_value_t = HumanDuration(DEFAULTS.wait), env = "FAULTLINE_QUERY_WAIT", hide_short_help = true)]
    query_wait: HumanDuration,
    /// Largest query result over HTTP, which is assembled in memory before it is sent; a larger one is truncated. Never more than query-memory.
    #[arg(long, value_name = "BYTES", default_value_t = ByteSize(DEFAULTS.answer_bytes), env = "FAULTLINE_QUERY_RESULT_BYTES", hide_short_help = true)]
    query_result_bytes: ByteSize,
    /// Largest SQL statement.
    #[arg(long, value_name = "BYTES", default_value_t = ByteSize(DEFAULTS.statement_bytes), env = "FAULTLINE_QUERY_STATEMENT_BYTES", hide_short_help = true)]
    query_statement_bytes: ByteSize,
    /// Largest number of columns in a query result.
    #[arg(long, value_name = "COUNT", default_value_t = Count(DEFAULTS.columns), env = "FAULTLINE_QUERY_COLUMNS", hide_short_help = true)]
    query_columns: Count,
    /// Number of connections to the PostgreSQL listener at the same time.
    #[arg(long, value_name = "COUNT", default_value_t = Count(DEFAULTS.connections), env = "FAULTLINE_QUERY_CONNECTIONS", hide_short_help = true)]
    query_connections: Count,
    /// Number of connections to the PostgreSQL listener at the same time from one address.
    #[arg(long, value_name = "COUNT", default_value_t = Count(DEFAULTS.connections_per_address), env = "FAULTLINE_QUERY_CONNECTIONS_PER_ADDRESS", hide_short_help = true)]
    query_connections_per_address: Count,
    /// Time after which an idle PostgreSQL session is closed.
    #[arg(long, value_name = "TIME", default_value_t = HumanDuration(DEFAULTS.idle), env = "FAULTLINE_QUERY_IDLE", hide_short_help = true)]
    query_idle: HumanDuration,
}

impl QueryLimitArgs {
    /// Returns the limits for the query engine.
    pub(crate) fn limits(&self) -> Limits {
        let query_memory = self.query_memory.0;
        Limits {
            time: self.query_time.0,
            query_memory,
            memory: query_memory.saturating_mul(2),
            answer_bytes: self.query_result_bytes.0.min(query_memory),
            rows: self.query_rows,
            // With a limit of zero, no query could ever run.
            concurrent: self.queries.max(1),
            wait: self.query_wait.0,
            statement_bytes: self.query_statement_bytes.0,
            columns: self.query_columns.0,
            connections: self.query_connections.0,
            connections_per_address: self.query_connections_per_address.0,
            idle: self.query_idle.0,
        }
    }

    /// Checks that the limits are consistent with each other.
    pub(crate) fn validate(&self) -> Result<(), LimitConflict> {
        let flag = |name: &str| match name {
            "query_memory" | "memory" => "query_memory".to_owned(),
            "answer_bytes" => "query_result_bytes".to_owned(),
            other => format!("query_{other}"),
        };
        self.limits().check().map_err(|constraint| LimitConflict::new(&constraint, flag))
    }
}
