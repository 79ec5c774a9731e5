//! Tests of content types and encodings, as senders spell them.

use super::*;
use http::HeaderValue;

fn headers(name: &HeaderName, values: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for value in values {
        headers.append(name.clone(), HeaderValue::from_str(value).unwrap());
    }
    headers
}

#[test]
fn encodings_by_name() {
    for (values, expected) in [
        (&[][..], Some(Encoding::Identity)),
        (&[""], Some(Encoding::Identity)),
        (&["identity"], Some(Encoding::Identity)),
        (&["gzip"], Some(Encoding::Gzip)),
        (&["X-GZIP"], Some(Encoding::Gzip)),
        (&[" zstd "], Some(Encoding::Zstd)),
        (&["br"], None),
        (&["deflate"], None),
        (&["gzip, gzip"], None),
        (&["gzip", "zstd"], None),
    ] {
        assert_eq!(content_encoding(&headers(&CONTENT_ENCODING, values)).ok(), expected, "{values:?}");
        assert_eq!(grpc_encoding(&headers(&GRPC_ENCODING, values)).ok(), expected, "{values:?}");
    }
}

#[test]
fn parameters_of_a_type_are_left_out() {
    for (value, expected) in [
        ("application/json", "application/json"),
        ("Application/JSON; charset=utf-8", "application/json"),
        ("text/plain;x=y;z", "text/plain"),
        ("", ""),
    ] {
        assert_eq!(media_type(&headers(&CONTENT_TYPE, &[value])), expected);
    }
    assert_eq!(media_type(&HeaderMap::new()), "");
}

#[test]
fn what_is_shown_is_short_and_harmless() {
    assert_eq!(quoted("a\u{1b}[31m\"b"), "\"a\\u{1b}[31m\\\"b\"");
    assert_eq!(quoted(&"x".repeat(1000)).len(), 80 + 3 + 2);
}
