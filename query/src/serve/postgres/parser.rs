//! Parses the text of a message into commands.
//!
//! A text is parsed in two processes. The server parses it to find the commands of the session, and to reject the whole
//! text if one statement is not allowed ([`parse_commands`]). The worker that runs a query gets the text and the index of
//! the statement, because it trusts no other process: it parses the text, passes that statement through the guard, and
//! only then rewrites it ([`StatementParser`]). Rewriting works on the syntax tree, which keeps the positions of errors.

use super::catalog_rewriting::CatalogRewriter;
use super::command::{Command, QueryStatement};
use super::rewriting;
use crate::error::{QueryError, QueryErrorKind};
use crate::guard;
use crate::limits::Limits;
use datafusion::sql::parser::Statement;

/// The first words of statements that are never allowed, and that the parser may not know.
const WRITING: [&str; 16] = [
    "ANALYZE",
    "CALL",
    "CHECKPOINT",
    "CLUSTER",
    "COMMENT",
    "COPY",
    "DO",
    "GRANT",
    "IMPORT",
    "LOAD",
    "LOCK",
    "MERGE",
    "REFRESH",
    "REINDEX",
    "REVOKE",
    "VACUUM",
];

/// Parses the commands of a text. If one of them is not allowed, none is returned.
pub(super) fn parse_commands(sql: &str, limits: &Limits) -> Result<Vec<Command>, QueryError> {
    parse_statements(sql, limits)?.into_iter().map(|statement| Command::of(statement, limits)).collect()
}

/// Parses the statement that a worker runs.
#[derive(Debug, Default)]
pub(crate) struct StatementParser {
    catalog: CatalogRewriter,
}

impl StatementParser {
    /// Parses one statement of a text, and rewrites it for the engine.
    pub(super) fn parse(
        &self,
        sql: &str,
        user: &str,
        index: usize,
        limits: &Limits,
    ) -> Result<QueryStatement, QueryError> {
        let mut statements = parse_statements(sql, limits)?;
        let statement = (index < statements.len()).then(|| statements.swap_remove(index));
        let command = statement.map(|statement| Command::of(statement, limits)).transpose()?;
        let Some(Command::Query(mut query) | Command::Declare { mut query, .. }) = command else {
            return Err(QueryError::new(
                QueryErrorKind::Internal,
                format!("statement {index} of the text has no rows"),
            ));
        };
        query.statement.rewrite(|mut sql| {
            rewriting::rewrite(&mut sql, user);
            self.catalog.rewrite(sql)
        });
        Ok(query)
    }
}

fn parse_statements(sql: &str, limits: &Limits) -> Result<Vec<Statement>, QueryError> {
    let sql = if is_abort(sql) { "ROLLBACK" } else { sql };
    guard::parse_statements(sql, limits).map_err(|error| describe_write(error, sql))
}

/// Returns a better error for a statement that cannot be parsed, and that would not be allowed either.
fn describe_write(error: QueryError, sql: &str) -> QueryError {
    let word = sql.split_whitespace().next().unwrap_or_default().to_uppercase();
    if error.kind == QueryErrorKind::Syntax && WRITING.contains(&word.as_str()) {
        QueryError::read_only(&word)
    } else {
        error
    }
}

/// Returns true if the text is `ABORT`, which the parser does not know.
fn is_abort(sql: &str) -> bool {
    let word = sql.trim().trim_end_matches(';').trim_end().to_ascii_lowercase();
    ["abort", "abort work", "abort transaction"].contains(&word.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_not_allowed_spoils_all() {
        let read = |sql| parse_commands(sql, &Limits::DEFAULT).map(|commands| commands.len());
        assert_eq!(read("BEGIN; SELECT 1; COMMIT"), Ok(3));
        assert_eq!(read("  ; -- nothing"), Ok(0));
        let rejected = [
            "SELECT 1; DROP TABLE events",
            "SELECT 1; SELECT * FROM pg_class; COPY events TO 'x'",
            "DECLARE c CURSOR FOR WITH x AS (DELETE FROM events RETURNING *) SELECT * FROM x",
            "SELECT pg_backend_pid(); CREATE TABLE pg_x (a int)",
        ];
        for sql in rejected {
            assert_eq!(read(sql).map_err(|error| error.kind), Err(QueryErrorKind::Refused), "{sql}");
        }
    }

    #[test]
    fn a_worker_parses_its_own_statement_only() {
        let parse =
            |index| StatementParser::default().parse("BEGIN; SELECT user", "ann", index, &Limits::DEFAULT);
        let statement = parse(1).expect("a query").statement;
        assert!(format!("{:?}", statement.as_ref().as_ref()).contains("SingleQuotedString(\"ann\")"));
        for index in [0, 2] {
            assert_eq!(
                parse(index).map_err(|error| error.kind).err(),
                Some(QueryErrorKind::Internal),
                "{index}"
            );
        }
    }
}
