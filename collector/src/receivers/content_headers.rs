//! Content types and encodings: what heads say about bodies, read the same way by every receiver.

use crate::pipeline::Encoding;
use crate::{Rejection, RejectionReason};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName};

/// The names of the encodings we read.
const ENCODINGS: [(&str, Encoding); 4] = [
    ("identity", Encoding::Identity),
    ("gzip", Encoding::Gzip),
    ("x-gzip", Encoding::Gzip),
    ("zstd", Encoding::Zstd),
];

/// gRPC's name for the header.
pub(crate) const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// How an HTTP body is compressed.
pub(crate) fn content_encoding(headers: &HeaderMap) -> Result<Encoding, Rejection> {
    encoding(headers, &CONTENT_ENCODING)
}

/// How the compressed messages of a gRPC call are compressed.
pub(crate) fn grpc_encoding(headers: &HeaderMap) -> Result<Encoding, Rejection> {
    encoding(headers, &GRPC_ENCODING)
}

/// One encoding, or none: bodies that are compressed twice are not read.
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

/// The content type without its parameters, in lower case; empty when there is none.
pub(crate) fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or("?")).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// A sender's text as a message shows it: short, and nothing that a terminal would obey.
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
