//! SCRAM-SHA-256 (RFC 5802 and 7677): a client proves that it has a password without sending it, and we that we know it.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use ring::{digest, hmac, pbkdf2};
use std::fmt;
use std::num::NonZeroU32;
use subtle::ConstantTimeEq;

/// The name of the mechanism.
pub const MECHANISM: &str = "SCRAM-SHA-256";
/// What PostgreSQL uses. Tokens are random: more would only cost time.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).unwrap();

/// Why somebody has not proved it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// The message is none of this mechanism's.
    #[error("the message is not SCRAM-SHA-256")]
    Malformed,
    /// The proof does not hold.
    #[error("the password is wrong")]
    Wrong,
}

/// What is stored of a password: it can check one, and cannot be used as one.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    salt: [u8; 16],
    stored_key: [u8; 32],
    server_key: [u8; 32],
}

impl Verifier {
    /// Of a password.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn of(password: &str) -> std::io::Result<Self> {
        let mut salt = [0; 16];
        getrandom::fill(&mut salt)?;
        Ok(Self::salted(password, salt))
    }

    fn salted(password: &str, salt: [u8; 16]) -> Self {
        let mut salted = [0; 32];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, ITERATIONS, &salt, password.as_bytes(), &mut salted);
        let stored_key = sha256(&sign(&salted, b"Client Key"));
        Self { salt, stored_key, server_key: sign(&salted, b"Server Key") }
    }

    /// Reads what [`Display`](fmt::Display) writes, which is also how PostgreSQL stores it.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(MECHANISM)?.strip_prefix("$4096:")?;
        let (salt, keys) = rest.split_once('$')?;
        let (stored, server) = keys.split_once(':')?;
        Some(Self { salt: bytes(salt)?, stored_key: bytes(stored)?, server_key: bytes(server)? })
    }

    /// One that nothing fits, for names that nobody has: whoever asks cannot tell.
    fn of_nobody(name: &str) -> Self {
        let digest = sha256(name.as_bytes());
        let mut salt = [0; 16];
        salt.copy_from_slice(&digest[..16]);
        Self { salt, stored_key: [0; 32], server_key: [0; 32] }
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |bytes: &[u8]| BASE64_STANDARD.encode(bytes);
        write!(
            f,
            "{MECHANISM}$4096:{}${}:{}",
            text(&self.salt),
            text(&self.stored_key),
            text(&self.server_key)
        )
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a verifier")
    }
}

/// One exchange, after the client's first message.
#[derive(Debug)]
pub struct Exchange {
    verifier: Verifier,
    /// What both sides sign, so far.
    said: String,
    /// What the client must say again: its nonce and ours, and the beginning of its first message.
    nonce: String,
    header: String,
}

impl Exchange {
    /// Takes the client's first message, and returns ours. Without a verifier the exchange goes on all the same, and fails
    /// at its end.
    ///
    /// # Errors
    /// When the message is none of this mechanism's, or asks to be bound to a channel.
    pub fn begin(verifier: Option<Verifier>, user: &str, first: &str) -> Result<(Self, String), ScramError> {
        let mut nonce = [0; 18];
        getrandom::fill(&mut nonce).map_err(|_| ScramError::Malformed)?;
        Self::with_nonce(verifier, user, first, &BASE64_STANDARD.encode(nonce))
    }

    fn with_nonce(
        verifier: Option<Verifier>,
        user: &str,
        first: &str,
        ours: &str,
    ) -> Result<(Self, String), ScramError> {
        let bare =
            first.strip_prefix("n,,").or_else(|| first.strip_prefix("y,,")).ok_or(ScramError::Malformed)?;
        let header = first[..3].to_owned();
        let theirs = bare.split(',').find_map(|part| part.strip_prefix("r=")).ok_or(ScramError::Malformed)?;
        if theirs.is_empty() || !bare.starts_with("n=") {
            return Err(ScramError::Malformed);
        }
        let verifier = verifier.unwrap_or_else(|| Verifier::of_nobody(user));
        let nonce = format!("{theirs}{ours}");
        let reply = format!("r={nonce},s={},i={ITERATIONS}", BASE64_STANDARD.encode(verifier.salt));
        let said = format!("{bare},{reply}");
        Ok((Self { verifier, said, nonce, header }, reply))
    }

    /// Takes the client's proof, and returns ours.
    ///
    /// # Errors
    /// When the proof does not hold.
    pub fn finish(self, last: &str) -> Result<String, ScramError> {
        let (without_proof, proof) = last.rsplit_once(",p=").ok_or(ScramError::Malformed)?;
        let expected = format!("c={},r={}", BASE64_STANDARD.encode(&self.header), self.nonce);
        if without_proof != expected {
            return Err(ScramError::Malformed);
        }
        let proof: [u8; 32] = bytes(proof).ok_or(ScramError::Malformed)?;
        let said = format!("{},{without_proof}", self.said);
        let signature = sign(&self.verifier.stored_key, said.as_bytes());
        let mut client_key = [0; 32];
        for (key, (proof, signature)) in client_key.iter_mut().zip(proof.iter().zip(signature)) {
            *key = proof ^ signature;
        }
        if !bool::from(sha256(&client_key).ct_eq(&self.verifier.stored_key)) {
            return Err(ScramError::Wrong);
        }
        Ok(format!("v={}", BASE64_STANDARD.encode(sign(&self.verifier.server_key, said.as_bytes()))))
    }
}

fn sign(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text).as_ref());
    bytes
}

fn sha256(text: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, text).as_ref());
    bytes
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    BASE64_STANDARD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677.
    #[test]
    fn the_published_example_holds() {
        let salt = bytes("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let verifier = Verifier::salted("pencil", salt);
        let first = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
        let (exchange, reply) =
            Exchange::with_nonce(Some(verifier), "user", first, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0").unwrap();
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        assert_eq!(reply, format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"));
        let last = format!("c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        assert_eq!(exchange.finish(&last), Ok("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=".to_owned()));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let verifier = Verifier::of("pencil").unwrap();
        assert_eq!(Verifier::read(&verifier.to_string()), Some(verifier.clone()));
        for first in ["", "p=tls-unique,,n=,r=x", "n,,r=x", "n,,n=", "n,,n=,r=", "n,a=x,n=,r=y"] {
            assert_eq!(
                Exchange::begin(Some(verifier.clone()), "u", first).unwrap_err(),
                ScramError::Malformed,
                "{first}"
            );
        }
        let begun = |verifier| Exchange::with_nonce(verifier, "u", "n,,n=,r=a", "b").unwrap().0;
        let proof = BASE64_STANDARD.encode([7; 32]);
        let wrong = format!("c=biws,r=ab,p={proof}");
        assert_eq!(begun(Some(verifier.clone())).finish(&wrong), Err(ScramError::Wrong));
        assert_eq!(begun(None).finish(&wrong), Err(ScramError::Wrong));
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
