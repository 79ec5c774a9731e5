//! The credentials that a client sends.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, header};
use std::borrow::Cow;
use std::fmt;

/// The credentials of a client.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials<'c> {
    /// The client sent none.
    None,
    /// The client sent a token, as a bearer token or as a password.
    Token(Cow<'c, str>),
}

impl<'c> Credentials<'c> {
    /// Reads the `Authorization` header: a bearer token, or the password of `Basic` with any user name.
    #[must_use]
    pub fn from_headers(headers: &'c HeaderMap) -> Self {
        let value =
            headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (scheme, rest) = value.split_once(' ').unwrap_or((value, ""));
        let token = match scheme.to_ascii_lowercase().as_str() {
            "bearer" => Some(Cow::Borrowed(rest.trim())),
            "basic" => basic_password(rest.trim()).map(Cow::Owned),
            _ => None,
        };
        token.filter(|token| !token.is_empty()).map_or(Self::None, Self::Token)
    }
}

/// Secrets are never printed.
impl fmt::Debug for Credentials<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "nothing",
            Self::Token(_) => "a token",
        })
    }
}

/// Decodes the password of the `Basic` scheme.
fn basic_password(encoded: &str) -> Option<String> {
    let text = String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok()?;
    text.split_once(':').map(|(_, password)| password.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bearer_tokens_and_basic_passwords_are_read() {
        let is_abc = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            Credentials::from_headers(&headers) == Credentials::Token("abc".into())
        };
        assert!(is_abc("Bearer abc") && is_abc("bearer  abc "));
        assert!(is_abc("Basic YW5uOmFiYw=="));
        assert!(!is_abc("Basic abc") && !is_abc("Bearer") && !is_abc("abc"));
    }
}
