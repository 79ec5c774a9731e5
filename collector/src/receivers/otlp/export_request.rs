//! The lists around records, which traces and logs share: a request holds resources (field 1), a resource
//! describes itself (1) and holds scopes (2), a scope holds records (2).
//!
//! A record that cannot be read is rejected and the next one is read; when the lists themselves cannot be
//! read, the request is refused whole.

use super::MALFORMED;
use super::any_value::ValueReader;
use super::protobuf::{BodySlice, DecodeError, FieldValue, MessageReader, wrong_type};
use crate::Rejection;
use crate::receivers::record_consumer::RecordConsumer;
use classifier::telemetry::{Attribute, Resource};

/// Reads one kind of record.
pub(super) trait RecordReader<'a> {
    /// Hands the record over, or nothing of it.
    fn read(
        &mut self,
        record: BodySlice<'a>,
        resource: &Resource<'_>,
        values: &mut ValueReader,
        records: &mut impl RecordConsumer,
    ) -> Result<(), DecodeError>;
}

/// Hands every record of `body` over.
pub(super) fn read<'a>(
    body: &'a [u8],
    reader: impl RecordReader<'a>,
    records: &mut impl RecordConsumer,
) -> Result<(), Rejection> {
    let values = ValueReader::new(records.limits());
    let mut walk = RequestReader { reader, values, attributes: Vec::new(), number: 0 };
    let mut message = MessageReader::of_body(body);
    while let Some((number, field)) = message.next()? {
        match (number, field) {
            (1, FieldValue::Bytes(slice)) => walk.resource(slice, records)?,
            (1, _) => wrong_type(&message)?,
            _ => {}
        }
    }
    Ok(())
}

struct RequestReader<'a, R> {
    reader: R,
    values: ValueReader,
    /// The attributes of the resource; kept to be used again.
    attributes: Vec<Attribute<'a>>,
    /// `RecordConsumer` so far.
    number: u64,
}

impl<'a, R: RecordReader<'a>> RequestReader<'a, R> {
    /// A resource may come after its scopes, so it is looked for first.
    fn resource(
        &mut self,
        slice: BodySlice<'a>,
        records: &mut impl RecordConsumer,
    ) -> Result<(), DecodeError> {
        self.attributes.clear();
        self.values.begin();
        let mut message = MessageReader::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, FieldValue::Bytes(slice)) => self.describe(slice)?,
                (1, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        let mut message = MessageReader::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (2, FieldValue::Bytes(slice)) => self.scope(slice, records)?,
                (2, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn describe(&mut self, slice: BodySlice<'a>) -> Result<(), DecodeError> {
        let mut message = MessageReader::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (1, FieldValue::Bytes(slice)) => self.values.push(slice, &mut self.attributes)?,
                (1, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn scope(&mut self, slice: BodySlice<'a>, records: &mut impl RecordConsumer) -> Result<(), DecodeError> {
        let mut message = MessageReader::new(slice);
        while let Some((number, field)) = message.next()? {
            match (number, field) {
                (2, FieldValue::Bytes(slice)) => self.record(slice, records),
                (2, _) => wrong_type(&message)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn record(&mut self, slice: BodySlice<'a>, records: &mut impl RecordConsumer) {
        self.number += 1;
        self.values.begin();
        let resource = Resource { attributes: &self.attributes };
        if let Err(malformed) = self.reader.read(slice, &resource, &mut self.values, records) {
            let DecodeError { what, at } = malformed;
            let detail = format!("{what} at byte {at}; send it as OTLP defines it");
            records.reject(self.number, MALFORMED, detail, slice.bytes);
        }
    }
}
