//! Decodes the lists around records, which all signals share: a request contains resources (field 1), a resource
//! contains its description (1) and scopes (2), and a scope contains records (2).
//!
//! A record that cannot be decoded is rejected and the next one is read; if the lists themselves cannot be decoded, the
//! whole request is rejected.

use super::MALFORMED;
use super::any_value::ValueReader;
use super::protobuf::{BodySlice, DecodeError, FieldValue, MessageReader, wrong_type};
use crate::Rejection;
use crate::receivers::record_consumer::RecordConsumer;
use classifier::telemetry::{Attribute, Resource};

/// A decoder of one kind of record.
pub(super) trait RecordReader<'a> {
    /// Decodes a record and passes it to `records`. Of a record that cannot be decoded nothing is passed on, except the
    /// data points of a metric that precede the error.
    fn read(
        &mut self,
        record: BodySlice<'a>,
        resource: &Resource<'_>,
        values: &mut ValueReader,
        records: &mut impl RecordConsumer,
    ) -> Result<(), DecodeError>;
}

/// Passes every record of `body` to `records`.
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
    /// The attributes of the resource; the list is reused for the next.
    attributes: Vec<Attribute<'a>>,
    /// The number of records so far.
    number: u64,
}

impl<'a, R: RecordReader<'a>> RequestReader<'a, R> {
    /// Reads the records of a resource. Its description may follow its scopes, so that is decoded in a first pass.
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
