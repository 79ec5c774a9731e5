//! Passes on the calls of spans that neither failed nor hold a reply: nearly all spans of a healthy service.
//!
//! Such a span yields one call and nothing else, so only the fields by which calls are grouped are read, and no ids.
//!
//! Invariant: the call is the one that the full path through [`super::telemetry`] would pass on.

use super::emitter::Emitter;
use super::event_builder::{EventBuilder, Scratch};
use super::telemetry_context::TelemetryContext;
use super::{RecordOrigin, Rules};
use crate::context::{ContextField, EMPTY_FIELDS};
use crate::envelope::{Scope, Success};
use crate::event::{Outcome, Sink};
use crate::json::ScalarNode;
use crate::telemetry::attributes::{IndexedAttributes, to_scalar};
use crate::telemetry::{Span, failure};

/// The fields by which calls are grouped, except for the operation.
const FIELDS: [ContextField; 5] = [
    ContextField::Time,
    ContextField::Service,
    ContextField::Environment,
    ContextField::Duration,
    ContextField::Dialect,
];

/// Passes on the one call of a span. `name` is the operation, unless an attribute names it.
pub(super) fn emit(
    rules: &Rules,
    span: &Span<'_>,
    attributes: &IndexedAttributes<'_>,
    (name, is_unverified): (Option<&str>, bool),
    origin: &RecordOrigin<'_>,
    (scratch, sink): (&mut Scratch, &mut impl Sink),
) {
    let scalar =
        |field: ContextField| attributes.fields[field as usize].map(|attribute| to_scalar(&attribute.value));
    let operation = scalar(ContextField::Operation).or(name.map(ScalarNode::text));
    let others = FIELDS.map(scalar);
    let mut fields = EMPTY_FIELDS;
    fields[ContextField::Operation as usize] = operation.as_ref().map(ScalarNode::as_json);
    for (field, value) in FIELDS.into_iter().zip(&others) {
        fields[field as usize] = value.as_ref().map(ScalarNode::as_json);
    }
    let telemetry = TelemetryContext::of_plain_call(span, attributes, &fields);
    let scope = Scope { fields: &fields, ..Scope::EMPTY };
    let call = Success { dialect: failure::protocol_dialect(attributes), outcome: Outcome::Ok, count: 1 };
    Emitter::new(EventBuilder::new(rules, origin, Some(&telemetry)), scratch, sink).emit_call(
        call,
        is_unverified,
        &scope,
    );
}
