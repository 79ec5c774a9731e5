//! The shape of responses, as data, from which the response schemas of the `openapi.json` are made.

use serde_json::{Map, Value, json};

/// The shape of a JSON value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// Any value.
    Any,
    Text,
    /// An RFC 3339 time.
    Time,
    Whole,
    Number,
    Flag,
    /// One of these words.
    Words(&'static [&'static str]),
    /// This shape, or null.
    Nullable(&'static Self),
    /// A member that may be absent; it may be null as well.
    Optional(&'static Self),
    /// A member that may be absent.
    Absent(&'static Self),
    List(&'static Self),
    /// An object whose members have names from the data.
    Map(&'static Self),
    /// An object with these members and no others.
    Object(&'static [&'static [Member]]),
    /// An object with these members and others.
    Open(&'static [&'static [Member]]),
}

/// A member of an object.
pub(super) type Member = (&'static str, Shape);

pub(super) const NULLABLE_TEXT: Shape = Shape::Nullable(&Shape::Text);
pub(super) const NULLABLE_TIME: Shape = Shape::Nullable(&Shape::Time);
pub(super) const NULLABLE_WHOLE: Shape = Shape::Nullable(&Shape::Whole);
pub(super) const NULLABLE_NUMBER: Shape = Shape::Nullable(&Shape::Number);
pub(super) const NULLABLE_FLAG: Shape = Shape::Nullable(&Shape::Flag);
pub(super) const TEXTS: Shape = Shape::List(&Shape::Text);
/// The shape of a series: one number for each bucket.
pub(super) const COUNTS: Shape = Shape::List(&Shape::Whole);
pub(super) const CATEGORY: Shape = Shape::Words(super::parameters::CATEGORIES);

/// The member `range` of most responses.
pub(super) const RANGE: Member =
    ("range", Shape::Object(&[&[("from", Shape::Time), ("to", Shape::Time), ("step_s", Shape::Whole)]]));
/// The member `time`, which holds the starts of the buckets.
pub(super) const TIME: Member = ("time", COUNTS);

/// The shape of every error response.
pub(super) const ERROR: Shape = Shape::Object(&[&[(
    "error",
    Shape::Object(&[&[
        ("code", Shape::Text),
        ("message", Shape::Text),
        ("remedy", Shape::Optional(&Shape::Text)),
        ("position", Shape::Optional(&Shape::Object(&[&[("line", Shape::Whole), ("column", Shape::Whole)]]))),
    ]]),
)]]);

impl Shape {
    /// Returns the shape as a JSON schema.
    pub(super) fn schema(&self) -> Value {
        match self {
            Self::Any => json!({}),
            Self::Text => json!({"type": "string"}),
            Self::Time => json!({"type": "string", "format": "date-time"}),
            Self::Whole => json!({"type": "integer"}),
            Self::Number => json!({"type": "number"}),
            Self::Flag => json!({"type": "boolean"}),
            Self::Words(words) => json!({"type": "string", "enum": words}),
            Self::Nullable(inner) | Self::Optional(inner) => {
                json!({"anyOf": [inner.schema(), {"type": "null"}]})
            }
            Self::Absent(inner) => inner.schema(),
            Self::List(inner) => json!({"type": "array", "items": inner.schema()}),
            Self::Map(inner) => json!({"type": "object", "additionalProperties": inner.schema()}),
            Self::Object(members) => object(members, false),
            Self::Open(members) => object(members, true),
        }
    }
}

fn object(groups: &[&[Member]], is_open: bool) -> Value {
    let members = || groups.iter().copied().flatten();
    let properties: Map<String, Value> =
        members().map(|(name, shape)| ((*name).to_owned(), shape.schema())).collect();
    let required: Vec<&str> = members()
        .filter(|(_, shape)| !matches!(shape, Shape::Optional(_) | Shape::Absent(_)))
        .map(|(name, _)| *name)
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": is_open,
    })
}
