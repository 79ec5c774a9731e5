//! Parses the text of a message into commands.
//!
//! Every text is parsed once, and every statement passes the guard once. Then the statement is rewritten on its syntax
//! tree, which keeps the positions of errors.

use super::catalog_rewriting::CatalogRewriter;
use super::command::Command;
use super::rewriting;
use crate::error::{Kind, QueryError};
use crate::guard;
use crate::limits::Limits;

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

/// Parses the statements of clients.
#[derive(Debug, Default)]
pub(crate) struct StatementParser {
    catalog: CatalogRewriter,
}

impl StatementParser {
    /// Parses the commands of a text. If one of them is not allowed, none is returned.
    pub(super) fn parse(&self, sql: &str, user: &str, limits: &Limits) -> Result<Vec<Command>, QueryError> {
        let sql = if is_abort(sql) { "ROLLBACK" } else { sql };
        let statements = guard::parse_statements(sql, limits).map_err(|error| describe_write(error, sql))?;
        let commands = statements.into_iter().map(|statement| Command::of(statement, limits));
        let mut commands = commands.collect::<Result<Vec<_>, _>>()?;
        for command in &mut commands {
            if let Command::Query(query) | Command::Declare { query, .. } = command {
                query.statement.rewrite(|sql| {
                    let mut sql = sql;
                    rewriting::rewrite(&mut sql, user);
                    self.catalog.rewrite(sql)
                });
            }
        }
        Ok(commands)
    }
}

/// Returns a better error for a statement that cannot be parsed, and that would not be allowed either.
fn describe_write(error: QueryError, sql: &str) -> QueryError {
    let word = sql.split_whitespace().next().unwrap_or_default().to_uppercase();
    if error.kind == Kind::Syntax && WRITING.contains(&word.as_str()) {
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
        let read = |sql| {
            StatementParser::default().parse(sql, "ann", &Limits::DEFAULT).map(|commands| commands.len())
        };
        assert_eq!(read("BEGIN; SELECT 1; COMMIT"), Ok(3));
        assert_eq!(read("  ; -- nothing"), Ok(0));
        let refused = [
            "SELECT 1; DROP TABLE events",
            "SELECT 1; SELECT * FROM pg_class; COPY events TO 'x'",
            "DECLARE c CURSOR FOR WITH x AS (DELETE FROM events RETURNING *) SELECT * FROM x",
            "SELECT pg_backend_pid(); CREATE TABLE pg_x (a int)",
        ];
        for sql in refused {
            assert_eq!(read(sql).map_err(|error| error.kind), Err(Kind::Refused), "{sql}");
        }
    }
}
