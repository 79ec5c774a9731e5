//! From the text of a message to commands.
//!
//! Questions about the catalog are put in words that our engine does not have; those, and only those, are rewritten by
//! `datafusion-pg-catalog`. All others are read as every door reads them, so that errors keep their place.

use super::command::Command;
use super::rewriting;
use crate::error::{Kind, QueryError};
use crate::guard;
use crate::limits::Limits;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion_pg_catalog::sql::PostgresCompatibilityParser;
use std::borrow::Cow;
use std::ops::Range;

/// The schemas that Grafana asks for by taking the search path apart.
const SEARCHED_SCHEMAS: &str = r#"SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END FROM generate_series( array_lower(string_to_array(current_setting('search_path'),','),1), array_upper(string_to_array(current_setting('search_path'),','),1) ) as i, string_to_array(current_setting('search_path'),',') s"#;

/// Options of a table, as psql's `\d+` asks for them.
const TABLE_OPTIONS: &str = "pg_catalog.array_to_string(c.reloptions || array(select 'toast.' || x from pg_catalog.unnest(tc.reloptions) x), ', ')";

/// The roles that a role belongs to, as psql's `\du` asks for them.
const ROLES_OF_ROLE: &str = "ARRAY(SELECT b.rolname FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles b ON (m.roleid = b.oid) WHERE m.member = r.oid)";

/// What clients write that the engine cannot read, and what they would hear.
const PHRASES: [(&str, &str); 3] =
    [(SEARCHED_SCHEMAS, "'public'"), (TABLE_OPTIONS, "''"), (ROLES_OF_ROLE, "'{}'")];

/// Statements that begin like this are never allowed, however they go on.
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

/// Reads statements.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    catalog: PostgresCompatibilityParser,
}

impl Reader {
    /// The commands of a text; every one of them is allowed, or none is returned.
    pub(super) fn read(&self, sql: &str, user: &str, limits: &Limits) -> Result<Vec<Command>, QueryError> {
        let sql = if is_abort(sql) { "ROLLBACK" } else { sql };
        let statements = guard::parse(sql, limits).map_err(|error| clearer(error, sql))?;
        let statements = if asks_for_the_catalog(sql) { self.rewritten(sql)? } else { statements };
        let commands = statements.into_iter().map(|statement| Command::of(statement, limits));
        let mut commands = commands.collect::<Result<Vec<_>, _>>()?;
        for command in &mut commands {
            if let Command::Query(question) | Command::Declare { question, .. } = command {
                rewriting::rewrite(&mut question.statement, user);
            }
        }
        Ok(commands)
    }

    fn rewritten(&self, sql: &str) -> Result<Vec<Statement>, QueryError> {
        let statements = self.catalog.parse(&in_plain_words(sql)).map_err(|error| {
            let (ParserError::ParserError(message) | ParserError::TokenizerError(message)) = error else {
                return QueryError::new(Kind::Syntax, "the statement nests too deeply");
            };
            QueryError::new(Kind::Syntax, message)
        })?;
        Ok(statements.into_iter().map(|statement| Statement::Statement(Box::new(statement))).collect())
    }
}

/// What the parser cannot read, and would not be allowed either.
fn clearer(error: QueryError, sql: &str) -> QueryError {
    let word = sql.split_whitespace().next().unwrap_or_default().to_uppercase();
    if error.kind == Kind::Syntax && WRITING.contains(&word.as_str()) {
        QueryError::refused(&word)
    } else {
        error
    }
}

/// The parser does not know the word.
fn is_abort(sql: &str) -> bool {
    let word = sql.trim().trim_end_matches(';').trim_end().to_ascii_lowercase();
    ["abort", "abort work", "abort transaction"].contains(&word.as_str())
}

fn asks_for_the_catalog(sql: &str) -> bool {
    let lower = sql.to_ascii_lowercase();
    ["pg_", "information_schema", "::reg"].iter().any(|word| lower.contains(word))
}

fn in_plain_words(sql: &str) -> Cow<'_, str> {
    let mut sql = Cow::Borrowed(sql);
    for (phrase, plain) in PHRASES {
        while let Some(range) = find(&sql, phrase) {
            sql.to_mut().replace_range(range, plain);
        }
    }
    sql
}

/// Where a phrase stands, however it is spaced.
fn find(text: &str, phrase: &str) -> Option<Range<usize>> {
    let first = phrase.split_whitespace().next()?;
    text.match_indices(first).find_map(|(start, _)| {
        let mut rest = &text[start..];
        for word in phrase.split_whitespace() {
            rest = rest.trim_start().strip_prefix(word)?;
        }
        Some(start..text.len() - rest.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phrase_is_found_however_it_is_spaced() {
        assert_eq!(find("x IN (a  b\n\tc) y", "a b c"), Some(6..13));
        assert_eq!(find("a b d", "a b c"), None);
    }

    #[test]
    fn one_that_is_not_allowed_spoils_all() {
        let read = |sql| Reader::default().read(sql, "ann", &Limits::DEFAULT).map(|commands| commands.len());
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
