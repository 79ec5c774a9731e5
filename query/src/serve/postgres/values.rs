//! Decodes the values of parameters from the text and binary formats of the protocol.
//!
//! A client may declare the type of a parameter. Otherwise the statement implies the type; if it does not, the type is
//! text.

mod array;
mod numeric;

pub(super) use array::words as words_of_list;

use super::error::PgError;
use crate::statement::ParameterType;
use arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use arrow_pg::datatypes::into_pg_type;
use bytes::{Buf, Bytes};
use datafusion::common::ScalarValue;
use pgwire::api::Type;

/// The number of days from 1970 to 2000, where PostgreSQL's time begins. The next constant has the microseconds.
const DAYS_TO_2000: i32 = 10_957;
const MICROS_TO_2000: i64 = DAYS_TO_2000 as i64 * 86_400_000_000;

/// A parameter of a statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parameter {
    /// The type that the client declares, if it does.
    pub(super) declared: Option<Type>,
    /// The type that the statement implies.
    pub(super) inferred: Option<DataType>,
}

impl Parameter {
    /// Converts the description of the engine.
    pub(super) fn of_description(parameter: &ParameterType) -> Self {
        Self { declared: parameter.declared.and_then(Type::from_oid), inferred: parameter.inferred.clone() }
    }

    /// Converts the parameter for the engine.
    pub(super) fn described(self) -> ParameterType {
        ParameterType { declared: self.declared.map(|declared| declared.oid()), inferred: self.inferred }
    }

    /// Returns the type in the protocol.
    pub(super) fn wire(&self) -> Type {
        let inferred = || self.inferred.as_ref().and_then(|data_type| into_pg_type(data_type).ok());
        let known = |wire: &Type| *wire != Type::UNKNOWN;
        self.declared.clone().or_else(inferred).filter(known).unwrap_or(Type::TEXT)
    }

    /// Decodes a value.
    pub(super) fn value(
        &self,
        number: usize,
        sent: Option<&Bytes>,
        format: i16,
    ) -> Result<ScalarValue, PgError> {
        let wire = self.wire();
        let Some(bytes) = sent else { return Ok(self.null(&wire)) };
        let read = match format {
            0 => self.text(bytes, &wire),
            1 => binary(bytes.clone(), &wire),
            _ => None,
        };
        let value = read.ok_or_else(|| bad(number, &wire))?;
        self.fitted(value).ok_or_else(|| bad(number, &wire))
    }

    fn null(&self, wire: &Type) -> ScalarValue {
        let data_type = natural(wire).or_else(|| self.inferred.clone());
        data_type
            .and_then(|data_type| ScalarValue::try_from(&data_type).ok())
            .unwrap_or(ScalarValue::Utf8(None))
    }

    fn text(&self, bytes: &[u8], wire: &Type) -> Option<ScalarValue> {
        let text = std::str::from_utf8(bytes).ok()?;
        if *wire == Type::BYTEA {
            return bytea(text);
        }
        if *wire == Type::NUMERIC {
            return numeric::of_text(text);
        }
        match natural(wire)? {
            DataType::List(item) => array::of_text(text, item.data_type()),
            DataType::Utf8 => Some(ScalarValue::Utf8(Some(text.to_owned()))),
            other => ScalarValue::Utf8(Some(text.trim().to_owned())).cast_to(&other).ok(),
        }
    }

    /// Converts a text to the type that the statement implies, and a number if the conversion loses nothing.
    fn fitted(&self, value: ScalarValue) -> Option<ScalarValue> {
        let Some(inferred) = &self.inferred else { return Some(value) };
        let is_text = matches!(value, ScalarValue::Utf8(_));
        let is_whole = value.data_type().is_integer() && inferred.is_integer();
        if is_text && !inferred.is_nested() {
            return value.cast_to(inferred).ok();
        }
        let fitting = is_whole.then(|| value.cast_to(inferred).ok()).flatten();
        Some(fitting.unwrap_or(value))
    }
}

fn bad(number: usize, wire: &Type) -> PgError {
    PgError::error("22P02", format!("the value of parameter ${number} is no {wire}"))
}

/// Returns the engine's type for a type of the protocol. Numbers of any precision become integers or floats.
pub(super) fn natural(wire: &Type) -> Option<DataType> {
    Some(match *wire {
        Type::BOOL => DataType::Boolean,
        Type::INT2 => DataType::Int16,
        Type::INT4 => DataType::Int32,
        Type::INT8 | Type::OID => DataType::Int64,
        Type::FLOAT4 => DataType::Float32,
        Type::FLOAT8 | Type::NUMERIC => DataType::Float64,
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::JSON | Type::JSONB | Type::UUID => {
            DataType::Utf8
        }
        Type::BYTEA => DataType::Binary,
        Type::DATE => DataType::Date32,
        Type::TIME => DataType::Time64(TimeUnit::Microsecond),
        Type::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        Type::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        Type::INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => DataType::new_list(natural(&item_of(wire)?)?, true),
    })
}

/// Returns the type of the elements of a list.
fn item_of(wire: &Type) -> Option<Type> {
    Some(match *wire {
        Type::BOOL_ARRAY => Type::BOOL,
        Type::INT2_ARRAY => Type::INT2,
        Type::INT4_ARRAY => Type::INT4,
        Type::INT8_ARRAY => Type::INT8,
        Type::FLOAT4_ARRAY => Type::FLOAT4,
        Type::FLOAT8_ARRAY => Type::FLOAT8,
        Type::NUMERIC_ARRAY => Type::NUMERIC,
        Type::TEXT_ARRAY => Type::TEXT,
        Type::VARCHAR_ARRAY => Type::VARCHAR,
        Type::DATE_ARRAY => Type::DATE,
        Type::TIMESTAMP_ARRAY => Type::TIMESTAMP,
        Type::TIMESTAMPTZ_ARRAY => Type::TIMESTAMPTZ,
        _ => return None,
    })
}

/// Decodes a value in the binary format. Returns `None` when its length does not match.
fn binary(mut bytes: Bytes, wire: &Type) -> Option<ScalarValue> {
    let value = match *wire {
        Type::BOOL => ScalarValue::Boolean(Some(bytes.try_get_u8().ok()? != 0)),
        Type::INT2 => ScalarValue::Int16(Some(bytes.try_get_i16().ok()?)),
        Type::INT4 => ScalarValue::Int32(Some(bytes.try_get_i32().ok()?)),
        Type::INT8 => ScalarValue::Int64(Some(bytes.try_get_i64().ok()?)),
        Type::OID => ScalarValue::Int64(Some(bytes.try_get_u32().ok()?.into())),
        Type::FLOAT4 => ScalarValue::Float32(Some(bytes.try_get_f32().ok()?)),
        Type::FLOAT8 => ScalarValue::Float64(Some(bytes.try_get_f64().ok()?)),
        Type::DATE => ScalarValue::Date32(Some(bytes.try_get_i32().ok()?.checked_add(DAYS_TO_2000)?)),
        Type::TIME => ScalarValue::Time64Microsecond(Some(bytes.try_get_i64().ok()?)),
        Type::TIMESTAMP => ScalarValue::TimestampMicrosecond(Some(micros(&mut bytes)?), None),
        Type::TIMESTAMPTZ => ScalarValue::TimestampMicrosecond(Some(micros(&mut bytes)?), Some("UTC".into())),
        Type::INTERVAL => interval(&mut bytes)?,
        Type::NUMERIC => numeric::of_binary(&mut bytes)?,
        Type::BYTEA => return Some(ScalarValue::Binary(Some(bytes.into()))),
        Type::UUID => ScalarValue::Utf8(Some(uuid(&mut bytes)?)),
        Type::JSONB => {
            // A version number precedes the text.
            bytes.try_get_u8().ok().filter(|version| *version == 1)?;
            return text(bytes);
        }
        Type::TEXT | Type::VARCHAR | Type::BPCHAR | Type::NAME | Type::JSON => return text(bytes),
        _ => array::of_binary(&mut bytes, &item_of(wire)?)?,
    };
    bytes.is_empty().then_some(value)
}

fn text(bytes: Bytes) -> Option<ScalarValue> {
    String::from_utf8(bytes.into()).ok().map(|text| ScalarValue::Utf8(Some(text)))
}

fn micros(bytes: &mut Bytes) -> Option<i64> {
    bytes.try_get_i64().ok()?.checked_add(MICROS_TO_2000)
}

fn interval(bytes: &mut Bytes) -> Option<ScalarValue> {
    let micros = bytes.try_get_i64().ok()?;
    let (days, months) = (bytes.try_get_i32().ok()?, bytes.try_get_i32().ok()?);
    let interval = IntervalMonthDayNano::new(months, days, micros.checked_mul(1_000)?);
    Some(ScalarValue::IntervalMonthDayNano(Some(interval)))
}

fn uuid(bytes: &mut Bytes) -> Option<String> {
    let number = format!("{:032x}", bytes.try_get_u128().ok()?);
    let parts = [&number[..8], &number[8..12], &number[12..16], &number[16..20], &number[20..]];
    Some(parts.join("-"))
}

/// Decodes bytes from hex digits.
fn bytea(text: &str) -> Option<ScalarValue> {
    let digits = text.strip_prefix("\\x")?;
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes = digits.as_bytes().chunks(2).map(pair).collect::<Option<Vec<_>>>()?;
    (digits.len() % 2 == 0).then_some(ScalarValue::Binary(Some(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(
        declared: Option<Type>,
        inferred: Option<DataType>,
        sent: &[u8],
        format: i16,
    ) -> Result<ScalarValue, PgError> {
        Parameter { declared, inferred }.value(1, Some(&Bytes::copy_from_slice(sent)), format)
    }

    #[test]
    fn texts_become_what_the_statement_wants() {
        let times = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        let time = value(None, Some(times.clone()), b"2026-11-16 00:00:00+00", 0);
        assert_eq!(
            time,
            Ok(ScalarValue::TimestampMicrosecond(Some(1_794_787_200_000_000), Some("UTC".into())))
        );
        assert_eq!(value(Some(Type::TEXT), Some(times.clone()), b"2026-11-16T00:00:00Z", 0), time);
        assert_eq!(value(None, Some(DataType::Int32), b" 42 ", 0), Ok(ScalarValue::Int32(Some(42))));
        assert_eq!(value(None, None, b"x", 0), Ok(ScalarValue::Utf8(Some("x".to_owned()))));
        assert_eq!(value(None, Some(times), b"yesterday", 0).unwrap_err().code, "22P02");
    }

    #[test]
    fn numbers_lose_nothing() {
        let float = value(Some(Type::FLOAT8), Some(DataType::Int64), &1.5_f64.to_be_bytes(), 1);
        assert_eq!(float, Ok(ScalarValue::Float64(Some(1.5))));
        assert_eq!(
            value(Some(Type::INT2), Some(DataType::Int64), &[0, 7], 1),
            Ok(ScalarValue::Int64(Some(7)))
        );
        let large = value(Some(Type::INT8), Some(DataType::Int32), &i64::MAX.to_be_bytes(), 1);
        assert_eq!(large, Ok(ScalarValue::Int64(Some(i64::MAX))));
    }

    #[test]
    fn times_begin_in_2000() {
        let day = value(Some(Type::DATE), None, &1_i32.to_be_bytes(), 1);
        assert_eq!(day, Ok(ScalarValue::Date32(Some(10_958))));
        let time = value(Some(Type::TIMESTAMPTZ), None, &0_i64.to_be_bytes(), 1);
        assert_eq!(
            time,
            Ok(ScalarValue::TimestampMicrosecond(Some(946_684_800_000_000), Some("UTC".into())))
        );
        assert!(value(Some(Type::TIMESTAMPTZ), None, &i64::MAX.to_be_bytes(), 1).is_err());
    }

    #[test]
    fn half_values_are_errors() {
        for wire in [
            Type::BOOL,
            Type::INT4,
            Type::FLOAT8,
            Type::INTERVAL,
            Type::NUMERIC,
            Type::UUID,
            Type::TEXT_ARRAY,
        ] {
            assert_eq!(value(Some(wire.clone()), None, &[], 1).unwrap_err().code, "22P02", "{wire}");
        }
        assert!(value(Some(Type::INT4), None, &[0, 0, 0, 1, 9], 1).is_err());
        assert!(value(Some(Type::TEXT), None, &[0xff], 1).is_err());
        assert!(value(Some(Type::BYTEA), None, b"\\xabc", 0).is_err());
        assert_eq!(
            value(Some(Type::BYTEA), None, b"\\xab0c", 0),
            Ok(ScalarValue::Binary(Some(vec![0xab, 0x0c])))
        );
    }
}
