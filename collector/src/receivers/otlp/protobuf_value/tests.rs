//! Tests of attribute values: every kind, nested and hostile.

use super::super::any_value::JSON_BYTES;
use super::super::test_data;
use super::*;
use crate::Limits;
use opentelemetry_proto::tonic::common::v1::AnyValue as SentValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Sent;
use prost::Message as _;

fn limits() -> Limits {
    Limits { value_depth: 3, attributes: 4, ..Limits::default() }
}

fn read(value: &SentValue) -> Value<'static> {
    let bytes = value.encode_to_vec();
    let slice = BodySlice { bytes: &bytes, at: 0 };
    match ValueReader::new(&limits()).value(slice).unwrap() {
        Value::Text(text) => Value::Text(text.into_owned().into()),
        Value::Json(text) => Value::Json(text.into_owned().into()),
        Value::Empty => Value::Empty,
        Value::Int(value) => Value::Int(value),
        Value::Double(value) => Value::Double(value),
        Value::Bool(value) => Value::Bool(value),
    }
}

fn nested(levels: usize) -> SentValue {
    (0..levels).fold(test_data::text("x"), |value, _| test_data::list(vec![value]))
}

#[test]
fn depth_is_cut_off() {
    assert_eq!(read(&nested(3)), Value::Json("[[[\"x\"]]]".into()));
    assert_eq!(read(&nested(4)), Value::Json("[[[null]]]".into()));
    assert_eq!(read(&nested(60)), Value::Json("[[[null]]]".into()));
}

#[test]
fn what_json_cannot_write() {
    let doubles = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -0.0]
        .map(|value| test_data::any(Sent::DoubleValue(value)));
    let expected = "[\"NaN\",\"Infinity\",\"-Infinity\",1e+300,-0.0]";
    let Value::Json(text) = read(&test_data::list(doubles.to_vec())) else { panic!() };
    let normal = |text: &str| text.replace("e+", "e");
    assert_eq!(normal(&text), normal(expected));
}

#[test]
fn a_record_writes_no_more_json_than_its_budget() {
    let value = test_data::list(vec![test_data::text(&"\u{1}".repeat(1000)); 2000]);
    let Value::Json(text) = read(&value) else { panic!() };
    assert!(text.len() < JSON_BYTES + 10_000, "{}", text.len());
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());

    let bytes = test_data::list(vec![test_data::any(Sent::BytesValue(vec![0xff; 300_000])); 9]);
    let Value::Json(text) = read(&bytes) else { panic!() };
    assert!(text.len() < JSON_BYTES + 100, "{}", text.len());
    assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
}

#[test]
fn broken_text_is_mended_not_refused() {
    let slice = |bytes| BodySlice { bytes, at: 0 };
    assert_eq!(text(slice(b"a\xffb")), "a\u{fffd}b");
    let long = vec![0xff; 10 << 20];
    assert_eq!(text(slice(&long)).len(), MENDED_BYTES * 3);
}

#[test]
fn attributes_past_the_limit_are_not_read() {
    let attribute = test_data::attribute("k", test_data::text("v")).encode_to_vec();
    let mut values = ValueReader::new(&limits());
    let mut list = Vec::new();
    for _ in 0..10 {
        values.push(BodySlice { bytes: &attribute, at: 0 }, &mut list).unwrap();
    }
    assert_eq!(list.len(), 4);
}
