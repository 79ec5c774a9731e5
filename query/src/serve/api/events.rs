//! `GET /api/v1/events`: events, newest first, with totals and facets of all matching events.

use super::facets;
use super::parameters::CATEGORIES;
use super::range::{self, shortened};
use super::request::{ApiRequest, Problem, Row, list, series, text, whole};
use super::shape::{
    CATEGORY, COUNTS, Member, NULLABLE_FLAG, NULLABLE_TEXT, NULLABLE_WHOLE, RANGE, Shape, TIME,
};
use super::statement::{COUNT, EVENTS_ONCE, HIDDEN, Statement, fault_column};
use crate::error::{QueryError, QueryErrorKind};
use serde_json::{Map, Value, json};

/// The members of an event in a list.
pub(super) const EVENT: &[Member] = &[
    ("event_id", Shape::Text),
    ("time", Shape::Time),
    ("kind", Shape::Text),
    ("dialect", Shape::Text),
    ("code", NULLABLE_TEXT),
    ("canonical", Shape::Text),
    ("category", CATEGORY),
    ("severity", Shape::Text),
    ("retryable", NULLABLE_FLAG),
    ("recovery", NULLABLE_TEXT),
    ("fault", Shape::Optional(&Shape::Text)),
    ("inferred", Shape::Flag),
    ("hidden", Shape::Flag),
    ("message", NULLABLE_TEXT),
    ("fingerprint", Shape::Text),
    ("service", NULLABLE_TEXT),
    ("environment", NULLABLE_TEXT),
    ("client", NULLABLE_TEXT),
    ("operation", NULLABLE_TEXT),
    ("duration_us", NULLABLE_WHOLE),
    ("trace_id", NULLABLE_TEXT),
    ("represents", NULLABLE_WHOLE),
];

/// The shape of series by category.
pub(super) const BY_CATEGORY: Shape = Shape::Map(&COUNTS);

pub(super) const SHAPE: Shape = Shape::Object(&[&[
    RANGE,
    ("total", Shape::Whole),
    ("hidden", Shape::Whole),
    TIME,
    ("by_category", BY_CATEGORY),
    ("facets", Shape::Optional(&Shape::Map(&facets::SHAPE))),
    ("events", Shape::List(&Shape::Object(&[EVENT]))),
    ("next", NULLABLE_TEXT),
]]);

const FACETS: [(&str, &str); 4] =
    [("service", "service"), ("operation", "operation"), ("code", "canonical"), ("client", "client")];

/// Returns the columns of an event in a list.
pub(super) fn columns() -> String {
    let column = |(name, _): &Member| match *name {
        "fault" => format!("{} AS fault", fault_column()),
        name => name.to_owned(),
    };
    EVENT.iter().map(column).collect::<Vec<_>>().join(", ")
}

pub(super) async fn respond(request: ApiRequest) -> Result<Value, Problem> {
    let cursor = request.values.text("cursor").map(Cursor::parse).transpose()?;
    let (counted, page) = (counts(&request), page(&request, cursor.as_ref()));
    let (counted, mut events, facets) = if cursor.is_some() {
        let [counted, events] = request.rows([counted, page]).await?;
        (counted, events, None)
    } else {
        let facets = facets::statement(&FACETS, 8, |binder| {
            let within = binder.within("time", &request.range);
            within + &binder.event_filters(&request.values, &["message"])
        });
        let [counted, events, facets] = request.rows([counted, page, facets]).await?;
        (counted, events, Some(facets::by_name(&FACETS, facets)))
    };
    let limit = usize::try_from(request.values.count("limit")).unwrap_or_default();
    let has_more = events.len() > limit;
    events.truncate(limit);
    let next = events.last().filter(|_| has_more).and_then(Cursor::after);
    let sum = |column: &str| counted.iter().map(|row| whole(row, column)).sum::<i64>();
    let mut response = json!({
        "range": request.range.json(),
        "total": sum("errors"),
        "hidden": sum("hidden"),
        "time": request.range.times(),
        "by_category": by_category(&request, &counted.iter().collect::<Vec<_>>()),
        "events": list(events),
        "next": next,
    });
    if let Some(facets) = facets {
        response["facets"] = facets;
    }
    Ok(response)
}

/// Returns a series of the column `errors` for each category that has any.
pub(super) fn by_category(request: &ApiRequest, rows: &[&Row]) -> Value {
    let of = |category: &&str| {
        let rows: Vec<&Row> =
            rows.iter().copied().filter(|row| text(row, "category") == Some(category)).collect();
        let is_there = !rows.is_empty();
        is_there.then(|| ((*category).to_owned(), series(&request.range, rows, "errors").into()))
    };
    CATEGORIES.iter().filter_map(of).collect::<Map<_, _>>().into()
}

fn counts(request: &ApiRequest) -> Statement {
    Statement::build(|binder| {
        let slot = request.range.slot("time");
        let within = binder.within("time", &request.range);
        let filters = binder.event_filters(&request.values, &["message"]);
        format!(
            "SELECT slot, category, {COUNT} AS errors, {HIDDEN} AS hidden
             FROM (SELECT {slot} AS slot, category, represents, hidden FROM {EVENTS_ONCE} WHERE {within}{filters}) AS slotted
             GROUP BY slot, category"
        )
    })
}

fn page(request: &ApiRequest, cursor: Option<&Cursor>) -> Statement {
    Statement::build(|binder| {
        let within = binder.within("time", &request.range);
        let filters = binder.event_filters(&request.values, &["message"]);
        let after = cursor.map(|cursor| {
            let time = range::text(cursor.time);
            let (earlier, same) = (binder.bind(time.clone()), binder.bind(time));
            let id = binder.bind(cursor.event_id.clone());
            format!(" AND (time < {earlier} OR (time = {same} AND event_id < {id}))")
        });
        let limit = request.values.count("limit") + 1;
        let (columns, after) = (columns(), after.unwrap_or_default());
        format!(
            "SELECT {columns} FROM {EVENTS_ONCE} WHERE {within}{filters}{after}
             ORDER BY time DESC, event_id DESC LIMIT {limit}"
        )
    })
}

/// The position at which a page of events ended.
struct Cursor {
    time: i64,
    event_id: String,
}

impl Cursor {
    fn parse(text: &str) -> Result<Self, QueryError> {
        let parts = text.split_once('.').and_then(|(time, id)| Some((time.parse().ok()?, id)));
        let is_id = |id: &str| {
            !id.is_empty() && id.len() <= 64 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        match parts {
            Some((time, id)) if is_id(id) => Ok(Self { time, event_id: id.to_owned() }),
            _ => Err(QueryError::new(
                QueryErrorKind::Invalid,
                format!("The parameter cursor cannot be '{}'.", shortened(text)),
            )
            .hint("Give the value of next in the response before, or none.")),
        }
    }

    /// Returns the cursor for the events after this one.
    fn after(event: &Row) -> Option<String> {
        let time = range::parse("time", text(event, "time")?, 0).ok()?;
        Some(format!("{time}.{}", text(event, "event_id")?))
    }
}
