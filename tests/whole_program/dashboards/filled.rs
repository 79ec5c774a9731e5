//! Fills in a query like Grafana: first its variables, then its time macros. For SQL, its PostgreSQL data source
//! expands the macros before the statement is sent.

use std::collections::BTreeMap;

/// The value that is selected for a variable.
#[derive(Debug, Clone)]
pub(super) enum Chosen {
    /// The value "all" of a variable that has a text of its own for it, which is inserted as it is, whatever the
    /// format.
    All(&'static str),
    One(String),
    Several(Vec<String>),
}

/// The values that are selected for a dashboard.
#[derive(Debug, Clone)]
pub(super) struct Filling {
    pub(super) chosen: BTreeMap<String, Chosen>,
    /// The shown time, in seconds since 1970.
    pub(super) from: i64,
    pub(super) to: i64,
    /// The step of a graph.
    pub(super) interval: &'static str,
    pub(super) rate_interval: &'static str,
}

impl Filling {
    pub(super) fn promql(&self, query: &str) -> String {
        let range = self.to - self.from;
        self.variables(query, "promql")
            .replace("$__rate_interval", self.rate_interval)
            .replace("$__interval", self.interval)
            .replace("$__range_s", &range.to_string())
            .replace("$__range", &format!("{range}s"))
    }

    pub(super) fn sql(&self, query: &str) -> String {
        let mut filled = self.variables(query, "csv").replace("$__interval", self.interval);
        while let Some((before, after)) = filled.split_once("$__") {
            let (call, rest) = after.split_once(')').expect("a macro has brackets");
            let (name, arguments) = call.split_once('(').expect("a macro has brackets");
            let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
            filled = format!("{before}{}{rest}", self.macro_of(name, &arguments));
        }
        filled
    }

    fn macro_of(&self, name: &str, arguments: &[&str]) -> String {
        let time = |seconds: i64| format!("'{}'", jiff::Timestamp::from_second(seconds).expect("a time"));
        match (name, arguments) {
            ("timeFilter", [column]) => format!("{column} BETWEEN {} AND {}", time(self.from), time(self.to)),
            ("timeFrom", _) => time(self.from),
            ("timeTo", _) => time(self.to),
            ("timeGroupAlias", [column, step]) => {
                let step = step.trim_end_matches('s');
                format!("floor(extract(epoch from {column})/{step})*{step} AS \"time\"")
            }
            _ => panic!("Grafana would say: unknown macro {name} of {arguments:?}"),
        }
    }

    /// Inserts the variables: `$name`, `${name}` and `${name:format}`. Names that begin with two underscores are
    /// Grafana's own.
    fn variables(&self, query: &str, usual: &str) -> String {
        let mut filled = String::new();
        let mut rest = query;
        while let Some((before, after)) = rest.split_once('$') {
            filled.push_str(before);
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let (name, format, left) = match after.strip_prefix('{') {
                Some(braced) => {
                    let (inside, left) = braced.split_once('}').expect("a closing brace");
                    let (name, format) = inside.split_once(':').unwrap_or((inside, usual));
                    (name, format, left)
                }
                None => {
                    let end = after.find(|c| !is_word(c)).unwrap_or(after.len());
                    (&after[..end], usual, &after[end..])
                }
            };
            match self.chosen.get(name) {
                Some(chosen) => filled.push_str(&formatted(chosen, format)),
                None => {
                    // Grafana's own, and groups of regular expressions, stay as they are.
                    let is_left = name.is_empty() || name.starts_with("__") || name.parse::<u8>().is_ok();
                    assert!(is_left, "nobody defines {name}: {query}");
                    filled.push_str(&rest[before.len()..rest.len() - left.len()]);
                }
            }
            rest = left;
        }
        filled + rest
    }
}

fn formatted(chosen: &Chosen, format: &str) -> String {
    let quoted = |value: &String| format!("'{}'", value.replace('\'', "''"));
    match (chosen, format) {
        (Chosen::All(text), _) => (*text).to_owned(),
        (Chosen::One(value), "sqlstring") => quoted(value),
        (Chosen::Several(values), "sqlstring") => values.iter().map(quoted).collect::<Vec<_>>().join(","),
        (Chosen::One(value), "regex" | "promql") => escaped(value, format),
        (Chosen::Several(values), "regex" | "promql") => match &values[..] {
            [one] => escaped(one, format),
            several => {
                let escaped: Vec<String> = several.iter().map(|value| escaped(value, format)).collect();
                format!("({})", escaped.join("|"))
            }
        },
        (Chosen::One(value), _) => value.clone(),
        (Chosen::Several(values), _) => values.join(","),
    }
}

/// Escapes a text for a regular expression like Grafana; in PromQL, it is inside a string that has escapes of its own.
fn escaped(value: &str, format: &str) -> String {
    let (special, escape) = match format {
        "promql" => (r"\^$*+?.()|[]{}'", r"\\"),
        _ => (r"\^$*+?.()|[]{}/", r"\"),
    };
    let one = |c: char| if special.contains(c) { format!("{escape}{c}") } else { c.to_string() };
    value.chars().map(one).collect()
}

#[test]
fn queries_are_filled_in_as_grafana_does_it() {
    let several = Chosen::Several(vec!["a.b".to_owned(), "it's".to_owned()]);
    let chosen = [("service", several), ("code", Chosen::All(".*")), ("text", Chosen::One(String::new()))];
    let chosen = chosen.into_iter().map(|(name, chosen)| (name.to_owned(), chosen)).collect();
    let filling =
        Filling { chosen, from: 1_793_491_200, to: 1_793_494_800, interval: "15s", rate_interval: "1m" };
    assert_eq!(
        filling.promql(r#"rate(x{service=~"$service",code=~"$code"}[$__rate_interval]) * $__range_s"#),
        r#"rate(x{service=~"(a\\.b|it\\'s)",code=~".*"}[1m]) * 3600"#
    );
    assert_eq!(
        filling.sql(
            "SELECT $__timeGroupAlias(time, $__interval) FROM t WHERE $__timeFilter(time) AND s ~ '^(${code:regex})$' \
             AND s IN (${service:sqlstring}) AND ${text:sqlstring} = ''"
        ),
        "SELECT floor(extract(epoch from time)/15)*15 AS \"time\" FROM t WHERE time BETWEEN '2026-11-01T00:00:00Z' AND \
         '2026-11-01T01:00:00Z' AND s ~ '^(.*)$' AND s IN ('a.b','it''s') AND '' = ''"
    );
}
