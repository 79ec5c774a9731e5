//! Classifies data points of call histograms, which state how many calls of an operation had which outcome.
//!
//! A point describes many calls at once and no failure in particular, so it yields traffic and no events.

use super::emitter::Emitter;
use super::event_builder::EventBuilder;
use super::telemetry_context::{HexIds, TelemetryContext, TelemetryFields};
use super::{Classifier, RecordOrigin};
use crate::envelope::{Scope, Success};
use crate::event::{Outcome, Sink};
use crate::telemetry::attributes::IndexedAttributes;
use crate::telemetry::{CallPoint, Resource, Span, failure};

impl Classifier {
    /// Classifies one data point. The points of failed calls have an error code or an error type.
    pub fn call_point(
        &mut self,
        point: &CallPoint<'_>,
        resource: &Resource<'_>,
        origin: &RecordOrigin<'_>,
        sink: &mut impl Sink,
    ) {
        let Self { rules, scratch, .. } = self;
        let attributes = IndexedAttributes::new(&rules.attribute_names, resource, point.attributes);
        let has_failed = failure::from_attributes(&attributes, &rules.registry).is_some();
        let is_unverified = attributes.calls_tool() && !has_failed;
        let ids = HexIds::new(None, None);
        let fields_by_key = TelemetryFields::new(&attributes, &ids);
        let fields = fields_by_key.as_json();
        let span =
            Span { kind: point.side, end_ns: point.time_ns, attributes: point.attributes, ..Span::default() };
        let telemetry = TelemetryContext::from_span(&span, &attributes, &fields, origin);
        let outcome = if has_failed { Outcome::Failed } else { Outcome::Ok };
        let dialect = failure::protocol_dialect(&attributes);
        let mut emitter = Emitter::new(EventBuilder::new(rules, origin, Some(&telemetry)), scratch, sink);
        let success = Success { dialect, outcome, count: point.calls };
        let scope = Scope { fields: telemetry.fields, ..Scope::EMPTY };
        emitter.emit_call(success, is_unverified, &scope);
    }
}
