//! Decodes attributes and values of OTLP/JSON.

use super::scalar::{JsonResult, Scalar};
use super::schema::{AnyValueFields, Attributes, KeyValue};
use crate::Limits;
use crate::receivers::otlp::any_value::{BoundedJsonWriter, JSON_BYTES};
use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use classifier::telemetry::{Attribute, Value};
use serde::de::Error;
use serde_json::Value as Json;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Protobuf's JSON allows either base64 alphabet, with padding or without.
const ANY_PADDING: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);

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

    /// Returns the number of items of one list that are read.
    pub(super) fn kept(&self) -> usize {
        self.attributes
    }

    /// Adds attributes, at most `Limits::attributes`.
    pub(super) fn push<'a>(&mut self, from: Attributes<'a>, list: &mut Vec<Attribute<'a>>) -> JsonResult<()> {
        for KeyValue { key, value } in from.into_iter().flat_map(|capped| capped.0).take(self.attributes) {
            let key = key.map_or(Ok(Cow::Borrowed("")), |key| key.text("key"))?;
            let value = value.map_or(Ok(Value::Empty), |value| self.value(value))?;
            list.push(Attribute { key, value });
        }
        Ok(())
    }

    /// Decodes an `AnyValue`.
    pub(super) fn value<'a>(&mut self, any: AnyValueFields<'a>) -> JsonResult<Value<'a>> {
        Ok(match any {
            AnyValueFields { string_value: Some(text), .. } => Value::Text(text.text("stringValue")?),
            AnyValueFields { bool_value: Some(value), .. } => Value::Bool(value.bool("boolValue")?),
            AnyValueFields { int_value: Some(number), .. } => int(number)?,
            AnyValueFields { double_value: Some(number), .. } => Value::Double(number.double("doubleValue")?),
            AnyValueFields { array_value: Some(raw), .. } => self.nested(raw, write_list)?,
            AnyValueFields { kvlist_value: Some(raw), .. } => self.nested(raw, write_map)?,
            AnyValueFields { bytes_value: Some(text), .. } => self.bytes(&text.text("bytesValue")?)?,
            _ => Value::Empty,
        })
    }

    /// Decodes base64; bytes that are UTF-8 become text.
    fn bytes<'a>(&mut self, encoded: &str) -> JsonResult<Value<'a>> {
        let alphabet = if encoded.contains(['-', '_']) { URL_SAFE } else { STANDARD };
        let engine = GeneralPurpose::new(&alphabet, ANY_PADDING);
        let bytes =
            engine.decode(encoded.as_bytes()).map_err(|_| Error::custom("bytesValue is not base64"))?;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => Value::Text(Cow::Owned(text)),
            Err(bytes) => {
                let mut out = BoundedJsonWriter::new(self.budget);
                out.bytes(bytes.as_bytes());
                self.spend(out)
            }
        })
    }

    /// Decodes a list or a map. It is parsed to a tree, which needs many times the memory of its text, so a long one
    /// becomes `null`.
    fn nested<'a>(&mut self, raw: &RawValue, write: WriteNested) -> JsonResult<Value<'a>> {
        let mut out = BoundedJsonWriter::new(self.budget);
        if raw.get().len() > JSON_BYTES {
            out.null();
        } else {
            write(&serde_json::from_str(raw.get())?, self.depth.saturating_sub(1), &mut out);
        }
        Ok(self.spend(out))
    }

    fn spend<'a>(&mut self, out: BoundedJsonWriter) -> Value<'a> {
        self.budget = self.budget.saturating_sub(out.text.len());
        Value::Json(Cow::Owned(out.text))
    }
}

/// Decodes an integer; one of more than 64 bits is kept as text.
fn int(number: Scalar<'_>) -> JsonResult<Value<'_>> {
    match (number.signed("intValue"), number) {
        (Ok(number), _) => Ok(Value::Int(number)),
        (Err(_), Scalar::Text(text)) if is_number(text.trim()) => Ok(Value::Text(text)),
        (Err(_), Scalar::Unsigned(number)) => Ok(Value::Text(Cow::Owned(number.to_string()))),
        (Err(_), Scalar::Float(number)) => Ok(Value::Double(number)),
        (Err(error), _) => Err(error),
    }
}

/// Returns true for a number in digits, with or without an exponent, but not for words that Rust parses, such as `inf`.
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) && text.parse::<f64>().is_ok()
}

type WriteNested = fn(&Json, usize, &mut BoundedJsonWriter);
type Write = fn(&Json, &mut BoundedJsonWriter);

/// The fields of an `AnyValue` that are scalars, and the functions that write them as JSON.
const WRITERS: [(&str, Write); 5] = [
    ("stringValue", |value, out| out.string(value.as_str().unwrap_or_default())),
    ("boolValue", |value, out| out.display(value.as_bool().unwrap_or_default())),
    ("intValue", write_int),
    ("doubleValue", write_double),
    ("bytesValue", |value, out| out.string(value.as_str().unwrap_or_default())),
];

/// Writes an `AnyValue` as JSON, with at most `depth` levels of lists and maps, and `null` below.
fn write(any: &Json, depth: usize, out: &mut BoundedJsonWriter) {
    let part = |name: &str| any.get(name).filter(|value| !value.is_null());
    if let Some((value, write)) = WRITERS.iter().find_map(|(name, write)| Some((part(name)?, write))) {
        return write(value, out);
    }
    match (part("arrayValue"), part("kvlistValue"), depth.checked_sub(1)) {
        (Some(list), _, Some(depth)) => write_list(list, depth, out),
        (_, Some(map), Some(depth)) => write_map(map, depth, out),
        _ => out.null(),
    }
}

fn write_list(list: &Json, depth: usize, out: &mut BoundedJsonWriter) {
    let mut items = out.open('[');
    for item in list.get("values").and_then(Json::as_array).into_iter().flatten() {
        if out.next(&mut items) {
            write(item, depth, out);
        }
    }
    out.text.push(']');
}

fn write_map(map: &Json, depth: usize, out: &mut BoundedJsonWriter) {
    let mut items = out.open('{');
    for item in map.get("values").and_then(Json::as_array).into_iter().flatten() {
        if out.next(&mut items) {
            out.string(item.get("key").and_then(Json::as_str).unwrap_or_default());
            out.text.push(':');
            write(item.get("value").unwrap_or(&Json::Null), depth, out);
        }
    }
    out.text.push('}');
}

fn write_int(value: &Json, out: &mut BoundedJsonWriter) {
    match (value.as_i64().or_else(|| value.as_str()?.trim().parse().ok()), value) {
        (Some(number), _) => out.display(number),
        // The number has more than 64 bits.
        (None, Json::String(text)) if is_number(text.trim()) => out.string(text),
        (None, Json::Number(number)) => out.display(number),
        (None, _) => out.null(),
    }
}

fn write_double(value: &Json, out: &mut BoundedJsonWriter) {
    match value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()) {
        Some(number) => out.double(number),
        None => out.null(),
    }
}
