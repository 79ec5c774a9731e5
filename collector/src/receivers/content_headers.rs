//! Parses content types and encodings, the same way for every receiver.

use crate::pipeline::Encoding;
use crate::{Rejection, RejectionReason};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};

/// The names of the supported encodings.
const ENCODINGS: [(&str, Encoding); 4] = [
    ("identity", Encoding::Identity),
    ("gzip", Encoding::Gzip),
    ("x-gzip", Encoding::Gzip),
    ("zstd", Encoding::Zstd),
];

/// The header with the encoding of gRPC messages.
pub(crate) const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Returns the compression of an HTTP body.
pub(crate) fn content_encoding(headers: &HeaderMap) -> Result<Encoding, Rejection> {
    encoding(headers, &CONTENT_ENCODING)
}

/// Returns the compression of those messages of a gRPC call that are flagged as compressed.
pub(crate) fn grpc_encoding(headers: &HeaderMap) -> Result<Encoding, Rejection> {
    encoding(headers, &GRPC_ENCODING)
}

/// Returns the one encoding that a header names, or `Identity`. Bodies that are compressed twice are rejected.
fn encoding(headers: &HeaderMap, name: &HeaderName) -> Result<Encoding, Rejection> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(Encoding::Identity) };
    let text = value.to_str().unwrap_or("?").trim();
    let known = ENCODINGS.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
    match (known, values.next()) {
        (_, None) if text.is_empty() => Ok(Encoding::Identity),
        (Some((_, encoding)), None) => Ok(*encoding),
        (_, more) => {
            let text = if more.is_some() { "several" } else { text };
            Err(Rejection::new(
                RejectionReason::WrongEncoding,
                format!("{name} {} is not read here", quoted(text)),
            ))
        }
    }
}

/// Returns the content type without its parameters, in lower case; empty if there is none.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?")).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Quotes a sender's text for a message: it is shortened, and its control characters are escaped.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 80;
    let mut shown: String = text.chars().take(SHOWN).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN).is_some() {
        shown.push_str("...");
    }
    format!("\"{shown}\"")
}

#[cfg(test)]
mod tests;
