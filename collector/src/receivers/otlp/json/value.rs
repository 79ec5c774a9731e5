//! Decodes attributes and values of OTLP/JSON.

use super::scalar::{JsonResult, Scalar};
use super::schema::{AnyValueFields, Attributes, KeyValue};
use crate::receivers::otlp::any_value::{AnyValue, JSON_BYTES, LazyValue, NestedValue, ValueReader};
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

impl ValueReader {
    /// Adds attributes, at most `Limits::attributes`.
    pub(super) fn push_fields<'a>(
        &mut self,
        from: Attributes<'a>,
        list: &mut Vec<Attribute<'a>>,
    ) -> JsonResult<()> {
        let most = self.max_attributes();
        for KeyValue { key, value } in from.into_iter().flat_map(|capped| capped.0).take(most) {
            let key = key.map_or(Ok(Cow::Borrowed("")), |key| key.text("key"))?;
            let value = value.map_or(Ok(Value::Empty), |value| self.value_of_fields(value))?;
            list.push(Attribute { key, value });
        }
        Ok(())
    }

    /// Decodes an `AnyValue`.
    pub(super) fn value_of_fields<'a>(&mut self, any: AnyValueFields<'a>) -> JsonResult<Value<'a>> {
        let value: AnyValue<'a, &Json> = match any {
            AnyValueFields { string_value: Some(text), .. } => AnyValue::Text(text.text("stringValue")?),
            AnyValueFields { bool_value: Some(value), .. } => AnyValue::Bool(value.bool("boolValue")?),
            AnyValueFields { int_value: Some(number), .. } => int(number)?,
            AnyValueFields { double_value: Some(number), .. } => {
                AnyValue::Double(number.double("doubleValue")?)
            }
            AnyValueFields { array_value: Some(raw), .. } => {
                return self.nested(raw, |list| AnyValue::List(list));
            }
            AnyValueFields { kvlist_value: Some(raw), .. } => {
                return self.nested(raw, |map| AnyValue::Map(map));
            }
            AnyValueFields { bytes_value: Some(text), .. } => {
                AnyValue::Bytes(Cow::Owned(decode_base64(&text.text("bytesValue")?)?))
            }
            _ => AnyValue::Empty,
        };
        self.convert(value)
    }

    /// Decodes a list or a map. It is parsed to a tree, which needs many times the memory of its text, so a long one
    /// becomes `null`.
    fn nested<'a>(
        &mut self,
        raw: &RawValue,
        value: impl for<'t> FnOnce(&'t Json) -> AnyValue<'t, &'t Json>,
    ) -> JsonResult<Value<'a>> {
        if raw.get().len() > JSON_BYTES {
            return Ok(Value::Json(Cow::Borrowed("null")));
        }
        let tree = serde_json::from_str(raw.get())?;
        Ok(match self.convert(value(&tree))? {
            Value::Json(json) => Value::Json(Cow::Owned(json.into_owned())),
            // A list or a map always becomes JSON.
            _ => Value::Empty,
        })
    }
}

fn decode_base64(encoded: &str) -> JsonResult<Vec<u8>> {
    let alphabet = if encoded.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    let engine = GeneralPurpose::new(&alphabet, ANY_PADDING);
    engine.decode(encoded.as_bytes()).map_err(|_| Error::custom("bytesValue is not base64"))
}

/// Decodes an integer; one of more than 64 bits is kept as text.
fn int<'a, N>(number: Scalar<'a>) -> JsonResult<AnyValue<'a, N>> {
    match (number.signed("intValue"), number) {
        (Ok(number), _) => Ok(AnyValue::Int(number)),
        (Err(_), Scalar::Text(text)) if is_number(text.trim()) => Ok(AnyValue::Text(text)),
        (Err(_), Scalar::Unsigned(number)) => Ok(AnyValue::LargeInt(number.to_string())),
        (Err(_), Scalar::Float(number)) => Ok(AnyValue::Double(number)),
        (Err(error), _) => Err(error),
    }
}

/// Returns true for a number in digits, with or without an exponent, but not for words that Rust parses, such as `inf`.
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte)) && text.parse::<f64>().is_ok()
}

impl<'a> NestedValue<'a> for &'a Json {
    type Error = serde_json::Error;

    fn items(self, mut visit: impl FnMut(LazyValue<'_, 'a, Self>) -> JsonResult<()>) -> JsonResult<()> {
        let mut items = self.get("values").and_then(Json::as_array).into_iter().flatten();
        items.try_for_each(|item| visit(&|| Ok(value_in_tree(item))))
    }

    fn entries(
        self,
        mut visit: impl FnMut(Cow<'a, str>, LazyValue<'_, 'a, Self>) -> JsonResult<()>,
    ) -> JsonResult<()> {
        let mut entries = self.get("values").and_then(Json::as_array).into_iter().flatten();
        entries.try_for_each(|entry| {
            let key = entry.get("key").and_then(Json::as_str).unwrap_or_default();
            visit(Cow::Borrowed(key), &|| Ok(entry.get("value").map_or(AnyValue::Empty, value_in_tree)))
        })
    }
}

type ReadScalar = for<'a> fn(&'a Json) -> AnyValue<'a, &'a Json>;

/// The fields of an `AnyValue` inside of a list or a map, and the functions that read them. Bytes stay as they are sent.
const FIELDS: [(&str, ReadScalar); 7] = [
    ("stringValue", |value| AnyValue::Text(Cow::Borrowed(value.as_str().unwrap_or_default()))),
    ("boolValue", |value| AnyValue::Bool(value.as_bool().unwrap_or_default())),
    ("intValue", int_in_tree),
    ("doubleValue", double_in_tree),
    ("bytesValue", |value| AnyValue::Text(Cow::Borrowed(value.as_str().unwrap_or_default()))),
    ("arrayValue", |list| AnyValue::List(list)),
    ("kvlistValue", |map| AnyValue::Map(map)),
];

fn value_in_tree(any: &Json) -> AnyValue<'_, &Json> {
    let field = |name: &str| any.get(name).filter(|value| !value.is_null());
    let read = FIELDS.iter().find_map(|(name, read)| Some(read(field(name)?)));
    read.unwrap_or(AnyValue::Empty)
}

fn int_in_tree(value: &Json) -> AnyValue<'_, &Json> {
    match (value.as_i64().or_else(|| value.as_str()?.trim().parse().ok()), value) {
        (Some(number), _) => AnyValue::Int(number),
        // The number has more than 64 bits.
        (None, Json::String(text)) if is_number(text.trim()) => AnyValue::Text(Cow::Borrowed(text)),
        (None, Json::Number(number)) => AnyValue::LargeInt(number.to_string()),
        (None, _) => AnyValue::Empty,
    }
}

fn double_in_tree(value: &Json) -> AnyValue<'_, &Json> {
    match value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()) {
        Some(number) => AnyValue::Double(number),
        None => AnyValue::Empty,
    }
}
