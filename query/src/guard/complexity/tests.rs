//! Tests of each limit, at its edge and beyond it. They also check that real statements stay far from all limits.

use crate::error::{Limit, QueryErrorKind};
use crate::guard;
use crate::limits::Limits;

fn is_accepted(sql: &str) -> bool {
    match guard::parse_statement(sql, &Limits::DEFAULT) {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind, QueryErrorKind::Limit(Limit::Statement), "{error}");
            assert!(error.hint.is_some(), "{error}");
            false
        }
    }
}

fn chain(term: &str, operator: &str, count: usize) -> String {
    vec![term; count].join(operator)
}

#[test]
fn chains_are_bounded_whatever_they_are_made_of() {
    for (term, operator) in [
        ("1", "+"),
        ("1", " - "),
        ("true", " OR "),
        ("true", " AND "),
        ("'a'", " || "),
        ("a", " -> "),
        ("a", " = "),
        ("a", "::text "),
        ("a", " IS NULL "),
    ] {
        let sql = |count| format!("SELECT {}", chain(term, operator, count));
        if !operator.contains("::") && !operator.contains("IS") {
            assert!(is_accepted(&sql(300)), "{operator}");
        }
        for count in [500, 1_269, 5_000, 30_000] {
            let sql = sql(count);
            if sql.len() <= Limits::DEFAULT.statement_bytes {
                let refused = guard::parse_statement(&sql, &Limits::DEFAULT).is_err();
                assert!(refused, "{count} of {operator}");
            }
        }
    }
    let casts = |count| format!("SELECT 1{}", "::int".repeat(count));
    assert!(is_accepted(&casts(300)));
    assert!(!is_accepted(&casts(5_000)));
}

#[test]
fn tables_are_counted_as_often_as_they_are_read() {
    let unions = |count| chain("SELECT 1", " UNION ALL ", count);
    assert!(is_accepted(&unions(400)));
    assert!(!is_accepted(&unions(600)));
    assert!(!is_accepted(&unions(2_257)));
    let joins = |count| format!("SELECT 1 FROM {}", chain("events", ", ", count));
    assert!(is_accepted(&joins(500)));
    assert!(!is_accepted(&joins(606)));
    let doubling = |count: usize| {
        let step = |n| format!("t{} AS (SELECT * FROM t{n} UNION ALL SELECT * FROM t{n})", n + 1);
        let steps: Vec<_> = (0..count).map(step).collect();
        format!("WITH t0 AS (SELECT 1 AS a), {} SELECT * FROM t{count}", steps.join(", "))
    };
    assert!(is_accepted(&doubling(6)));
    assert!(!is_accepted(&doubling(8)));
    assert!(!is_accepted(&doubling(30)));
    // A `WITH` query that is defined inside a subquery hides an outer one of the same name.
    let inside = "WITH t AS (SELECT 1) SELECT * FROM (WITH t AS (SELECT 2) SELECT * FROM t) AS s, t";
    assert!(is_accepted(inside));
}

#[test]
fn grouping_sets_are_counted() {
    let columns = |count: usize| (0..count).map(|n| format!("c{n}")).collect::<Vec<_>>().join(", ");
    let cube = |count| format!("SELECT count(*) FROM events GROUP BY CUBE ({})", columns(count));
    assert!(is_accepted(&cube(8)));
    assert!(!is_accepted(&cube(9)));
    assert!(!is_accepted(&cube(20)));
    assert!(is_accepted(&format!("SELECT count(*) FROM events GROUP BY ROLLUP ({})", columns(20))));
    assert!(!is_accepted("SELECT 1 FROM events GROUP BY CUBE (a, b, c, d, e), CUBE (f, g, h, i, j)"));
}

#[test]
fn long_lists_are_wide_and_not_deep() {
    let list = |count: usize| (0..count).map(|n| format!("'{n}'")).collect::<Vec<_>>().join(", ");
    assert!(is_accepted(&format!("SELECT 1 FROM events WHERE code IN ({})", list(10_000))));
    assert!(!is_accepted(&format!("SELECT 1 FROM events WHERE code IN ({})", list(25_000))));
    assert!(is_accepted(&format!("SELECT {}", chain("abs(-1)", ", ", 900))));
}

/// The parser recurses for each `EXPLAIN`, and makes one expression of the tokens between two commas.
#[test]
fn texts_are_bounded_before_they_are_parsed() {
    let explained = |count| format!("{}SELECT '{}'", "EXPLAIN ".repeat(count), "x".repeat(5_000));
    assert!(is_accepted(&explained(1)));
    assert!(!is_accepted(&explained(9)));
    assert!(!is_accepted(&explained(4_000)));
    assert!(!is_accepted(&format!("SELECT {}", chain("1", ",", 100_000))));
}
