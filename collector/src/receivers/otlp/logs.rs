//! Decodes log records from protobuf.

use super::any_value::ValueReader;
use super::export_request::{self, RecordReader};
use super::protobuf::{BodySlice, DecodeError, FieldValue, MessageReader, wrong_type};
use super::protobuf_value::text;
use super::{id, severity};
use crate::Rejection;
use crate::receivers::record_consumer::RecordConsumer;
use classifier::telemetry::{Attribute, LogRecord, Resource};
use std::borrow::Cow;

/// Passes every log record of `body` to `records`.
pub(super) fn read(body: &[u8], records: &mut impl RecordConsumer) -> Result<(), Rejection> {
    export_request::read(body, Logs::default(), records)
}

/// The attributes of one record; the list is reused for the next.
#[derive(Default)]
struct Logs<'a> {
    attributes: Vec<Attribute<'a>>,
}

impl<'a> RecordReader<'a> for Logs<'a> {
    fn read(
        &mut self,
        slice: BodySlice<'a>,
        resource: &Resource<'_>,
        values: &mut ValueReader,
        records: &mut impl RecordConsumer,
    ) -> Result<(), DecodeError> {
        self.attributes.clear();
        let mut record = LogRecord::default();
        let mut event_name = Cow::Borrowed("");
        let mut body = None;
        let mut message = MessageReader::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, FieldValue::Fixed64(time)) => record.time_ns = time,
                (2, FieldValue::Varint(number)) => record.severity = severity(number.cast_signed()),
                (5, FieldValue::Bytes(slice)) => body = Some(values.value(slice)?),
                (6, FieldValue::Bytes(slice)) => values.push(slice, &mut self.attributes)?,
                (9, FieldValue::Bytes(slice)) => record.trace_id = id(slice.bytes),
                (10, FieldValue::Bytes(slice)) => record.span_id = id(slice.bytes),
                (11, FieldValue::Fixed64(time)) => record.observed_ns = time,
                (12, FieldValue::Bytes(slice)) => event_name = text(slice),
                (1 | 2 | 5 | 6 | 9..=12, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        record.event_name = &event_name;
        record.body = body.as_ref();
        record.attributes = &self.attributes;
        records.log(&record, resource);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
