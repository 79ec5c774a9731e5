//! Tests of the rules, and of their assumptions about the catalog.

use super::*;
use crate::guard;
use crate::limits::Limits;
use datafusion::sql::parser::Statement as EngineStatement;

fn rewritten(sql: &str) -> String {
    let mut statements = guard::parse_statements(sql, &Limits::DEFAULT).expect("SQL");
    let Some(EngineStatement::Statement(statement)) = statements.pop() else { panic!("{sql}") };
    CatalogRewriter::default().rewrite(*statement).to_string()
}

#[test]
fn other_statements_stay_as_they_are() {
    for sql in [
        "SELECT count(*) FROM events WHERE message LIKE '%pg_class%'",
        "SELECT a[i], (SELECT true) FROM t WHERE (SELECT x FROM u) OR code = 'pg_policy::regclass'",
    ] {
        assert_eq!(rewritten(sql), sql);
    }
}

#[test]
fn a_select_from_an_empty_table_is_empty() {
    assert_eq!(
        rewritten("SELECT pol.polname, 'd' = any(x) AS d, NULL, 1 FROM pg_catalog.pg_policy pol ORDER BY x"),
        "SELECT NULL AS \"polname\", NULL AS d, NULL AS \"?column?\", NULL AS \"column 4\" WHERE false"
    );
    for unchanged in [
        "SELECT count(*) FROM pg_catalog.pg_policy",
        "SELECT c.relname FROM pg_catalog.pg_class AS c LEFT JOIN pg_catalog.pg_policy AS p ON p.polrelid = c.oid",
        "WITH pg_policy AS (SELECT 1 AS one) SELECT one FROM pg_policy",
    ] {
        assert!(!rewritten(unchanged).contains("false"), "{unchanged}: {}", rewritten(unchanged));
    }
    let array =
        rewritten("SELECT ARRAY(SELECT b.x FROM pg_catalog.pg_auth_members m JOIN b ON b.y = m.z) AS a");
    assert!(array.contains("ARRAY[]") && !array.contains("pg_auth_members"), "{array}");
    let array =
        rewritten("SELECT array(SELECT 'x' || x FROM pg_catalog.unnest(tc.reloptions) x) FROM pg_class tc");
    assert!(array.contains("ARRAY[]") && array.contains("pg_class"), "{array}");
}

#[test]
fn a_loop_over_a_constant_array_becomes_a_list() {
    let looped = |value: &str, array: &str| {
        rewritten(&format!(
            "SELECT t IN (SELECT {value} FROM generate_series(array_lower({array}, 1), array_upper({array}, 1)) AS i, \
             {array} AS s) FROM information_schema.tables"
        ))
    };
    let list = looped("trim(s[i])", "string_to_array('a,b', ',')");
    assert!(
        list.contains("IN (trim('a'), trim('b'))") || list.contains("IN (TRIM('a'), TRIM('b'))"),
        "{list}"
    );
    let list = looped("s[i]", "string_to_array(current_setting('search_path'), ',')");
    assert!(list.contains("IN ('public')"), "{list}");
    for value in ["s[i + 1]", "i", "s"] {
        assert!(looped(value, "string_to_array('a,b', ',')").contains("generate_series"), "{value}");
    }
    assert!(looped("s[i]", "string_to_array(x, ',')").contains("generate_series"), "not constant");
}
