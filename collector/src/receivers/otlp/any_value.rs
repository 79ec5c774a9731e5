//! The values of attributes, whichever encoding they came in: `AnyValue` becomes a [`Value`].
//!
//! Each encoding reads one level of a value ([`AnyValue`]), and the items of a nested one ([`NestedValue`]). Everything
//! else is here: lists and maps become JSON text, and the memory that one record can cause is bounded by
//! `Limits::attributes`, by `Limits::value_depth`, and by a budget of JSON text for each record.

use crate::Limits;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use classifier::telemetry::Value;
use std::borrow::Cow;

/// The bytes of JSON text that the values of one record may produce; beyond it, lists and maps end early.
pub(super) const JSON_BYTES: usize = 1 << 20;

/// An `AnyValue`, one level deep.
pub(super) enum AnyValue<'a, N> {
    Empty,
    Text(Cow<'a, str>),
    Bool(bool),
    Int(i64),
    /// An integer of more than 64 bits, in digits.
    LargeInt(String),
    Double(f64),
    Bytes(Cow<'a, [u8]>),
    List(N),
    Map(N),
}

/// The contents of a list or a map in one of the encodings.
pub(super) trait NestedValue<'a>: Sized {
    /// The error of the decoder.
    type Error;

    /// Calls `visit` for each item of a list.
    fn items(
        self,
        visit: impl FnMut(LazyValue<'_, 'a, Self>) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error>;

    /// Calls `visit` for each key of a map, and its value.
    fn entries(
        self,
        visit: impl FnMut(Cow<'a, str>, LazyValue<'_, 'a, Self>) -> Result<(), Self::Error>,
    ) -> Result<(), Self::Error>;
}

/// A function that decodes a value; values past the budget are not decoded.
pub(super) type LazyValue<'f, 'a, N> = &'f dyn Fn() -> Result<AnyValue<'a, N>, <N as NestedValue<'a>>::Error>;

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
    pub(super) fn max_attributes(&self) -> usize {
        self.attributes
    }

    /// Converts a value; bytes that are UTF-8 become text, other bytes base64.
    pub(super) fn convert<'a, 'n, N: NestedValue<'n>>(
        &mut self,
        value: AnyValue<'a, N>,
    ) -> Result<Value<'a>, N::Error>
    where
        'n: 'a,
    {
        Ok(match value {
            AnyValue::Empty => Value::Empty,
            AnyValue::Text(text) => Value::Text(text),
            AnyValue::Bool(value) => Value::Bool(value),
            AnyValue::Int(value) => Value::Int(value),
            AnyValue::LargeInt(digits) => Value::Text(Cow::Owned(digits)),
            AnyValue::Double(value) => Value::Double(value),
            AnyValue::Bytes(Cow::Borrowed(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => Value::Text(Cow::Borrowed(text)),
                Err(_) => self.base64(bytes),
            },
            AnyValue::Bytes(Cow::Owned(bytes)) => match String::from_utf8(bytes) {
                Ok(text) => Value::Text(Cow::Owned(text)),
                Err(error) => self.base64(error.as_bytes()),
            },
            AnyValue::List(list) => self.json(|depth, out| write(AnyValue::List(list), depth, out))?,
            AnyValue::Map(map) => self.json(|depth, out| write(AnyValue::Map(map), depth, out))?,
        })
    }

    /// Writes bytes that are no text as a JSON string in base64.
    fn base64<'a>(&mut self, bytes: &[u8]) -> Value<'a> {
        let mut out = BoundedJsonWriter::new(self.budget);
        out.bytes(bytes);
        self.spend(out)
    }

    /// Writes JSON within the budget.
    fn json<'a, E>(
        &mut self,
        write: impl FnOnce(usize, &mut BoundedJsonWriter) -> Result<(), E>,
    ) -> Result<Value<'a>, E> {
        let mut out = BoundedJsonWriter::new(self.budget);
        write(self.depth, &mut out)?;
        Ok(self.spend(out))
    }

    /// Takes what was written off the budget.
    fn spend<'a>(&mut self, out: BoundedJsonWriter) -> Value<'a> {
        self.budget = self.budget.saturating_sub(out.text.len());
        Value::Json(Cow::Owned(out.text))
    }
}

/// Writes a value as JSON, with at most `depth` levels of lists and maps, and `null` below.
fn write<'a, N: NestedValue<'a>>(
    value: AnyValue<'_, N>,
    depth: usize,
    out: &mut BoundedJsonWriter,
) -> Result<(), N::Error> {
    match value {
        AnyValue::Empty => out.null(),
        AnyValue::Text(text) => out.string(&text),
        AnyValue::Bool(value) => out.text.push_str(if value { "true" } else { "false" }),
        AnyValue::Int(value) => out.display(value),
        AnyValue::LargeInt(digits) => out.display(digits),
        AnyValue::Double(value) => out.double(value),
        AnyValue::Bytes(bytes) => out.bytes(&bytes),
        AnyValue::List(_) | AnyValue::Map(_) if depth == 0 => out.null(),
        AnyValue::List(list) => {
            let mut separator = out.open('[');
            list.items(|item| match out.next(&mut separator) {
                true => write(item()?, depth - 1, out),
                false => Ok(()),
            })?;
            out.text.push(']');
        }
        AnyValue::Map(map) => {
            let mut separator = out.open('{');
            map.entries(|key, value| {
                if !out.next(&mut separator) {
                    return Ok(());
                }
                out.string(&key);
                out.text.push(':');
                write(value()?, depth - 1, out)
            })?;
            out.text.push('}');
        }
    }
    Ok(())
}

/// A writer of JSON text that stops at its budget; the text stays valid JSON.
struct BoundedJsonWriter {
    text: String,
    budget: usize,
}

/// The separator state of an open list or map: true if it has an item already.
struct ItemSeparator(bool);

impl BoundedJsonWriter {
    fn new(budget: usize) -> Self {
        Self { text: String::new(), budget }
    }

    fn left(&self) -> usize {
        self.budget.saturating_sub(self.text.len())
    }

    fn open(&mut self, bracket: char) -> ItemSeparator {
        self.text.push(bracket);
        ItemSeparator(false)
    }

    /// Prepares for another item, with a comma if needed. Returns false if the budget is used up.
    fn next(&mut self, items: &mut ItemSeparator) -> bool {
        if self.left() == 0 {
            return false;
        }
        if std::mem::replace(&mut items.0, true) {
            self.text.push(',');
        }
        true
    }

    fn null(&mut self) {
        self.text.push_str("null");
    }

    fn display(&mut self, value: impl std::fmt::Display) {
        use std::fmt::Write;
        let _ = write!(self.text, "{value}");
    }

    /// Writes a number. JSON cannot express one that is not finite, so that becomes a string.
    fn double(&mut self, value: f64) {
        match value {
            _ if value.is_finite() => self.display(serde_json::Number::from_f64(value).unwrap_or(0.into())),
            _ if value.is_nan() => self.string("NaN"),
            _ if value > 0.0 => self.string("Infinity"),
            _ => self.string("-Infinity"),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        let fits = bytes.get(..self.left() / 4 * 3).unwrap_or(bytes);
        self.text.push('"');
        BASE64_STANDARD.encode_string(fits, &mut self.text);
        self.text.push('"');
    }

    fn string(&mut self, text: &str) {
        let fits = text.get(..text.floor_char_boundary(self.left())).unwrap_or(text);
        self.text.push_str(&serde_json::Value::from(fits).to_string());
    }
}
