//! The text of a token, as its owner has it.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use std::fmt;

/// The prefix of generated tokens, by which people and secret scanners recognise them.
const PREFIX: &str = "flt_";
/// The minimum length of a token. Shorter tokens could be guessed.
const MIN_LENGTH: usize = 20;

/// The text of a token. It is printed only by [`Self::reveal`].
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Generates a token of 32 random bytes.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn generate() -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(bytes))))
    }

    /// Creates a secret from a token that was generated elsewhere, if it is printable and long enough not to be
    /// guessed.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        let is_printable = text.bytes().all(|byte| byte.is_ascii_graphic());
        (text.len() >= MIN_LENGTH && is_printable).then(|| Self(text.to_owned()))
    }

    /// Returns the token itself.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns the hash, which may be stored. Tokens are random, so a plain hash cannot be reversed.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        sha256(&self.0)
    }
}

/// Hashes a token that a client has sent.
pub(crate) fn sha256(text: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, text.as_bytes()).as_ref());
    bytes
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a token")
    }
}
