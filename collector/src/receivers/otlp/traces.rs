//! Decodes spans from protobuf.

use super::any_value::ValueReader;
use super::export_request::{self, RecordReader};
use super::protobuf::{BodySlice, DecodeError, FieldValue, MessageReader, wrong_type};
use super::protobuf_value::text;
use super::span_events::SpanEventBuffer;
use super::{id, span_kind, span_status};
use crate::Rejection;
use crate::receivers::record_consumer::RecordConsumer;
use classifier::telemetry::{Attribute, Resource, Span, SpanStatus};
use std::borrow::Cow;

/// Passes every span of `body` to `records`.
pub(super) fn read(body: &[u8], records: &mut impl RecordConsumer) -> Result<(), Rejection> {
    let events_kept = records.limits().attributes;
    export_request::read(body, Spans { events_kept, ..Spans::default() }, records)
}

/// The lists of one span, which are reused for the next.
#[derive(Default)]
struct Spans<'a> {
    attributes: Vec<Attribute<'a>>,
    events: SpanEventBuffer<'a>,
    /// The most events of one span that are read.
    events_kept: usize,
}

impl<'a> RecordReader<'a> for Spans<'a> {
    fn read(
        &mut self,
        slice: BodySlice<'a>,
        resource: &Resource<'_>,
        values: &mut ValueReader,
        records: &mut impl RecordConsumer,
    ) -> Result<(), DecodeError> {
        self.attributes.clear();
        self.events.clear();
        let mut span = Span::default();
        let mut name = Cow::Borrowed("");
        let mut status = (SpanStatus::Unset, Cow::Borrowed(""));
        let mut message = MessageReader::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, FieldValue::Bytes(slice)) => span.trace_id = id(slice.bytes),
                (2, FieldValue::Bytes(slice)) => span.span_id = id(slice.bytes),
                (4, FieldValue::Bytes(slice)) => span.parent_span_id = id(slice.bytes),
                (5, FieldValue::Bytes(slice)) => name = text(slice),
                (6, FieldValue::Varint(number)) => span.kind = span_kind(number.cast_signed()),
                (7, FieldValue::Fixed64(time)) => span.start_ns = time,
                (8, FieldValue::Fixed64(time)) => span.end_ns = time,
                (9, FieldValue::Bytes(slice)) => values.push(slice, &mut self.attributes)?,
                (11, FieldValue::Bytes(slice)) => self.event(slice, values)?,
                (15, FieldValue::Bytes(slice)) => status = read_status(slice)?,
                (1 | 2 | 4..=9 | 11 | 15, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        let events = self.events.views();
        span.name = &name;
        (span.status, span.status_message) = (status.0, &status.1);
        (span.attributes, span.events) = (&self.attributes, &events);
        records.span(&span, resource);
        Ok(())
    }
}

impl<'a> Spans<'a> {
    fn event(&mut self, slice: BodySlice<'a>, values: &mut ValueReader) -> Result<(), DecodeError> {
        if self.events.len() >= self.events_kept {
            return Ok(());
        }
        let first = self.events.attributes.len();
        let mut time_ns = 0;
        let mut name = Cow::Borrowed("");
        let mut message = MessageReader::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, FieldValue::Fixed64(time)) => time_ns = time,
                (2, FieldValue::Bytes(slice)) => name = text(slice),
                (3, FieldValue::Bytes(slice)) => {
                    values.push_after(first, slice, &mut self.events.attributes)?;
                }
                (1..=3, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        self.events.push(time_ns, name, first);
        Ok(())
    }
}

fn read_status(slice: BodySlice<'_>) -> Result<(SpanStatus, Cow<'_, str>), DecodeError> {
    let mut status = (SpanStatus::Unset, Cow::Borrowed(""));
    let mut message = MessageReader::new(slice);
    while let Some((number, field)) = message.next()? {
        match (number, field) {
            (2, FieldValue::Bytes(slice)) => status.1 = text(slice),
            (3, FieldValue::Varint(number)) => status.0 = span_status(number.cast_signed()),
            (2 | 3, _) => wrong_type(&message)?,
            _ => {}
        }
    }
    Ok(status)
}

#[cfg(test)]
mod tests;
