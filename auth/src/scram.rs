//! SCRAM-SHA-256 (RFC 5802 and 7677): a client proves that it has a password without sending it, and the server
//! proves that it knows the password.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::{digest, hmac, pbkdf2};
use std::fmt;
use std::num::NonZeroU32;
use subtle::ConstantTimeEq;

/// The name of the mechanism.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// The iteration count that PostgreSQL uses. Tokens are random, so more iterations would only cost time.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).unwrap();

/// The reason why an exchange fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// The message does not follow the mechanism.
    #[error("the message is not a valid SCRAM-SHA-256 message")]
    Malformed,
    /// The proof does not match the password.
    #[error("the password is wrong")]
    WrongPassword,
}

/// The stored form of a password. It can check the password, and cannot be used in its place.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    salt: [u8; 16],
    stored_key: [u8; 32],
    server_key: [u8; 32],
}

impl Verifier {
    /// Derives the verifier of a password, with a random salt.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn derive(password: &str) -> std::io::Result<Self> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt)?;
        Ok(Self::derive_with_salt(password, salt))
    }

    fn derive_with_salt(password: &str, salt: [u8; 16]) -> Self {
        let mut salted = [0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ITERATIONS, &salt, password.as_bytes(), &mut salted);
        let stored_key = sha256(&hmac_sha256(&salted, b"Client Key"));
        Self { salt, stored_key, server_key: hmac_sha256(&salted, b"Server Key") }
    }

    /// Parses the text that [`Display`](fmt::Display) writes, which is also how PostgreSQL stores verifiers.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(MECHANISM)?.strip_prefix("$4096:")?;
        let (salt, keys) = rest.split_once('$')?;
        let (stored, server) = keys.split_once(':')?;
        Some(Self {
            salt: decode_base64(salt)?,
            stored_key: decode_base64(stored)?,
            server_key: decode_base64(server)?,
        })
    }

    /// Returns a verifier that no password matches, for unknown names, so that a client cannot tell which names
    /// exist.
    fn for_unknown_user(name: &str) -> Self {
        let digest = sha256(name.as_bytes());
        let mut salt = [0; 16];
        salt.copy_from_slice(&digest[..16]);
        Self { salt, stored_key: [0; 32], server_key: [0; 32] }
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let encode = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
        write!(
            f,
            "{MECHANISM}$4096:{}${}:{}",
            encode(&self.salt),
            encode(&self.stored_key),
            encode(&self.server_key)
        )
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a verifier")
    }
}

/// An exchange after the client's first message.
#[derive(Debug)]
pub struct Exchange {
    verifier: Verifier,
    /// The messages so far, without the GS2 header: the first part of what both sides sign.
    auth_message: String,
    /// The client's nonce followed by the server's. The client must repeat it.
    nonce: String,
    /// The beginning of the client's first message. The client must repeat it.
    gs2_header: String,
}

impl Exchange {
    /// Processes the client's first message, and returns the server's. Without a verifier the exchange continues in the
    /// same way, and fails at its end.
    ///
    /// # Errors
    /// When the message is malformed, or requires channel binding.
    pub fn begin(
        verifier: Option<Verifier>,
        user: &str,
        client_first: &str,
    ) -> Result<(Self, String), ScramError> {
        let mut nonce = [0; 18];
        getrandom::fill(&mut nonce).map_err(|_| ScramError::Malformed)?;
        Self::begin_with_nonce(verifier, user, client_first, &BASE64_STANDARD.encode(nonce))
    }

    fn begin_with_nonce(
        verifier: Option<Verifier>,
        user: &str,
        client_first: &str,
        server_nonce: &str,
    ) -> Result<(Self, String), ScramError> {
        let bare = client_first
            .strip_prefix("n,,")
            .or_else(|| client_first.strip_prefix("y,,"))
            .ok_or(ScramError::Malformed)?;
        let gs2_header = client_first[..3].to_owned();
        let client_nonce =
            bare.split(',').find_map(|part| part.strip_prefix("r=")).ok_or(ScramError::Malformed)?;
        if client_nonce.is_empty() || !bare.starts_with("n=") {
            return Err(ScramError::Malformed);
        }
        let verifier = verifier.unwrap_or_else(|| Verifier::for_unknown_user(user));
        let nonce = format!("{client_nonce}{server_nonce}");
        let reply = format!("r={nonce},s={},i={ITERATIONS}", BASE64_STANDARD.encode(verifier.salt));
        let auth_message = format!("{bare},{reply}");
        Ok((Self { verifier, auth_message, nonce, gs2_header }, reply))
    }

    /// Checks the client's proof, and returns the server's.
    ///
    /// # Errors
    /// When the message is malformed, or the proof does not match.
    pub fn finish(self, client_final: &str) -> Result<String, ScramError> {
        let (without_proof, proof) = client_final.rsplit_once(",p=").ok_or(ScramError::Malformed)?;
        let expected = format!("c={},r={}", BASE64_STANDARD.encode(&self.gs2_header), self.nonce);
        if without_proof != expected {
            return Err(ScramError::Malformed);
        }
        let proof: [u8; 32] = decode_base64(proof).ok_or(ScramError::Malformed)?;
        let auth_message = format!("{},{without_proof}", self.auth_message);
        let signature = hmac_sha256(&self.verifier.stored_key, auth_message.as_bytes());
        let mut client_key = [0; 32];
        for (key, (proof, signature)) in client_key.iter_mut().zip(proof.iter().zip(signature)) {
            *key = proof ^ signature;
        }
        if !bool::from(sha256(&client_key).ct_eq(&self.verifier.stored_key)) {
            return Err(ScramError::WrongPassword);
        }
        let server_signature = hmac_sha256(&self.verifier.server_key, auth_message.as_bytes());
        Ok(format!("v={}", BASE64_STANDARD.encode(server_signature)))
    }
}

fn hmac_sha256(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref());
    bytes
}

fn sha256(text: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, text).as_ref());
    bytes
}

fn decode_base64<const N: usize>(text: &str) -> Option<[u8; N]> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the example of RFC 7677.
    #[test]
    fn the_example_of_the_rfc_succeeds() {
        let salt = decode_base64("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::derive_with_salt("pencil", salt);
        let first = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
        let (exchange, reply) =
            Exchange::begin_with_nonce(Some(verifier), "user", first, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
                .unwrap();
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        assert_eq!(reply, format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"));
        let last = format!("c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        assert_eq!(exchange.finish(&last), Ok("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=".to_owned()));
    }

    #[test]
    fn malformed_messages_and_wrong_proofs_are_rejected() {
        let verifier = Verifier::derive("pencil").unwrap();
        assert_eq!(Verifier::parse(&verifier.to_string()), Some(verifier.clone()));
        for first in ["", "p=tls-unique,,n=,r=x", "n,,r=x", "n,,n=", "n,,n=,r=", "n,a=x,n=,r=y"] {
            assert_eq!(
                Exchange::begin(Some(verifier.clone()), "u", first).unwrap_err(),
                ScramError::Malformed,
                "{first}"
            );
        }
        let begun = |verifier| Exchange::begin_with_nonce(verifier, "u", "n,,n=,r=a", "b").unwrap().0;
        let proof = BASE64_STANDARD.encode([7; 32]);
        let wrong = format!("c=biws,r=ab,p={proof}");
        assert_eq!(begun(Some(verifier.clone())).finish(&wrong), Err(ScramError::WrongPassword));
        assert_eq!(begun(None).finish(&wrong), Err(ScramError::WrongPassword));
        let bad = [
            format!("c=eSws,r=ab,p={proof}"),
            format!("c=biws,r=a,p={proof}"),
            "c=biws,r=ab,p=xx".to_owned(),
            String::new(),
        ];
        for last in bad {
            assert_eq!(begun(Some(verifier.clone())).finish(&last), Err(ScramError::Malformed), "{last}");
        }
    }
}
