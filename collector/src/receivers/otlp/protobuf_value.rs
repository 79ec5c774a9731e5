//! Decodes attributes and values of OTLP's protobuf: `KeyValue` and `AnyValue`. Strings borrow from the body.

use super::any_value::{AnyValue, LazyValue, NestedValue, ValueReader};
use super::protobuf::{BodySlice, DecodeError, FieldValue, MessageReader, wrong_type};
use classifier::telemetry::{Attribute, Value};
use std::borrow::Cow;

/// A string that is not UTF-8 is truncated to this length before it is repaired, which can make it three times as long.
const MENDED_BYTES: usize = 64 << 10;

/// Returns a string, in which bytes that are not UTF-8 are replaced.
#[inline]
pub(super) fn text(slice: BodySlice<'_>) -> Cow<'_, str> {
    match std::str::from_utf8(slice.bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => mended(slice.bytes),
    }
}

#[cold]
fn mended(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes.get(..MENDED_BYTES).unwrap_or(bytes))
}

impl ValueReader {
    /// Adds an attribute, unless the list has `Limits::attributes` already.
    pub(super) fn push<'a>(
        &mut self,
        slice: BodySlice<'a>,
        list: &mut Vec<Attribute<'a>>,
    ) -> Result<(), DecodeError> {
        self.push_after(0, slice, list)
    }

    /// Does the same, but counts only the attributes from index `first` on.
    pub(super) fn push_after<'a>(
        &mut self,
        first: usize,
        slice: BodySlice<'a>,
        list: &mut Vec<Attribute<'a>>,
    ) -> Result<(), DecodeError> {
        if list.len() - first < self.max_attributes() {
            list.push(self.attribute(slice)?);
        }
        Ok(())
    }

    fn attribute<'a>(&mut self, slice: BodySlice<'a>) -> Result<Attribute<'a>, DecodeError> {
        if let Some((key, value)) = short_texts(slice) {
            return Ok(Attribute { key: text(key), value: Value::Text(text(value)) });
        }
        let (key, value) = key_value(slice)?;
        let value = value.map_or(Ok(Value::Empty), |value| self.value(value))?;
        Ok(Attribute { key: text(key), value })
    }

    /// Decodes an `AnyValue`.
    pub(super) fn value<'a>(&mut self, slice: BodySlice<'a>) -> Result<Value<'a>, DecodeError> {
        self.convert(any_value(slice)?)
    }
}

impl<'a> NestedValue<'a> for BodySlice<'a> {
    type Error = DecodeError;

    fn items(
        self,
        mut visit: impl FnMut(LazyValue<'_, 'a, Self>) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        each(self, |item| visit(&|| any_value(item)))
    }

    fn entries(
        self,
        mut visit: impl FnMut(Cow<'a, str>, LazyValue<'_, 'a, Self>) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        each(self, |entry| {
            let (key, value) = key_value(entry)?;
            visit(text(key), &|| value.map_or(Ok(AnyValue::Empty), any_value))
        })
    }
}

fn any_value(slice: BodySlice<'_>) -> Result<AnyValue<'_, BodySlice<'_>>, DecodeError> {
    let mut message = MessageReader::new(slice);
    let mut value = AnyValue::Empty;
    while let Some((number, field)) = message.next()? {
        value = match (number, field) {
            (1, FieldValue::Bytes(slice)) => AnyValue::Text(text(slice)),
            (2, FieldValue::Varint(number)) => AnyValue::Bool(number != 0),
            (3, FieldValue::Varint(number)) => AnyValue::Int(number.cast_signed()),
            (4, FieldValue::Fixed64(bits)) => AnyValue::Double(f64::from_bits(bits)),
            (5, FieldValue::Bytes(slice)) => AnyValue::List(slice),
            (6, FieldValue::Bytes(slice)) => AnyValue::Map(slice),
            (7, FieldValue::Bytes(slice)) => AnyValue::Bytes(Cow::Borrowed(slice.bytes)),
            (1..=7, _) => return wrong_type(&message),
            _ => value,
        };
    }
    Ok(value)
}

/// Returns the key and the string of a `KeyValue` in its most common form: in this order, with nothing else, and with
/// each length in one byte. Any other form returns `None` and is decoded field by field.
#[inline]
fn short_texts(slice: BodySlice<'_>) -> Option<(BodySlice<'_>, BodySlice<'_>)> {
    const KEY: u8 = 1 << 3 | 2;
    const VALUE: u8 = 2 << 3 | 2;
    const TEXT: u8 = 1 << 3 | 2;
    let (&[KEY, length @ ..0x80], rest) = slice.bytes.split_first_chunk()? else { return None };
    let (key, rest) = rest.split_at_checked(usize::from(length))?;
    let (&[VALUE, outer @ ..0x80, TEXT, inner], text) = rest.split_first_chunk()? else { return None };
    let is_all = usize::from(inner) == text.len() && usize::from(outer) == text.len() + 2;
    let part = |bytes| BodySlice { bytes, at: slice.at };
    is_all.then(|| (part(key), part(text)))
}

fn key_value(slice: BodySlice<'_>) -> Result<(BodySlice<'_>, Option<BodySlice<'_>>), DecodeError> {
    let mut message = MessageReader::new(slice);
    let mut key = BodySlice { bytes: &[], at: slice.at };
    let mut value = None;
    while let Some((number, field)) = message.next()? {
        match (number, field) {
            (1, FieldValue::Bytes(slice)) => key = slice,
            (2, FieldValue::Bytes(slice)) => value = Some(slice),
            (1 | 2, _) => return wrong_type(&message),
            _ => {}
        }
    }
    Ok((key, value))
}

/// Calls `item` for each value of an `ArrayValue` or a `KeyValueList`: both keep them in field 1.
fn each<'a>(
    slice: BodySlice<'a>,
    mut item: impl FnMut(BodySlice<'a>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut message = MessageReader::new(slice);
    while let Some((number, field)) = message.next()? {
        match (number, field) {
            (1, FieldValue::Bytes(slice)) => item(slice)?,
            (1, _) => return wrong_type(&message),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
