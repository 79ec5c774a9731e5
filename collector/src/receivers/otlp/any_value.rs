//! Decodes attributes and values: `KeyValue` and `AnyValue`.
//!
//! Strings borrow from the body. Lists and maps become JSON text. The memory that one record can cause is bounded by
//! `Limits::attributes`, by `Limits::value_depth`, and by a budget of JSON text for each record.

use super::protobuf::{BodySlice, DecodeError, FieldValue, MessageReader, wrong_type};
use crate::Limits;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use classifier::telemetry::{Attribute, Value};
use std::borrow::Cow;

/// The bytes of JSON text that the values of one record may produce; beyond it, lists and maps end early.
pub(super) const JSON_BYTES: usize = 1 << 20;
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

/// Reads the values of a record within its limits.
pub(super) struct ValueReader {
    attributes: usize,
    depth: usize,
    /// The bytes of JSON text that may still be written.
    budget: usize,
}

impl ValueReader {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { attributes: limits.attributes, depth: limits.value_depth, budget: JSON_BYTES }
    }

    /// Starts a new record with a full budget.
    pub(super) fn begin(&mut self) {
        self.budget = JSON_BYTES;
    }

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
        if list.len() - first < self.attributes {
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
        Ok(match any_value(slice)? {
            AnyValueRef::Empty => Value::Empty,
            AnyValueRef::Text(slice) => Value::Text(text(slice)),
            AnyValueRef::Bool(value) => Value::Bool(value),
            AnyValueRef::Int(value) => Value::Int(value),
            AnyValueRef::Double(value) => Value::Double(value),
            AnyValueRef::Bytes(slice) => match std::str::from_utf8(slice.bytes) {
                Ok(text) => Value::Text(Cow::Borrowed(text)),
                Err(_) => Value::Json(Cow::Owned(self.json(&AnyValueRef::Bytes(slice))?)),
            },
            nested @ (AnyValueRef::List(_) | AnyValueRef::Map(_)) => {
                Value::Json(Cow::Owned(self.json(&nested)?))
            }
        })
    }

    fn json(&mut self, value: &AnyValueRef<'_>) -> Result<String, DecodeError> {
        let mut out = BoundedJsonWriter::new(self.budget);
        write(value, self.depth, &mut out)?;
        self.budget = self.budget.saturating_sub(out.text.len());
        Ok(out.text)
    }
}

/// An `AnyValue`, one level deep.
enum AnyValueRef<'a> {
    Empty,
    Text(BodySlice<'a>),
    Bool(bool),
    Int(i64),
    Double(f64),
    List(BodySlice<'a>),
    Map(BodySlice<'a>),
    Bytes(BodySlice<'a>),
}

fn any_value(slice: BodySlice<'_>) -> Result<AnyValueRef<'_>, DecodeError> {
    let mut message = MessageReader::new(slice);
    let mut value = AnyValueRef::Empty;
    while let Some((number, field)) = message.next()? {
        value = match (number, field) {
            (1, FieldValue::Bytes(slice)) => AnyValueRef::Text(slice),
            (2, FieldValue::Varint(number)) => AnyValueRef::Bool(number != 0),
            (3, FieldValue::Varint(number)) => AnyValueRef::Int(number.cast_signed()),
            (4, FieldValue::Fixed64(bits)) => AnyValueRef::Double(f64::from_bits(bits)),
            (5, FieldValue::Bytes(slice)) => AnyValueRef::List(slice),
            (6, FieldValue::Bytes(slice)) => AnyValueRef::Map(slice),
            (7, FieldValue::Bytes(slice)) => AnyValueRef::Bytes(slice),
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

/// Writes a value as JSON, with at most `depth` levels of lists and maps, and `null` below.
fn write(value: &AnyValueRef<'_>, depth: usize, out: &mut BoundedJsonWriter) -> Result<(), DecodeError> {
    match value {
        AnyValueRef::Empty => out.null(),
        AnyValueRef::Text(slice) => out.string(&text(*slice)),
        AnyValueRef::Bool(value) => out.text.push_str(if *value { "true" } else { "false" }),
        AnyValueRef::Int(value) => out.display(value),
        AnyValueRef::Double(value) => out.double(*value),
        AnyValueRef::Bytes(slice) => out.bytes(slice.bytes),
        AnyValueRef::List(_) | AnyValueRef::Map(_) if depth == 0 => out.null(),
        AnyValueRef::List(slice) => write_list(*slice, depth - 1, out)?,
        AnyValueRef::Map(slice) => write_map(*slice, depth - 1, out)?,
    }
    Ok(())
}

fn write_list(slice: BodySlice<'_>, depth: usize, out: &mut BoundedJsonWriter) -> Result<(), DecodeError> {
    let mut list = out.open('[');
    each(slice, |item| {
        if out.next(&mut list) {
            write(&any_value(item)?, depth, out)?;
        }
        Ok(())
    })?;
    out.text.push(']');
    Ok(())
}

fn write_map(slice: BodySlice<'_>, depth: usize, out: &mut BoundedJsonWriter) -> Result<(), DecodeError> {
    let mut list = out.open('{');
    each(slice, |item| {
        if out.next(&mut list) {
            let (key, value) = key_value(item)?;
            out.string(&text(key));
            out.text.push(':');
            match value {
                Some(value) => write(&any_value(value)?, depth, out)?,
                None => out.null(),
            }
        }
        Ok(())
    })?;
    out.text.push('}');
    Ok(())
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

/// A writer of JSON text that stops at its budget; the text stays valid JSON.
pub(super) struct BoundedJsonWriter {
    pub(super) text: String,
    budget: usize,
}

/// The separator state of an open list or map: true if it has an item already.
pub(super) struct ItemSeparator(bool);

impl BoundedJsonWriter {
    pub(super) fn new(budget: usize) -> Self {
        Self { text: String::new(), budget }
    }

    fn left(&self) -> usize {
        self.budget.saturating_sub(self.text.len())
    }

    pub(super) fn open(&mut self, bracket: char) -> ItemSeparator {
        self.text.push(bracket);
        ItemSeparator(false)
    }

    /// Prepares for another item, with a comma if needed. Returns false if the budget is used up.
    pub(super) fn next(&mut self, items: &mut ItemSeparator) -> bool {
        if self.left() == 0 {
            return false;
        }
        if std::mem::replace(&mut items.0, true) {
            self.text.push(',');
        }
        true
    }

    pub(super) fn null(&mut self) {
        self.text.push_str("null");
    }

    pub(super) fn display(&mut self, value: impl std::fmt::Display) {
        use std::fmt::Write;
        let _ = write!(self.text, "{value}");
    }

    /// Writes a number. JSON cannot express one that is not finite, so that becomes a string.
    pub(super) fn double(&mut self, value: f64) {
        match value {
            _ if value.is_finite() => self.display(serde_json::Number::from_f64(value).unwrap_or(0.into())),
            _ if value.is_nan() => self.string("NaN"),
            _ if value > 0.0 => self.string("Infinity"),
            _ => self.string("-Infinity"),
        }
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        let fits = bytes.get(..self.left() / 4 * 3).unwrap_or(bytes);
        self.text.push('"');
        BASE64_STANDARD.encode_string(fits, &mut self.text);
        self.text.push('"');
    }

    pub(super) fn string(&mut self, text: &str) {
        let fits = text.get(..text.floor_char_boundary(self.left())).unwrap_or(text);
        self.text.push_str(&serde_json::Value::from(fits).to_string());
    }
}

#[cfg(test)]
mod tests;
