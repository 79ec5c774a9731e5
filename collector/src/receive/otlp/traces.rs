//! Spans, from the wire format.

use super::events::Events;
use super::lists::{self, ReadRecord};
use super::value::{Values, text};
use super::wire::{Field, Malformed, Message, Slice, wrong_type};
use super::{id, span_kind, span_status};
use crate::Refusal;
use crate::receive::records::Records;
use std::borrow::Cow;
use taxonomy::signal::{Attribute, Resource, Span, SpanStatus};

/// Hands every span of `body` over.
pub(super) fn read(body: &[u8], records: &mut impl Records) -> Result<(), Refusal> {
    let events_kept = records.limits().attributes;
    lists::read(body, Spans { events_kept, ..Spans::default() }, records)
}

/// The lists of one span; kept to be used again.
#[derive(Default)]
struct Spans<'a> {
    attributes: Vec<Attribute<'a>>,
    events: Events<'a>,
    /// Events of one span; the rest are not read.
    events_kept: usize,
}

impl<'a> ReadRecord<'a> for Spans<'a> {
    fn read(
        &mut self,
        slice: Slice<'a>,
        resource: &Resource<'_>,
        values: &mut Values,
        records: &mut impl Records,
    ) -> Result<(), Malformed> {
        self.attributes.clear();
        self.events.clear();
        let mut span = Span::default();
        let mut name = Cow::Borrowed("");
        let mut status = (SpanStatus::Unset, Cow::Borrowed(""));
        let mut message = Message::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, Field::Bytes(slice)) => span.trace_id = id(slice.bytes),
                (2, Field::Bytes(slice)) => span.span_id = id(slice.bytes),
                (5, Field::Bytes(slice)) => name = text(slice),
                (6, Field::Varint(number)) => span.kind = span_kind(number.cast_signed()),
                (7, Field::Fixed64(time)) => span.start_ns = time,
                (8, Field::Fixed64(time)) => span.end_ns = time,
                (9, Field::Bytes(slice)) => values.push(slice, &mut self.attributes)?,
                (11, Field::Bytes(slice)) => self.event(slice, values)?,
                (15, Field::Bytes(slice)) => status = read_status(slice)?,
                (1 | 2 | 5..=9 | 11 | 15, _) => wrong_type(&message)?,
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
    fn event(&mut self, slice: Slice<'a>, values: &mut Values) -> Result<(), Malformed> {
        if self.events.len() >= self.events_kept {
            return Ok(());
        }
        let first = self.events.attributes.len();
        let mut time_ns = 0;
        let mut name = Cow::Borrowed("");
        let mut message = Message::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, Field::Fixed64(time)) => time_ns = time,
                (2, Field::Bytes(slice)) => name = text(slice),
                (3, Field::Bytes(slice)) => values.push_after(first, slice, &mut self.events.attributes)?,
                (1..=3, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        self.events.push(time_ns, name, first);
        Ok(())
    }
}

fn read_status(slice: Slice<'_>) -> Result<(SpanStatus, Cow<'_, str>), Malformed> {
    let mut status = (SpanStatus::Unset, Cow::Borrowed(""));
    let mut message = Message::new(slice);
    while let Some((number, field)) = message.next()? {
        match (number, field) {
            (2, Field::Bytes(slice)) => status.1 = text(slice),
            (3, Field::Varint(number)) => status.0 = span_status(number.cast_signed()),
            (2 | 3, _) => wrong_type(&message)?,
            _ => {}
        }
    }
    Ok(status)
}

#[cfg(test)]
mod tests;
