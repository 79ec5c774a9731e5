//! Context fields from outside the record itself: from a prefix, a request or a transcript.

use super::Scope;
use crate::context::{ContextField, ContextFields};
use crate::json::{Json, ScalarNode};

/// Values of a few context fields, held as nodes so that they can be used alongside those of a record.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ExtraFields<'t> {
    time: Option<ScalarNode<'t>>,
    service: Option<ScalarNode<'t>>,
    operation: Option<ScalarNode<'t>>,
    duration: Option<ScalarNode<'t>>,
}

impl<'t> ExtraFields<'t> {
    pub(super) fn with_time(self, micros: Option<i64>) -> Self {
        Self { time: micros.map(ScalarNode::int), ..self }
    }

    pub(super) fn with_service(self, name: Option<&'t str>) -> Self {
        Self { service: name.map(ScalarNode::text), ..self }
    }

    pub(super) fn with_operation(self, name: Option<&'t str>) -> Self {
        Self { operation: name.map(ScalarNode::text), ..self }
    }

    pub(super) fn with_duration_ms(self, millis: Option<f64>) -> Self {
        Self { duration: millis.map(ScalarNode::float), ..self }
    }

    fn values(&self) -> impl Iterator<Item = (ContextField, Option<Json<'_>>)> {
        [
            (ContextField::Time, &self.time),
            (ContextField::Service, &self.service),
            (ContextField::Operation, &self.operation),
            (ContextField::Duration, &self.duration),
        ]
        .into_iter()
        .map(|(field, node)| (field, node.as_ref().map(ScalarNode::as_json)))
    }

    /// Calls `read` with a scope in which these values fill the missing fields.
    pub(super) fn fill<R>(&self, scope: &Scope<'_>, read: impl FnOnce(&Scope<'_>) -> R) -> R {
        let mut fields: ContextFields<'_> = *scope.fields;
        for (field, value) in self.values() {
            fields[field as usize] = fields[field as usize].or(value);
        }
        read(&Scope { fields: &fields, ..*scope })
    }

    /// Calls `read` with a scope in which these values replace the existing ones.
    pub(super) fn replace<R>(&self, scope: &Scope<'_>, read: impl FnOnce(&Scope<'_>) -> R) -> R {
        let mut fields: ContextFields<'_> = *scope.fields;
        for (field, value) in self.values() {
            fields[field as usize] = value.or(fields[field as usize]);
        }
        read(&Scope { fields: &fields, ..*scope })
    }
}
