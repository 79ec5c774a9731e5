//! Strings, numbers and booleans of OTLP/JSON: 64-bit numbers may be strings, enum values may be names, and numbers
//! that JSON cannot express, such as `NaN`, are strings too.

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::borrow::Cow;
use std::fmt;

/// A string, a number or a boolean, as it was sent.
#[derive(Debug, Clone)]
pub(super) enum Scalar<'a> {
    Text(Cow<'a, str>),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Bool(bool),
}

/// The result of reading one field.
pub(super) type JsonResult<T> = Result<T, serde_json::Error>;

impl<'a> Scalar<'a> {
    pub(super) fn text(self, field: &str) -> JsonResult<Cow<'a, str>> {
        match self {
            Self::Text(text) => Ok(text),
            _ => wrong(field, "a text"),
        }
    }

    pub(super) fn unsigned(&self, field: &str) -> JsonResult<u64> {
        let found = match self {
            Self::Text(text) => text.trim().parse().ok(),
            Self::Unsigned(number) => Some(*number),
            Self::Float(number) if number.fract() == 0.0 && (0.0..1.8e19).contains(number) => {
                Some(*number as u64)
            }
            _ => None,
        };
        found.map_or_else(|| wrong(field, "a whole number, or a text that holds one"), Ok)
    }

    pub(super) fn signed(&self, field: &str) -> JsonResult<i64> {
        let found = match self {
            Self::Text(text) => text.trim().parse().ok(),
            Self::Unsigned(number) => i64::try_from(*number).ok(),
            Self::Signed(number) => Some(*number),
            Self::Float(number) if number.fract() == 0.0 && number.abs() < 9.2e18 => Some(*number as i64),
            _ => None,
        };
        found.map_or_else(|| wrong(field, "a whole number, or a text that holds one"), Ok)
    }

    /// Returns a floating-point number. `parse` accepts `NaN`, `Infinity` and `-Infinity`.
    pub(super) fn double(&self, field: &str) -> JsonResult<f64> {
        let found = match self {
            Self::Text(text) => text.trim().parse().ok(),
            Self::Unsigned(number) => Some(*number as f64),
            Self::Signed(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            Self::Bool(_) => None,
        };
        found.map_or_else(|| wrong(field, "a number, or a text that holds one"), Ok)
    }

    pub(super) fn bool(&self, field: &str) -> JsonResult<bool> {
        match self {
            Self::Bool(value) => Ok(*value),
            _ => wrong(field, "true or false"),
        }
    }

    /// Returns the number of an enum value, given as a number or as one of the names that `named` knows.
    pub(super) fn choice(&self, field: &str, named: fn(&str) -> Option<i64>) -> JsonResult<i64> {
        match self {
            Self::Text(name) => Ok(named(name).or_else(|| name.trim().parse().ok()).unwrap_or(0)),
            number => number.signed(field),
        }
    }
}

fn wrong<T>(field: &str, expected: &str) -> JsonResult<T> {
    Err(Error::custom(format!("{field} is not {expected}")))
}

/// Decodes an id in hexadecimal, in upper or lower case.
pub(super) fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != N * 2 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = pair.iter().try_fold(0, |byte, digit| Some(byte << 4 | nibble(*digit)?))?;
    }
    Some(bytes)
}

fn nibble(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

impl<'de: 'a, 'a> Deserialize<'de> for Scalar<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl<'de> Visitor<'de> for ScalarVisitor {
    type Value = Scalar<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number or a truth value")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Scalar::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Scalar::Unsigned(number))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Scalar::Signed(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Scalar::Float(number))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Scalar::Bool(value))
    }
}
