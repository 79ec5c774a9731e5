//! The parameters of endpoints: their definitions, as data, and the values of one request.
//!
//! Invariants: a value is either parsed as the parameter's kind requires, or rejected with an explanation; no value
//! becomes part of a statement's text.

use super::range::{self, TimeRange, shortened};
use crate::error::{QueryError, QueryErrorKind, closest_name};
use serde_json::{Value, json};
use url::form_urlencoded;

/// The maximum number of values in one request.
const MAX_VALUES: usize = 200;

/// A parameter of an endpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) kind: ParameterKind,
}

/// The form of a parameter's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum ParameterKind {
    /// A time, absolute or relative.
    Time,
    /// A whole number from 0 or 1 to `most`.
    Count { least: i64, most: i64, default: i64 },
    /// A text.
    Text,
    /// A text that may be repeated. A row matches if it has any of the values; an empty one matches rows without a
    /// value.
    Texts,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words; may be repeated.
    Words(&'static [&'static str]),
    /// `true` or `false`.
    Flag,
}

use ParameterKind::{Count, Flag, Text, Texts, Time, Word, Words};

const fn parameter(name: &'static str, kind: ParameterKind, about: &'static str) -> Parameter {
    Parameter { name, about, kind }
}

/// The parameters of the time range, which every endpoint takes.
pub(super) const RANGE: &[Parameter] = &[
    parameter("from", Time, "The start of the range; 24 hours before its end by default"),
    parameter("to", Time, "The end of the range, which is not part of it; now by default"),
    parameter("buckets", Count { least: 1, most: 1_000, default: 120 }, "The most buckets of a time series"),
];

pub(super) const SERVICE: Parameter = parameter("service", Texts, "The service");
pub(super) const ENVIRONMENT: Parameter = parameter("environment", Texts, "The environment");
pub(super) const CLIENT: Parameter = parameter("client", Texts, "The client");
pub(super) const OPERATION: Parameter = parameter("operation", Texts, "The operation");

/// The values of the column `category`.
pub(super) const CATEGORIES: &[&str] = &[
    "VALIDATION",
    "NOT_FOUND",
    "PERMISSION",
    "CONFLICT",
    "RATE_LIMIT",
    "TOKEN",
    "SCHEMA",
    "PROTOCOL",
    "INTERNAL",
    "UNKNOWN",
];

/// Filters over the columns of `events`.
pub(super) const EVENT_FILTERS: &[Parameter] = &[
    parameter("kind", Words(&["error", "warning", "audit"]), "The kind of event"),
    SERVICE,
    ENVIRONMENT,
    parameter("category", Words(CATEGORIES), "The category"),
    parameter("code", Texts, "The canonical code"),
    parameter("native_code", Texts, "The code as it was sent"),
    parameter("dialect", Texts, "The error model"),
    parameter("severity", Words(&["critical", "error", "warning", "info"]), "The severity"),
    parameter("fault", Texts, "Whose fault it is"),
    parameter("recovery", Texts, "What the caller can do"),
    OPERATION,
    CLIENT,
    parameter("version", Texts, "The version of the service"),
    parameter("fingerprint", Texts, "The group"),
    parameter("trace_id", Texts, "The trace"),
    parameter("session_id", Texts, "The session"),
    parameter("request_id", Texts, "The request"),
    parameter("token_hash", Texts, "The hash of the confirmation token"),
    parameter("quota_metric", Texts, "The quota"),
    parameter("finding", Texts, "One of the words in findings"),
    parameter("required_trust", Texts, "The trust that was required"),
    parameter("actual_trust", Texts, "The trust that was there"),
    parameter("danger_level", Texts, "The danger of the operation"),
    parameter("hidden", Flag, "Hidden failures only, or the others only"),
    parameter("denied", Flag, "Rows of trust_denials only, or the others only"),
    parameter("q", Text, "A part of the message, in any case"),
];

/// The states of a group.
pub(super) const GROUP_STATES: &[&str] = &["new", "regressed", "ongoing"];

pub(super) const GROUP_LIST: &[Parameter] = &[
    parameter("state", Words(GROUP_STATES), "The state of the group"),
    parameter("sort", Word(&["errors", "last_seen", "first_seen", "clients"]), "The order, descending"),
    parameter("limit", Count { least: 1, most: 500, default: 50 }, "The most groups"),
    parameter("offset", Count { least: 0, most: 1_000_000, default: 0 }, "The groups to skip"),
];

pub(super) const EVENT_LIST: &[Parameter] = &[
    parameter("limit", Count { least: 1, most: 1_000, default: 100 }, "The most events"),
    parameter("cursor", Text, "The value of next in the response before"),
];

pub(super) const EVENT_TIME: &[Parameter] =
    &[parameter("time", Time, "The time of the event, if it is known: a hint where to look")];

pub(super) const QUOTA_STATES: &[Parameter] = &[parameter("state", Texts, "The state of the quota")];

/// The parameter values of one request.
#[derive(Debug, Clone)]
pub(super) struct Values {
    known: Vec<&'static Parameter>,
    given: Vec<(&'static str, String)>,
    pub(super) now: i64,
}

impl Values {
    /// Parses the query string of a request.
    pub(super) fn parse(
        query: &str,
        groups: &'static [&'static [Parameter]],
        now: i64,
    ) -> Result<Self, QueryError> {
        let known: Vec<&'static Parameter> = groups.iter().copied().flatten().collect();
        let mut values = Self { known, given: Vec::new(), now };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let found = values.known.iter().copied().find(|parameter| parameter.name == name);
            let parameter = found.ok_or_else(|| values.unknown(&name))?;
            check(parameter, &value, now)?;
            if !parameter.kind.repeats() && values.text(parameter.name).is_some() {
                return Err(invalid(format!("The parameter {name} is given twice.")).hint("Give it once."));
            }
            if values.given.len() >= MAX_VALUES {
                let message = format!("The request has more than {MAX_VALUES} values.");
                return Err(invalid(message).hint("Name fewer, or use SQL."));
            }
            values.given.push((parameter.name, value.into_owned()));
        }
        Ok(values)
    }

    fn unknown(&self, name: &str) -> QueryError {
        let names: Vec<&str> = self.known.iter().map(|parameter| parameter.name).collect();
        let error = invalid(format!("There is no parameter '{}' here.", shortened(name)));
        let listed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        match closest_name(name, names.iter().copied()) {
            Some(closest) => error.hint(format!("Did you mean {closest}? There are: {listed}.")),
            None => error.hint(format!("There are: {listed}.")),
        }
    }

    /// Returns the value of a parameter that is given at most once.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(given, _)| *given == name).map(|(_, value)| value.as_str())
    }

    /// Returns all values of a parameter.
    pub(super) fn texts(&self, name: &str) -> Vec<&str> {
        self.given.iter().filter(|(given, _)| *given == name).map(|(_, value)| value.as_str()).collect()
    }

    /// Returns the value of a flag.
    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.text(name).map(|value| value == "true")
    }

    /// Returns the value of a count, or its default.
    pub(super) fn count(&self, name: &str) -> i64 {
        let default = self.known.iter().find_map(|parameter| match parameter.kind {
            Count { default, .. } if parameter.name == name => Some(default),
            _ => None,
        });
        let given = self.text(name).and_then(|value| value.parse().ok());
        given.or(default).unwrap_or_default()
    }

    /// Returns the time range.
    pub(super) fn range(&self) -> Result<TimeRange, QueryError> {
        TimeRange::resolve(self.text("from"), self.text("to"), self.count("buckets").max(1), self.now)
    }
}

fn invalid(message: String) -> QueryError {
    QueryError::new(QueryErrorKind::Invalid, message)
}

fn check(parameter: &Parameter, value: &str, now: i64) -> Result<(), QueryError> {
    let name = parameter.name;
    let wrong = |expected: String| {
        let message = format!("The parameter {name} cannot be '{}'.", shortened(value));
        Err(invalid(message).hint(format!("Write {expected}.")))
    };
    match parameter.kind {
        Time => range::parse(name, value, now).map(drop),
        Count { least, most, .. } => match value.parse::<i64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(()),
            _ => wrong(format!("a whole number from {least} to {most}")),
        },
        Word(words) | Words(words) if !words.contains(&value) => wrong(words.join(", ")),
        Flag if !matches!(value, "true" | "false") => wrong("true or false".to_owned()),
        Text | Texts | Word(_) | Words(_) | Flag => Ok(()),
    }
}

impl ParameterKind {
    fn repeats(self) -> bool {
        matches!(self, Texts | Words(_))
    }

    /// Returns the JSON schema of the parameter.
    pub(super) fn schema(self) -> Value {
        match self {
            Time | Text => json!({"type": "string"}),
            Texts => json!({"type": "array", "items": {"type": "string"}}),
            Count { least, most, default } => {
                json!({"type": "integer", "minimum": least, "maximum": most, "default": default})
            }
            Word(words) => json!({"type": "string", "enum": words, "default": words.first()}),
            Words(words) => json!({"type": "array", "items": {"type": "string", "enum": words}}),
            Flag => json!({"type": "boolean"}),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use classifier::Category;

    fn parse(query: &str) -> Result<Values, QueryError> {
        Values::parse(query, &[RANGE, EVENT_FILTERS, GROUP_LIST], 0)
    }

    #[test]
    fn values_are_read_by_their_kind() {
        let values = parse("service=a&service=&hidden=true&limit=7&q=%27%20OR%201").unwrap();
        assert_eq!(values.texts("service"), ["a", ""]);
        assert_eq!((values.flag("hidden"), values.flag("denied")), (Some(true), None));
        assert_eq!((values.count("limit"), values.count("offset")), (7, 0));
        assert_eq!(values.text("q"), Some("' OR 1"));
    }

    #[test]
    fn what_does_not_fit_is_rejected_in_a_sentence() {
        let many = "service=x&".repeat(MAX_VALUES + 1);
        for query in [
            "sevice=a",
            "limit=0",
            "limit=501",
            "limit=x",
            "hidden=yes",
            "sort=name",
            "category=nope",
            "from=soon",
            "q=a&q=b",
            "state=",
            &many,
        ] {
            let error = parse(query).unwrap_err();
            assert!(error.message.ends_with('.') && error.hint.is_some(), "{query}: {error}");
        }
        assert!(parse("sevice=a").unwrap_err().hint.unwrap().starts_with("Did you mean service?"));
    }

    #[test]
    fn categories_are_those_of_the_classifier() {
        assert!(Category::ALL.iter().map(|category| category.as_str()).eq(CATEGORIES.iter().copied()));
    }
}
