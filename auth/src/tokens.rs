//! The known tokens, from a file that `faultline token new` appends to, or from a list in the environment.

use crate::scope::Scope;
use crate::scram::Verifier;
use crate::secret::{Secret, sha256};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

/// The reason why tokens cannot be used. The message does not quote them.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The text is not a valid token file.
    #[error("line {line}: {problem}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The mistake.
        problem: String,
    },
    /// An entry of the file is not valid.
    #[error("the token '{name}' {problem}")]
    InvalidEntry {
        /// The name of the token.
        name: String,
        /// The mistake.
        problem: &'static str,
    },
    /// An item of a list in the environment is not valid.
    #[error("token {number} of the list {problem}")]
    InvalidListItem {
        /// The position in the list, from 1.
        number: usize,
        /// The mistake.
        problem: &'static str,
    },
    /// The system has no random numbers.
    #[error(transparent)]
    NoRandomness(#[from] std::io::Error),
}

/// One token.
#[derive(Debug, Clone)]
pub struct Token {
    /// The name; PostgreSQL clients send it as their user name.
    pub name: String,
    /// The scopes that it has.
    pub scopes: Vec<Scope>,
    /// The time at which it expires.
    pub expires: Option<Timestamp>,
    digest: [u8; 32],
    verifier: Verifier,
}

impl Token {
    /// Creates an entry for a secret, which keeps only its hash and its SCRAM verifier.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new(
        name: &str,
        scopes: &[Scope],
        expires: Option<Timestamp>,
        secret: &Secret,
    ) -> std::io::Result<Self> {
        let verifier = Verifier::derive(secret.reveal())?;
        let (name, scopes, digest) = (name.to_owned(), scopes.to_vec(), secret.digest());
        Ok(Self { name, scopes, expires, digest, verifier })
    }

    /// Returns the hash of the token's secret.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// Returns the SCRAM verifier, against which a PostgreSQL client proves that it has the token.
    #[must_use]
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Returns true when the token may be used where a scope is required.
    #[must_use]
    pub fn allows(&self, required: Scope) -> bool {
        self.scopes.iter().any(|scope| scope.allows(required))
    }

    /// Returns true when the token has expired.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Returns the token as an entry of a token file, in TOML.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let entry = TokenEntry {
            name: self.name.clone(),
            scopes: self.scopes.clone(),
            expires: self.expires.map(|expires| expires.to_string()),
            sha256: self.digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            scram: self.verifier.to_string(),
        };
        let scopes: Vec<String> = entry.scopes.iter().map(|scope| format!("\"{scope}\"")).collect();
        let expires = entry.expires.map(|expires| format!("expires = \"{expires}\"\n")).unwrap_or_default();
        format!(
            "[[token]]\nname = {:?}\nscopes = [{}]\n{expires}sha256 = \"{}\"\nscram = \"{}\"\n",
            entry.name,
            scopes.join(", "),
            entry.sha256,
            entry.scram
        )
    }
}

/// A set of tokens with distinct names.
#[derive(Debug, Clone, Default)]
pub struct Tokens(Vec<Token>);

/// A token file in its TOML form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenFile {
    #[serde(default)]
    token: Vec<TokenEntry>,
}

/// One entry of a token file in its TOML form.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TokenEntry {
    name: String,
    scopes: Vec<Scope>,
    expires: Option<String>,
    sha256: String,
    scram: String,
}

impl Tokens {
    /// Parses a token file.
    ///
    /// # Errors
    /// When the file has a mistake; then no part of it is used.
    pub fn parse_file(text: &str) -> Result<Self, TokensError> {
        let file: TokenFile = toml::from_str(text).map_err(|error| {
            let before = error.span().map_or("", |span| &text[..text.floor_char_boundary(span.start)]);
            TokensError::Syntax {
                line: before.matches('\n').count() + 1,
                problem: error.message().to_owned(),
            }
        })?;
        let mut tokens = Self::default();
        for entry in file.token {
            tokens.add(entry.validate()?)?;
        }
        Ok(tokens)
    }

    /// Parses a list such as `ingest:TOKEN,query:TOKEN`. Each token is named after its scope.
    ///
    /// # Errors
    /// When the list has a mistake; then no part of it is used.
    pub fn parse_list(list: &str) -> Result<Self, TokensError> {
        let mut tokens = Self::default();
        for (number, entry) in (1..).zip(list.split(',').map(str::trim).filter(|entry| !entry.is_empty())) {
            let invalid = |problem| TokensError::InvalidListItem { number, problem };
            let (scope, secret) = entry.split_once(':').ok_or(invalid("has no scope; write ingest:TOKEN"))?;
            let scope: Scope =
                scope.parse().map_err(|_| invalid("has an unknown scope; use ingest, query or admin"))?;
            let secret = Secret::from_text(secret)
                .ok_or(invalid("is too short or not printable; create one with `faultline token new`"))?;
            let count = tokens.0.iter().filter(|token| token.scopes == [scope]).count();
            let name = if count == 0 { scope.to_string() } else { format!("{scope}-{}", count + 1) };
            tokens.add(Token::new(&name, &[scope], None, &secret)?)?;
        }
        Ok(tokens)
    }

    /// Adds a token.
    ///
    /// # Errors
    /// When there already is a token with that name.
    pub fn add(&mut self, token: Token) -> Result<(), TokensError> {
        if self.by_name(&token.name).is_some() {
            return Err(TokensError::InvalidEntry { name: token.name, problem: "is defined twice" });
        }
        self.0.push(token);
        Ok(())
    }

    /// Adds all tokens of another set.
    ///
    /// # Errors
    /// When both sets have a token with the same name.
    pub fn add_all(&mut self, other: Self) -> Result<(), TokensError> {
        other.0.into_iter().try_for_each(|token| self.add(token))
    }

    /// Returns the token with a name.
    #[must_use]
    pub fn by_name(&self, name: &str) -> Option<&Token> {
        self.0.iter().find(|token| token.name == name)
    }

    /// Returns the token whose secret has this hash.
    pub(crate) fn by_digest(&self, digest: &[u8; 32]) -> Option<&Token> {
        self.0.iter().find(|token| token.digest == *digest)
    }

    /// Returns the number of tokens.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true when there are no tokens.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the token with this secret. All tokens are compared, so the time does not depend on which one matches.
    pub(crate) fn by_secret(&self, secret: &str) -> Option<&Token> {
        let digest = sha256(secret);
        let mut matching = None;
        for token in &self.0 {
            if bool::from(token.digest.ct_eq(&digest)) {
                matching = Some(token);
            }
        }
        matching
    }
}

impl TokenEntry {
    fn validate(self) -> Result<Token, TokensError> {
        let invalid = |problem| TokensError::InvalidEntry { name: self.name.clone(), problem };
        if self.name.is_empty() || self.name.chars().any(char::is_control) {
            return Err(invalid("has no valid name; write a name without control characters"));
        }
        if self.scopes.is_empty() {
            return Err(invalid("has no scope; write scopes = [\"ingest\"]"));
        }
        let expires = self.expires.as_deref().map(str::parse::<Timestamp>).transpose();
        let expires = expires
            .map_err(|_| invalid("has an invalid expires; write a time such as 2027-01-31T00:00:00Z"))?;
        let digest = parse_hex(&self.sha256)
            .ok_or(invalid("has an invalid sha256; it must be 64 hexadecimal digits"))?;
        let verifier = Verifier::parse(&self.scram)
            .ok_or(invalid("has an invalid scram; create the entry with `faultline token new`"))?;
        Ok(Token { name: self.name, scopes: self.scopes, expires, digest, verifier })
    }
}

fn parse_hex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_entry_parses_to_the_same_token() {
        let secret = Secret::generate().unwrap();
        let expires = "2027-01-31T00:00:00Z".parse().ok();
        let token = Token::new("the \"shipper\"", &[Scope::Ingest, Scope::Query], expires, &secret).unwrap();
        let text = token.to_toml();
        assert!(!text.contains(secret.reveal()) && !format!("{token:?}{secret:?}").contains(secret.reveal()));
        let tokens = Tokens::parse_file(&text).unwrap();
        let parsed = tokens.by_secret(secret.reveal()).unwrap();
        assert_eq!(
            (parsed.name.as_str(), parsed.expires, parsed.scopes.len()),
            ("the \"shipper\"", expires, 2)
        );
        assert!(parsed.allows(Scope::Ingest) && !parsed.allows(Scope::Admin));
        assert!(tokens.by_secret("flt_something_else_entirely").is_none());
        assert!(
            Tokens::parse_file(&format!("{text}\n{text}"))
                .unwrap_err()
                .to_string()
                .contains("is defined twice")
        );
    }

    #[test]
    fn errors_never_quote_secrets() {
        let secret = "flt_this_is_a_live_token_by_mistake";
        let bad = [
            (
                format!(
                    "[[token]]\nname = \"a\"\nscopes = [\"ingest\"]\nsha256 = \"{secret}\"\nscram = \"\""
                ),
                "sha256",
            ),
            (format!("[[token]]\nname = \"a\"\nscopes = [\"ingest\"]\ntoken = \"{secret}\""), "line 4"),
            (format!("[[token]]\nname = {secret}"), "line 2"),
        ];
        for (text, expected) in bad {
            let error = Tokens::parse_file(&text).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains(secret), "{error}");
        }
        for (list, expected) in [
            ("x", "no scope"),
            ("write:flt_0123456789abcdef0123", "unknown scope"),
            ("ingest:short", "too short"),
        ] {
            let error = Tokens::parse_list(list).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("token 1"), "{error}");
        }
        let listed =
            Tokens::parse_list("ingest:flt_0123456789abcdef0123, query:flt_abcdef0123456789abcd,").unwrap();
        assert_eq!(listed.len(), 2);
        assert!(listed.by_secret("flt_abcdef0123456789abcd").unwrap().allows(Scope::Query));
    }
}
