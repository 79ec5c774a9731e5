//! Tests of the wire format: numbers, lengths, and rejected encodings.

use super::*;
use proptest::prelude::*;

fn fields(body: &[u8]) -> Result<Vec<(u64, FieldValue<'_>)>, DecodeError> {
    let mut message = MessageReader::of_body(body);
    let mut fields = Vec::new();
    while let Some(field) = message.next()? {
        fields.push(field);
    }
    Ok(fields)
}

#[test]
fn every_type_of_field() {
    let body = b"\x08\x96\x01\x11\x01\0\0\0\0\0\0\0\x1a\x03abc\x25\x02\0\0\0\x82\x01\0";
    let expected = [
        (1, FieldValue::Varint(150)),
        (2, FieldValue::Fixed64(1)),
        (3, FieldValue::Bytes(BodySlice { bytes: b"abc", at: 14 })),
        (4, FieldValue::Fixed32(2)),
        (16, FieldValue::Bytes(BodySlice { bytes: b"", at: 25 })),
    ];
    assert_eq!(fields(body).unwrap(), expected);
    let most = b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    assert_eq!(fields(most).unwrap(), [(1, FieldValue::Varint(u64::MAX))]);
}

#[test]
fn what_is_wrong_and_where() {
    for (body, what, at) in [
        (&b"\x0a\x05ab"[..], "a length beyond the end", 2),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "a length beyond the end", 11),
        (b"\x08", "the end inside a number", 1),
        (b"\x08\x80", "the end inside a number", 1),
        (b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "a number too long", 1),
        (b"\x11\x01", "the end inside a number", 1),
        (b"\x25\x01", "the end inside a number", 1),
        (b"\x0b\x0c", "a group, or no known type of field,", 1),
        (b"{\"resourceSpans\":[]}", "a group, or no known type of field,", 1),
        (b"\x02\x00", "a field without a number", 2),
    ] {
        assert_eq!(fields(body).unwrap_err(), DecodeError { what, at }, "{body:?}");
    }
    let rejection = Rejection::from(DecodeError { what: "a number too long", at: 9 });
    assert_eq!(rejection.detail, "not a protobuf message: a number too long at byte 9");
}

#[test]
fn a_message_in_a_message_knows_where_it_is() {
    let (_, field) = MessageReader::of_body(b"\x0a\x03\x12\x09a").next().unwrap().unwrap();
    let FieldValue::Bytes(slice) = field else { panic!("{field:?}") };
    assert_eq!(MessageReader::new(slice).next().unwrap_err().at, 4);
}

proptest! {
    #[test]
    fn any_bytes_are_walked(body in proptest::collection::vec(any::<u8>(), 0..200)) {
        if let Err(malformed) = fields(&body) {
            prop_assert!(malformed.at <= body.len());
        }
    }
}
