//! Writes the attributes of an event: the fields of its record and of the enclosing telemetry outside the envelope.

use super::event_builder::{EventBuilder, Scratch};
use crate::envelope::Scope;
use crate::json::{Json, write};
use crate::redact::comma;

impl EventBuilder<'_> {
    /// Writes the fields of the record that are not stored elsewhere. Returns false when there are none.
    pub(super) fn write_attributes(&self, scope: &Scope<'_>, scratch: &mut Scratch) -> bool {
        scratch.attributes.clear();
        if !self.writes_attributes {
            return false;
        }
        let Some(telemetry) = self.telemetry else {
            return self.write_unread_fields(scope, &mut scratch.attributes);
        };
        self.write_telemetry_attributes(telemetry, scratch);
        let Scratch { attributes: out, telemetry_attributes, .. } = scratch;
        out.push('{');
        out.push_str(telemetry_attributes);
        let length = out.len();
        // The rest of the envelope is stored under the name of the attribute that held it.
        let mut first = telemetry_attributes.is_empty();
        comma(out, &mut first);
        write::string(out, &self.rules.redactor.text(self.location.name));
        out.push(':');
        if !self.write_unread_fields(scope, out) {
            out.truncate(length);
        }
        out.push('}');
        out.len() > "{}".len()
    }

    /// Appends the fields of the record that are not stored elsewhere, as an object. Appends nothing when
    /// there are none.
    fn write_unread_fields(&self, scope: &Scope<'_>, out: &mut String) -> bool {
        let mut first = true;
        if let Some(hash) = scope.arguments {
            out.push('{');
            first = false;
            out.push_str(&format!("\"arguments_hash\":\"{hash}\""));
        }
        let record = scope.record.filter(|_| scope.has_attributes).unwrap_or(Json::NULL);
        let end = out.len() + self.rules.limits.details_bytes;
        for (key, value) in record.fields().filter(|(key, value)| self.rules.names.is_attribute(key, *value))
        {
            if first {
                out.push('{');
            }
            if out.len() > end {
                comma(out, &mut first);
                out.push_str("\"_truncated\":true");
                break;
            }
            self.rules.redactor.field_of(out, &mut first, (key, value), end, record);
        }
        if !first {
            out.push('}');
        }
        !first
    }
}
