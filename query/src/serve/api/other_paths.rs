//! The paths under `/api/v1/` that are served elsewhere, for the `openapi.json`: their parameters, bodies and responses.

use super::parameters::{CATEGORIES, Parameter, ParameterKind};
use super::shape::{NULLABLE_TEXT, Shape, TEXTS};

/// An operation that is served elsewhere.
pub(super) struct OtherPath {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) about: &'static str,
    pub(super) parameters: &'static [Parameter],
    /// Request headers: name, purpose, and whether it is required.
    pub(super) headers: &'static [(&'static str, &'static str, bool)],
    /// The media types of the request body, each with its shape.
    pub(super) body: &'static [(&'static str, Shape)],
    pub(super) status: &'static str,
    /// The media types of the response, each with its shape.
    pub(super) response: &'static [(&'static str, Shape)],
    /// False for paths that are open to everybody.
    pub(super) needs_token: bool,
}

const JSON: &str = "application/json";
const CSRF: (&str, &str, bool) =
    ("X-CSRF-Token", "The member csrf of the session; required if the request has its cookie", false);

const SQL: Shape = Shape::Object(&[&[
    ("query", Shape::Text),
    ("params", Shape::Absent(&Shape::List(&Shape::Any))),
    ("max_rows", Shape::Absent(&Shape::Nullable(&Shape::Whole))),
]]);

const SQL_RESULT: Shape = Shape::Object(&[&[
    ("columns", Shape::List(&Shape::Object(&[&[("name", Shape::Text), ("type", Shape::Text)]]))),
    ("rows", Shape::List(&Shape::Map(&Shape::Any))),
    ("row_count", Shape::Whole),
    ("elapsed_ms", Shape::Number),
    ("truncated", Shape::Flag),
]]);

const SESSION: Shape = Shape::Object(&[&[
    ("required", Shape::Flag),
    ("signed_in", Shape::Flag),
    ("name", NULLABLE_TEXT),
    ("scopes", TEXTS),
    ("csrf", NULLABLE_TEXT),
    ("version", Shape::Text),
]]);

/// Beside these members, there is one for each group of metrics.
const STATUS: Shape = Shape::Open(&[&[
    ("version", Shape::Text),
    ("ready", Shape::Flag),
    (
        "capture",
        Shape::Map(&Shape::Object(&[&[
            ("calls", Shape::Whole),
            ("unverified_calls", Shape::Whole),
            ("finding", NULLABLE_TEXT),
        ]])),
    ),
    ("errors", Shape::Object(&[&[("wal", NULLABLE_TEXT), ("flush", NULLABLE_TEXT)]])),
    ("set_aside", TEXTS),
    ("replay", Shape::Map(&Shape::Whole)),
]]);

const fn parameter(name: &'static str, kind: ParameterKind, about: &'static str) -> Parameter {
    Parameter { name, about, kind }
}

/// All operations that are served elsewhere.
pub(super) const OTHER_PATHS: &[OtherPath] = &[
    OtherPath {
        method: "post",
        path: "/api/v1/sql",
        about: "Runs one SQL statement that reads. The statement can be sent as text as well.",
        parameters: &[],
        headers: &[CSRF],
        body: &[(JSON, SQL), ("text/plain", Shape::Text), ("application/sql", Shape::Text)],
        status: "200",
        response: &[
            (JSON, SQL_RESULT),
            ("text/csv", Shape::Text),
            ("application/vnd.apache.parquet", Shape::Any),
            ("application/vnd.apache.arrow.stream", Shape::Any),
        ],
        needs_token: true,
    },
    OtherPath {
        method: "get",
        path: "/api/v1/tail",
        about: "Live events, as server-sent events: each is a JSON object with the columns of the table events.",
        parameters: &[
            parameter("category", ParameterKind::Words(CATEGORIES), "The category"),
            parameter("service", ParameterKind::Texts, "The service"),
            parameter("code", ParameterKind::Texts, "The canonical code; it may end with *"),
            parameter("where", ParameterKind::Text, "A condition in SQL over the columns of events"),
            parameter(
                "recent",
                ParameterKind::Count { least: 0, most: 1_000, default: 0 },
                "The number of stored events to send first, the newest ones",
            ),
        ],
        headers: &[("Last-Event-ID", "The id after which a tail is continued", false)],
        body: &[],
        status: "200",
        response: &[("text/event-stream", Shape::Text)],
        needs_token: true,
    },
    OtherPath {
        method: "get",
        path: "/api/v1/status",
        about: "The metrics of the server by group, as in docs/metrics.md; what never happened is left out of counts by reason.",
        parameters: &[],
        headers: &[],
        body: &[],
        status: "200",
        response: &[(JSON, STATUS)],
        needs_token: true,
    },
    OtherPath {
        method: "get",
        path: "/api/v1/session",
        about: "Whether tokens are required, and who is signed in.",
        parameters: &[],
        headers: &[],
        body: &[],
        status: "200",
        response: &[(JSON, SESSION)],
        needs_token: false,
    },
    OtherPath {
        method: "post",
        path: "/api/v1/session",
        about: "Signs a browser in, and sets a cookie. Later requests that are not GET need the header X-CSRF-Token.",
        parameters: &[],
        headers: &[],
        body: &[(JSON, Shape::Object(&[&[("token", Shape::Text)]]))],
        status: "200",
        response: &[(JSON, SESSION)],
        needs_token: false,
    },
    OtherPath {
        method: "delete",
        path: "/api/v1/session",
        about: "Signs a browser out.",
        parameters: &[],
        headers: &[CSRF],
        body: &[],
        status: "204",
        response: &[],
        needs_token: false,
    },
];
