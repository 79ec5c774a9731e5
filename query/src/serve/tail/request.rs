//! The parameters of a tail request, which select its events.

use super::message::TailPosition;
use crate::error::{QueryError, QueryErrorKind, closest_name};
use axum::http::HeaderValue;
use classifier::Category;
use url::form_urlencoded;

/// The maximum number of stored events that precede the live ones.
const MAX_RECENT: usize = 1_000;
/// The maximum number of parameters.
const MAX_VALUES: usize = 100;

const NAMES: [&str; 5] = ["category", "service", "code", "where", "recent"];

/// The events that a client asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TailRequest {
    pub(super) categories: Vec<Category>,
    pub(super) services: Vec<String>,
    pub(super) codes: Vec<String>,
    pub(super) condition: Option<String>,
    pub(super) recent: usize,
    /// The position after which the tail continues.
    pub(super) after: Option<TailPosition>,
}

impl TailRequest {
    pub(super) fn read(query: &str, last: Option<&HeaderValue>) -> Result<Self, QueryError> {
        let mut request = Self::default();
        for (position, (name, value)) in form_urlencoded::parse(query.as_bytes()).enumerate() {
            if position >= MAX_VALUES {
                return Err(bad(format!("there are more than {MAX_VALUES} parameters")));
            }
            request.take(&name, value.into_owned())?;
        }
        let last = last.map(|last| last.to_str().ok().and_then(TailPosition::parse));
        let unknown = || bad("Last-Event-ID is not an id of this server".to_owned());
        request.after = last.map(|position| position.ok_or_else(unknown)).transpose()?;
        Ok(request)
    }

    fn take(&mut self, name: &str, value: String) -> Result<(), QueryError> {
        match name {
            "category" => self.categories.push(category(&value)?),
            "service" => self.services.push(value),
            "code" => self.codes.push(value),
            "where" if self.condition.is_some() => {
                return Err(bad("there are two conditions".to_owned()).hint("join them with AND"));
            }
            "where" => self.condition = Some(value),
            "recent" => self.recent = recent(&value)?,
            other => {
                let unknown = bad(format!("there is no parameter '{other}'"));
                return Err(match closest_name(other, NAMES) {
                    Some(near) => unknown.hint(format!("did you mean '{near}'?")),
                    None => unknown.hint(format!("there are {}", NAMES.join(", "))),
                });
            }
        }
        Ok(())
    }

    /// Returns the filters by column value as SQL, or `None` when there are none.
    pub(super) fn simple(&self) -> Option<String> {
        let categories = self.categories.iter().map(|category| quoted(category.as_str()));
        let services = self.services.iter().map(|service| quoted(service));
        let codes = self.codes.iter().map(|code| matching(code));
        let one_of = |column: &str, values: Vec<String>| {
            (!values.is_empty()).then(|| format!("{column} IN ({})", values.join(", ")))
        };
        let codes: Vec<String> = codes.collect();
        let all = [
            one_of("category", categories.collect()),
            one_of("service", services.collect()),
            (!codes.is_empty()).then(|| format!("({})", codes.join(" OR "))),
        ];
        let all: Vec<String> = all.into_iter().flatten().collect();
        (!all.is_empty()).then(|| all.join(" AND "))
    }

    /// Returns all filters as SQL. The line break keeps a comment at the end of a condition from hiding the text that
    /// follows.
    pub(super) fn sql(&self) -> String {
        let condition = self.condition.as_ref().map(|condition| format!("({condition}\n)"));
        let all: Vec<String> = self.simple().into_iter().chain(condition).collect();
        if all.is_empty() { "true".to_owned() } else { all.join(" AND ") }
    }
}

fn bad(message: String) -> QueryError {
    QueryError::new(QueryErrorKind::Invalid, message)
}

fn category(word: &str) -> Result<Category, QueryError> {
    Category::from_payload(word).ok_or_else(|| {
        let names: Vec<&str> = Category::ALL.iter().map(|category| category.as_str()).collect();
        let unknown = QueryError::new(QueryErrorKind::Unknown, format!("there is no category '{word}'"));
        match closest_name(word, names.iter().copied()) {
            Some(near) => unknown.hint(format!("did you mean '{near}'?")),
            None => unknown.hint(format!("there are {}", names.join(", "))),
        }
    })
}

fn recent(value: &str) -> Result<usize, QueryError> {
    let number = value.parse().ok().filter(|number| *number <= MAX_RECENT);
    number.ok_or_else(|| {
        bad(format!("'{value}' is no number of recent events; at most {MAX_RECENT} are possible"))
    })
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns a condition that matches a code as it was sent or its canonical code; a trailing star matches any suffix.
fn matching(code: &str) -> String {
    let compared = match code.strip_suffix('*') {
        Some(prefix) => {
            let escaped = prefix.replace('\\', r"\\").replace('%', r"\%").replace('_', r"\_");
            format!("LIKE {}", quoted(&format!("{escaped}%")))
        }
        None => format!("= {}", quoted(code)),
    };
    format!("code {compared} OR canonical {compared}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<TailRequest, QueryError> {
        TailRequest::read(query, None)
    }

    #[test]
    fn filters_become_sql() {
        assert_eq!(read("").unwrap().sql(), "true");
        let request =
            read("category=rate-limit&category=TOKEN&service=it%27s&code=RATE_*&code=-32601").unwrap();
        assert_eq!(
            request.sql(),
            "category IN ('RATE_LIMIT', 'TOKEN') AND service IN ('it''s') AND \
             (code LIKE 'RATE\\_%' OR canonical LIKE 'RATE\\_%' OR code = '-32601' OR canonical = '-32601')"
        );
        assert_eq!(read("where=hidden+--+it+is").unwrap().sql(), "(hidden -- it is\n)");
    }

    #[test]
    fn mistakes_are_told() {
        for (query, words) in [
            ("categroy=TOKEN", "did you mean 'category'?"),
            ("category=TOKNE", "did you mean 'TOKEN'?"),
            ("recent=many", "'many' is no number"),
            ("recent=1001", "at most 1000"),
            ("where=true&where=false", "join them with AND"),
            (&"service=a&".repeat(101), "more than 100"),
        ] {
            let error = read(query).unwrap_err().to_string();
            assert!(error.contains(words), "{query}: {error}");
        }
        let last = HeaderValue::from_static("seventeen");
        assert!(TailRequest::read("", Some(&last)).is_err());
        let last = HeaderValue::from_static("17.3");
        assert_eq!(TailRequest::read("", Some(&last)).unwrap().after, TailPosition::parse("17.3"));
    }
}
