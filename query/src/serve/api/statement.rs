//! The statements of endpoints: fixed text, and values that are only ever passed as parameters.
//!
//! Invariant: no part of a request becomes part of a statement's text. Code that writes a statement gets the name of a
//! placeholder for a value, and never needs the value itself.

use super::parameters::Values;
use super::range::{self, TimeRange};
use serde_json::Value;
use store::Table;

/// SQL that counts failures; a row may represent several events.
pub(super) const COUNT: &str = "sum(coalesce(represents, 1))";
/// SQL that counts hidden failures.
pub(super) const HIDDEN: &str = "sum(CASE WHEN hidden THEN coalesce(represents, 1) ELSE 0 END)";

/// SQL that counts failures in a table of counts.
pub(super) const ERRORS: &str = "sum(errors)";
/// SQL that counts hidden failures in a table of counts.
pub(super) const HIDDEN_ERRORS: &str = "sum(CASE WHEN hidden THEN errors ELSE 0 END)";

/// SQL for the events, each counted once, as the view `errors` counts failures: without duplicate reports of the same
/// failure and without protocol probes.
pub(super) const EVENTS_ONCE: &str = "(SELECT events.* FROM (SELECT supersedes FROM events WHERE supersedes IS NOT NULL) AS better \
     RIGHT ANTI JOIN events ON better.supersedes = events.event_id \
     WHERE coalesce(events.represents, 1) > 0 AND (events.kind <> 'error' OR events.fault IS DISTINCT FROM 'probe')) \
     AS events";

/// The condition of the view `trust_denials`.
const IS_DENIED: &str = "(kind = 'error' AND category = 'PERMISSION' AND canonical <> 'CONFIRMATION_REQUIRED' \
     AND (required_trust IS NOT NULL OR actual_trust IS NOT NULL OR danger_level IS NOT NULL))";

/// The parameters that filter a column of `events` with another name.
const RENAMED: [(&str, &str); 3] =
    [("code", "canonical"), ("native_code", "code"), ("version", "service_version")];

/// The parameters that filter the column of `events` with the same name.
const SAME_NAME: [&str; 19] = [
    "kind",
    "service",
    "environment",
    "category",
    "dialect",
    "severity",
    "recovery",
    "operation",
    "client",
    "fingerprint",
    "trace_id",
    "session_id",
    "request_id",
    "token_hash",
    "quota_metric",
    "required_trust",
    "actual_trust",
    "danger_level",
    "fault",
];

/// A statement with the values of its parameters.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

/// Binds values to placeholders while the text of a statement is written.
#[derive(Debug, Default)]
pub(super) struct Binder(Vec<Value>);

impl Statement {
    /// Builds a statement.
    pub(super) fn build(write: impl FnOnce(&mut Binder) -> String) -> Self {
        let mut binder = Binder::default();
        let sql = write(&mut binder);
        Self { sql, values: binder.0 }
    }
}

impl Binder {
    /// Binds a value and returns its placeholder.
    pub(super) fn bind(&mut self, value: impl Into<Value>) -> String {
        self.0.push(value.into());
        format!("${}", self.0.len())
    }

    /// Returns a condition: a time column is within the range.
    pub(super) fn within(&mut self, column: &str, range: &TimeRange) -> String {
        self.between(column, range.from, range.to)
    }

    /// Returns a condition: a minute of traffic begins in the range.
    pub(super) fn minutes(&mut self, range: &TimeRange) -> String {
        self.between("minute", TimeRange::minute(range.from), range.to)
    }

    /// Returns a condition: a time column is at or after `from`, and before `to`.
    pub(super) fn between(&mut self, column: &str, from: i64, to: i64) -> String {
        let (from, to) = (self.bind(range::text(from)), self.bind(range::text(to)));
        format!("{column} >= {from} AND {column} < {to}")
    }

    /// Returns a condition, with `AND` before it: a column has any of these values; an empty value matches rows without
    /// one. Without values, no condition is returned.
    pub(super) fn any_of(&mut self, column: &str, values: &[&str]) -> String {
        if values.is_empty() {
            return String::new();
        }
        let named: Vec<String> =
            values.iter().filter(|value| !value.is_empty()).map(|value| self.bind(*value)).collect();
        let wants_none = named.len() < values.len();
        match (named.is_empty(), wants_none) {
            (true, _) => format!(" AND {column} IS NULL"),
            (false, false) => format!(" AND {column} IN ({})", named.join(", ")),
            (false, true) => format!(" AND ({column} IN ({}) OR {column} IS NULL)", named.join(", ")),
        }
    }

    /// Returns conditions for parameters that filter the column of the same name.
    pub(super) fn filters(&mut self, values: &Values, names: &[&str]) -> String {
        names.iter().map(|name| self.any_of(name, &values.texts(name))).collect()
    }

    /// Returns conditions for all filters over the columns of `events`. `searched` are the columns that `q` searches.
    pub(super) fn event_filters(&mut self, values: &Values, searched: &[&str]) -> String {
        let mut conditions = String::new();
        for name in SAME_NAME {
            let column = if name == "fault" { fault_column() } else { name };
            conditions.push_str(&self.any_of(column, &values.texts(name)));
        }
        for (name, column) in RENAMED {
            conditions.push_str(&self.any_of(column, &values.texts(name)));
        }
        let findings: Vec<String> =
            values.texts("finding").into_iter().map(|word| self.finding(word)).collect();
        if !findings.is_empty() {
            conditions.push_str(&format!(" AND ({})", findings.join(" OR ")));
        }
        for (name, condition) in [("hidden", "hidden"), ("denied", IS_DENIED)] {
            match values.flag(name) {
                Some(true) => conditions.push_str(&format!(" AND {condition}")),
                Some(false) => conditions.push_str(&format!(" AND ({condition}) IS NOT TRUE")),
                None => {}
            }
        }
        if let Some(text) = values.text("q").filter(|text| !text.is_empty()) {
            let part = self.bind(text.to_lowercase());
            let contains: Vec<String> =
                searched.iter().map(|column| format!("strpos(lower({column}), {part}) > 0")).collect();
            conditions.push_str(&format!(" AND ({})", contains.join(" OR ")));
        }
        conditions
    }

    fn finding(&mut self, word: &str) -> String {
        if word.is_empty() {
            return "cardinality(findings) = 0".to_owned();
        }
        format!("array_has(findings, {})", self.bind(word))
    }
}

/// Returns true if this version of a stored table has a column.
pub(super) fn has_column(table: Table, name: &str) -> bool {
    table.columns().iter().any(|column| column.name == name)
}

/// Returns the column `fault`, or null if events do not have it.
pub(super) fn fault_column() -> &'static str {
    if has_column(Table::Events, "fault") { "fault" } else { "CAST(NULL AS varchar)" }
}

#[cfg(test)]
mod tests {
    use super::super::parameters::EVENT_FILTERS;
    use super::*;

    #[test]
    fn values_never_become_text() {
        let hostile = "x') OR 1=1 --";
        let query: String = EVENT_FILTERS
            .iter()
            .filter(|parameter| {
                !["kind", "category", "severity", "hidden", "denied"].contains(&parameter.name)
            })
            .map(|parameter| format!("{}=x') OR 1=1 --&", parameter.name))
            .collect();
        let values = Values::parse(&query, &[EVENT_FILTERS], 0).unwrap();
        let statement = Statement::build(|binder| binder.event_filters(&values, &["message"]));
        assert!(!statement.sql.contains(hostile) && !statement.sql.contains("1=1"), "{}", statement.sql);
        assert_eq!(
            statement.values.len(),
            EVENT_FILTERS.len() - 5,
            "every filter is applied: {}",
            statement.sql
        );
    }

    #[test]
    fn an_empty_value_means_none() {
        let condition = |values: &[&str]| Binder::default().any_of("service", values);
        assert_eq!(condition(&[]), "");
        assert_eq!(condition(&[""]), " AND service IS NULL");
        assert_eq!(condition(&["a", "b"]), " AND service IN ($1, $2)");
        assert_eq!(condition(&["a", ""]), " AND (service IN ($1) OR service IS NULL)");
    }
}
