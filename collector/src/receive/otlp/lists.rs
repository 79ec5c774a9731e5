//! The lists around records, which traces and logs share: a request holds resources (field 1), a resource
//! describes itself (1) and holds scopes (2), a scope holds records (2).
//!
//! A record that cannot be read is rejected and the next one is read; when the lists themselves cannot be
//! read, the request is refused whole.

use super::MALFORMED;
use super::value::Values;
use super::wire::{Field, Malformed, Message, Slice, wrong_type};
use crate::Refusal;
use crate::receive::records::Records;
use taxonomy::signal::{Attribute, Resource};

/// Reads one kind of record.
pub(super) trait ReadRecord<'a> {
    /// Hands the record over, or nothing of it.
    fn read(
        &mut self,
        record: Slice<'a>,
        resource: &Resource<'_>,
        values: &mut Values,
        records: &mut impl Records,
    ) -> Result<(), Malformed>;
}

/// Hands every record of `body` over.
pub(super) fn read<'a>(
    body: &'a [u8],
    reader: impl ReadRecord<'a>,
    records: &mut impl Records,
) -> Result<(), Refusal> {
    let values = Values::new(records.limits());
    let mut walk = Walk { reader, values, attributes: Vec::new(), number: 0 };
    let mut message = Message::of_body(body);
    while let Some((number, field)) = message.next()? {
        match (number, field) {
            (1, Field::Bytes(slice)) => walk.resource(slice, records)?,
            (1, _) => wrong_type(&message)?,
            _ => {}
        }
    }
    Ok(())
}

struct Walk<'a, R> {
    reader: R,
    values: Values,
    /// The attributes of the resource; kept to be used again.
    attributes: Vec<Attribute<'a>>,
    /// Records so far.
    number: u64,
}

impl<'a, R: ReadRecord<'a>> Walk<'a, R> {
    /// A resource may come after its scopes, so it is looked for first.
    fn resource(&mut self, slice: Slice<'a>, records: &mut impl Records) -> Result<(), Malformed> {
        self.attributes.clear();
        self.values.begin();
        let mut message = Message::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, Field::Bytes(slice)) => self.describe(slice)?,
                (1, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        let mut message = Message::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (2, Field::Bytes(slice)) => self.scope(slice, records)?,
                (2, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn describe(&mut self, slice: Slice<'a>) -> Result<(), Malformed> {
        let mut message = Message::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, Field::Bytes(slice)) => self.values.push(slice, &mut self.attributes)?,
                (1, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn scope(&mut self, slice: Slice<'a>, records: &mut impl Records) -> Result<(), Malformed> {
        let mut message = Message::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (2, Field::Bytes(slice)) => self.record(slice, records),
                (2, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn record(&mut self, slice: Slice<'a>, records: &mut impl Records) {
        self.number += 1;
        self.values.begin();
        let resource = Resource { attributes: &self.attributes };
        if let Err(malformed) = self.reader.read(slice, &resource, &mut self.values, records) {
            let Malformed { what, at } = malformed;
            let detail = format!("{what} at byte {at}; send it as OTLP defines it");
            records.reject(self.number, MALFORMED, detail, slice.bytes);
        }
    }
}
