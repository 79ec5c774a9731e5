//! Log records, from the wire format.

use super::lists::{self, ReadRecord};
use super::value::{Values, text};
use super::wire::{Field, Malformed, Message, Slice, wrong_type};
use super::{id, severity};
use crate::Refusal;
use crate::receive::records::Records;
use std::borrow::Cow;
use taxonomy::signal::{Attribute, LogRecord, Resource};

/// Hands every log record of `body` over.
pub(super) fn read(body: &[u8], records: &mut impl Records) -> Result<(), Refusal> {
    lists::read(body, Logs::default(), records)
}

/// The list of one record; kept to be used again.
#[derive(Default)]
struct Logs<'a> {
    attributes: Vec<Attribute<'a>>,
}

impl<'a> ReadRecord<'a> for Logs<'a> {
    fn read(
        &mut self,
        slice: Slice<'a>,
        resource: &Resource<'_>,
        values: &mut Values,
        records: &mut impl Records,
    ) -> Result<(), Malformed> {
        self.attributes.clear();
        let mut record = LogRecord::default();
        let mut event_name = Cow::Borrowed("");
        let mut body = None;
        let mut message = Message::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, Field::Fixed64(time)) => record.time_ns = time,
                (2, Field::Varint(number)) => record.severity = severity(number.cast_signed()),
                (5, Field::Bytes(slice)) => body = Some(values.value(slice)?),
                (6, Field::Bytes(slice)) => values.push(slice, &mut self.attributes)?,
                (9, Field::Bytes(slice)) => record.trace_id = id(slice.bytes),
                (10, Field::Bytes(slice)) => record.span_id = id(slice.bytes),
                (11, Field::Fixed64(time)) => record.observed_ns = time,
                (12, Field::Bytes(slice)) => event_name = text(slice),
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
