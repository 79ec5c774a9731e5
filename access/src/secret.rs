//! A token as its owner has it.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use std::fmt;

/// What tokens begin with, so that people and scanners know one when they see it.
const PREFIX: &str = "flt_";
/// Shorter ones could be guessed.
const LEAST: usize = 20;

/// A token. It prints itself only when asked to ([`Self::reveal`]).
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// A new one: 32 random bytes.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new() -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes))))
    }

    /// One that somebody else has made, if it is long enough not to be guessed.
    #[must_use]
    pub fn given(text: &str) -> Option<Self> {
        let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        (text.len() >= LEAST && is_printable).then(|| Self(text.to_owned()))
    }

    /// The token itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// What may be stored. Tokens are random, so that a plain hash cannot be turned around.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        digest_of(&self.0)
    }
}

/// The hash of what a client says is a token.
pub(crate) fn digest_of(text: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    bytes
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token")
    }
}
