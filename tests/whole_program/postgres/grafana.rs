//! Grafana's PostgreSQL data source: the queries that it sends, as it sends them.

use super::wire::{ServerMessage, Wire};
use crate::whole_program::http_sql::with_example;
use crate::whole_program::support::Folder;
use serde_json::Value;

/// The query with which Grafana finds the schemas on the search path.
const SEARCHED: &str = r#"
          quote_ident(table_schema) IN (
          SELECT
            CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END
          FROM
            generate_series(
              array_lower(string_to_array(current_setting('search_path'),','),1),
              array_upper(string_to_array(current_setting('search_path'),','),1)
            ) as i,
            string_to_array(current_setting('search_path'),',') s
          )"#;

/// Returns the rows of a simple query, in text.
#[track_caller]
fn ask(wire: &mut Wire, sql: &str) -> Vec<Vec<Option<String>>> {
    wire.ask(sql);
    let said = wire.until_ready();
    let tag = said.iter().find(|said| said.kind == b'C').unwrap_or_else(|| panic!("{sql}: {said:?}"));
    let rows: Vec<_> = said.iter().filter(|said| said.kind == b'D').map(values).collect();
    // With another command tag, Grafana would treat it as a statement without rows.
    assert_eq!(tag.body, format!("SELECT {}\0", rows.len()).into_bytes(), "{sql}");
    rows
}

/// Returns the values of a row.
fn values(row: &ServerMessage) -> Vec<Option<String>> {
    let mut rest = &row.body[2..];
    let mut values = Vec::new();
    while let Some((length, after)) = rest.split_first_chunk() {
        let length = i32::from_be_bytes(*length);
        let length = usize::try_from(length).ok();
        values.push(length.map(|length| String::from_utf8(after[..length].to_vec()).expect("UTF-8")));
        rest = &after[length.unwrap_or(0)..];
    }
    values
}

/// Scenario: what Grafana asks when a data source is saved, and when a query is put together: whether we are there, our
/// version, whether there is TimescaleDB, schemas, tables, and the columns of one.
/// Guarantee: each is answered, tagged SELECT, with our tables and the types' PostgreSQL names.
#[test]
fn a_data_source_is_tested_and_its_tables_are_found() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let mut wire = Wire::connect(&server);
    for ping in [";", "-- ping", ""] {
        wire.ask(ping);
        assert_eq!(wire.kinds(), "IZ", "{ping}");
    }
    assert_eq!(ask(&mut wire, "SELECT 1"), [[Some("1".to_owned())]]);
    let version = ask(&mut wire, "SELECT current_setting('server_version_num')::int/100 as version");
    assert_eq!(version, [[Some("1500".to_owned())]]);
    assert!(ask(&mut wire, "SELECT extversion FROM pg_extension WHERE extname = 'timescaledb'").is_empty());
    let schemas = ask(
        &mut wire,
        r#"SELECT schema_name AS "name" FROM information_schema.schemata
           WHERE schema_name NOT IN ('information_schema', 'pg_catalog', 'pg_toast', '_timescaledb_cache')
           ORDER BY schema_name"#,
    );
    assert_eq!(schemas, [[Some("public".to_owned())]]);
    let tables = ask(
        &mut wire,
        &format!(
            r#"SELECT
    CASE WHEN {SEARCHED}
      THEN quote_ident(table_name)
      ELSE quote_ident(table_schema) || '.' || quote_ident(table_name)
    END AS "table"
    FROM information_schema.tables
    WHERE quote_ident(table_schema) NOT IN ('information_schema',
                             'pg_catalog',
                             '_timescaledb_cache',
                             '_timescaledb_catalog',
                             '_timescaledb_internal',
                             '_timescaledb_config',
                             'timescaledb_information',
                             'timescaledb_experimental')
    ORDER BY CASE WHEN {SEARCHED} THEN 0 ELSE 1 END, 1"#
        ),
    );
    let tables: Vec<_> = tables.into_iter().flatten().flatten().collect();
    assert!(tables.is_sorted() && tables.contains(&"events".to_owned()), "{tables:?}");
    assert!(tables.contains(&"error_rates".to_owned()), "{tables:?}");
    for table in ["events", "public.events"] {
        let columns = ask(
            &mut wire,
            &format!(
                r#"SELECT quote_ident(column_name) AS "column", data_type AS "type"
    FROM information_schema.columns
    WHERE
      CASE WHEN array_length(parse_ident('{table}'),1) = 2
        THEN quote_ident(table_schema) = (parse_ident('{table}'))[1]
          AND quote_ident(table_name) = (parse_ident('{table}'))[2]
        ELSE quote_ident(table_name) = '{table}'
          AND {SEARCHED}
      END"#
            ),
        );
        let has = |name: &str, data_type: &str| {
            columns.contains(&vec![Some(name.to_owned()), Some(data_type.to_owned())])
        };
        // Columns are quoted where PostgreSQL has a keyword of that name.
        assert!(columns.len() > 20, "{table}: {columns:?}");
        assert!(has("http_status", "integer") && has("hidden", "boolean"), "{table}: {columns:?}");
        assert!(columns.iter().any(|column| column[1].as_deref() == Some("timestamp with time zone")));
    }
    let named = ask(
        &mut wire,
        "SELECT column_name, data_type, udt_name FROM information_schema.columns \
         WHERE table_name = 'events' AND column_name IN ('time', 'findings') ORDER BY 1",
    );
    let named: Vec<Vec<_>> =
        named.iter().map(|row| row.iter().map(|value| value.as_deref().unwrap_or("")).collect()).collect();
    assert_eq!(
        named,
        [vec!["findings", "ARRAY", "_text"], vec!["time", "timestamp with time zone", "timestamptz"]]
    );
    assert!(server.stop().success());
}

/// Scenario: panels, with Grafana's macros as it expands them: time filters, groups of time in the select list and in
/// GROUP BY, Unix times.
/// Guarantee: the sums agree with what is stored.
#[test]
fn panels_are_drawn_with_grafanas_macros() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let mut wire = Wire::connect(&server);
    let dumped = server.dump("events");
    let within = |event: &&Value| {
        event["time"]
            .as_str()
            .is_some_and(|time| ("2026-11-01T00:00:00.5".."2026-11-01T00:00:01.5").contains(&time))
    };
    let expected = dumped.iter().filter(within).count();
    assert!(expected > 0 && expected < dumped.len());
    let filter = "time BETWEEN '2026-11-01T00:00:00.5Z' AND '2026-11-01T00:00:01.499999Z'";
    let total = |rows: &[Vec<Option<String>>], column: usize| -> usize {
        rows.iter()
            .map(|row| row[column].as_deref().and_then(|n| n.parse::<usize>().ok()).expect("a number"))
            .sum()
    };
    // $__timeGroupAlias(time, '1s') and $__timeFilter(time)
    let rows = ask(
        &mut wire,
        &format!(
            "SELECT\n  floor(extract(epoch from time)/1)*1 AS \"time\",\n  category AS metric,\n  count(*) AS \"value\"\n\
             FROM events\nWHERE\n  {filter}\nGROUP BY 1,2\nORDER BY 1,2"
        ),
    );
    assert_eq!(total(&rows, 2), expected, "{rows:?}");
    let times: Vec<f64> =
        rows.iter().map(|row| row[0].as_deref().and_then(|t| t.parse().ok()).expect("a time")).collect();
    assert!(
        times.is_sorted() && times.iter().all(|time| [1_793_491_200.0, 1_793_491_201.0].contains(time)),
        "{times:?}"
    );
    // $__timeGroup(time, $__interval) in GROUP BY, $__unixEpochFilter(...)
    let rows = ask(
        &mut wire,
        "SELECT floor(extract(epoch from time)/60)*60 AS \"time\", sum(CASE WHEN hidden THEN 1 ELSE 0 END) AS hidden, \
         count(*) AS n FROM events \
         WHERE extract(epoch from time) >= 1793491200 AND extract(epoch from time) <= 1793491260 \
         GROUP BY floor(extract(epoch from time)/60)*60 ORDER BY 1",
    );
    assert_eq!(total(&rows, 2), dumped.len());
    // $__timeFrom(), $__timeTo(), $__time(time): a table of the latest.
    let rows = ask(
        &mut wire,
        "SELECT time AS \"time\", service, message FROM events \
         WHERE time >= '2026-11-01T00:00:00Z' AND time <= '2026-11-02T00:00:00Z' ORDER BY time DESC LIMIT 5",
    );
    assert_eq!(rows.len(), 5);
    assert!(
        rows[0][0]
            .as_deref()
            .is_some_and(|time| time.starts_with("2026-11-01 00:00:0") && time.ends_with("+00"))
    );
    // This query has a variable.
    let services = ask(&mut wire, "SELECT DISTINCT service FROM events WHERE service IS NOT NULL ORDER BY 1");
    assert!(services.len() > 3);
    assert!(server.stop().success());
}
