//! What we know of tokens: a file that `faultline token new` adds to, or a list in the environment.

use crate::scope::Scope;
use crate::scram::Verifier;
use crate::secret::{Secret, digest_of};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

/// Why tokens are not used. What is said does not quote them.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The text is no file of tokens.
    #[error("line {line}: {what}")]
    Unreadable {
        /// Where, from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// A token is wrong.
    #[error("the token '{name}' {what}")]
    Wrong {
        /// Its name.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A list in the environment is wrong.
    #[error("token {number} of the list {what}")]
    Listed {
        /// Which, from 1.
        number: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The system has no random numbers.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// One token.
#[derive(Debug, Clone)]
pub struct Token {
    /// Whose it is; PostgreSQL clients say it as their user.
    pub name: String,
    /// What it is for.
    pub scopes: Vec<Scope>,
    /// When it ends.
    pub expires: Option<Timestamp>,
    digest: [u8; 32],
    verifier: Verifier,
}

impl Token {
    /// What is kept of a secret.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn new(
        name: &str,
        scopes: &[Scope],
        expires: Option<Timestamp>,
        secret: &Secret,
    ) -> std::io::Result<Self> {
        let verifier = Verifier::of(secret.reveal())?;
        let (name, scopes, digest) = (name.to_owned(), scopes.to_vec(), secret.digest());
        Ok(Self { name, scopes, expires, digest, verifier })
    }

    /// The hash of its secret.
    pub(crate) fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// How a PostgreSQL client can prove that it has it.
    #[must_use]
    pub fn verifier(&self) -> &Verifier {
        &self.verifier
    }

    /// Whether it will do where a scope is wanted.
    #[must_use]
    pub fn allows(&self, wanted: Scope) -> bool {
        self.scopes.iter().any(|scope| scope.allows(wanted))
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// The entry of a file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let written = Written {
            name: self.name.clone(),
            scopes: self.scopes.clone(),
            expires: self.expires.map(|expires| expires.to_string()),
            sha256: self.digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            scram: self.verifier.to_string(),
        };
        let scopes: Vec<String> = written.scopes.iter().map(|scope| format!("\"{scope}\"")).collect();
        let expires = written.expires.map(|expires| format!("expires = \"{expires}\"\n")).unwrap_or_default();
        format!(
            "[[token]]\nname = {:?}\nscopes = [{}]\n{expires}sha256 = \"{}\"\nscram = \"{}\"\n",
            written.name,
            scopes.join(", "),
            written.sha256,
            written.scram
        )
    }
}

/// All tokens.
#[derive(Debug, Clone, Default)]
pub struct Tokens(Vec<Token>);

/// A file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    token: Vec<Written>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    scopes: Vec<Scope>,
    expires: Option<String>,
    sha256: String,
    scram: String,
}

impl Tokens {
    /// Reads a file.
    ///
    /// # Errors
    /// When it has a mistake; then nothing of it is used.
    pub fn read(text: &str) -> Result<Self, TokensError> {
        let file: File = toml::from_str(text).map_err(|error| {
            let before = error.span().map_or("", |span| &text[..text.floor_char_boundary(span.start)]);
            TokensError::Unreadable {
                line: before.matches('\n').count() + 1,
                what: error.message().to_owned(),
            }
        })?;
        let mut tokens = Self::default();
        for written in file.token {
            tokens.add(written.checked()?)?;
        }
        Ok(tokens)
    }

    /// Reads a list as in `ingest:TOKEN,query:TOKEN`; the names are those of the scopes.
    ///
    /// # Errors
    /// When it has a mistake; then nothing of it is used.
    pub fn listed(list: &str) -> Result<Self, TokensError> {
        let mut tokens = Self::default();
        for (number, entry) in (1..).zip(list.split(',').map(str::trim).filter(|entry| !entry.is_empty())) {
            let wrong = |what| TokensError::Listed { number, what };
            let (scope, secret) = entry.split_once(':').ok_or(wrong("has no scope; write ingest:TOKEN"))?;
            let scope: Scope =
                scope.parse().map_err(|_| wrong("has an unknown scope; it is ingest, query or admin"))?;
            let secret =
                Secret::given(secret).ok_or(wrong("is too short; `faultline token new` makes one"))?;
            let count = tokens.0.iter().filter(|token| token.scopes == [scope]).count();
            let name = if count == 0 { scope.to_string() } else { format!("{scope}-{}", count + 1) };
            tokens.add(Token::new(&name, &[scope], None, &secret)?)?;
        }
        Ok(tokens)
    }

    /// Adds a token.
    ///
    /// # Errors
    /// When there is one of that name.
    pub fn add(&mut self, token: Token) -> Result<(), TokensError> {
        if self.named(&token.name).is_some() {
            return Err(TokensError::Wrong { name: token.name, what: "is there twice" });
        }
        self.0.push(token);
        Ok(())
    }

    /// Adds all of another set.
    ///
    /// # Errors
    /// When a name is in both.
    pub fn add_all(&mut self, other: Self) -> Result<(), TokensError> {
        other.0.into_iter().try_for_each(|token| self.add(token))
    }

    /// The token of a name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Token> {
        self.0.iter().find(|token| token.name == name)
    }

    /// The token whose secret has this hash, as it is known now.
    pub(crate) fn with_digest(&self, digest: &[u8; 32]) -> Option<&Token> {
        self.0.iter().find(|token| token.digest == *digest)
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True when there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The token that a client has sent. All are looked at, whichever it is.
    pub(crate) fn find(&self, sent: &str) -> Option<&Token> {
        let digest = digest_of(sent);
        let mut found = None;
        for token in &self.0 {
            if bool::from(token.digest.ct_eq(&digest)) {
                found = Some(token);
            }
        }
        found
    }
}

impl Written {
    fn checked(self) -> Result<Token, TokensError> {
        let wrong = |what| TokensError::Wrong { name: self.name.clone(), what };
        if self.name.is_empty() || self.name.chars().any(char::is_control) {
            return Err(wrong("needs a name"));
        }
        if self.scopes.is_empty() {
            return Err(wrong("has no scope; write scopes = [\"ingest\"]"));
        }
        let expires = self.expires.as_deref().map(str::parse::<Timestamp>).transpose();
        let expires =
            expires.map_err(|_| wrong("expires at no time; write one as in 2027-01-31T00:00:00Z"))?;
        let digest = read_hex(&self.sha256).ok_or(wrong("has no hash of 64 hex digits as its sha256"))?;
        let verifier = Verifier::read(&self.scram).ok_or(wrong("has a scram that is none"))?;
        Ok(Token { name: self.name, scopes: self.scopes, expires, digest, verifier })
    }
}

fn read_hex(text: &str) -> Option<[u8; 32]> {
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
    fn a_file_comes_back_as_it_was_written() {
        let secret = Secret::new().unwrap();
        let expires = "2027-01-31T00:00:00Z".parse().ok();
        let token = Token::new("the \"shipper\"", &[Scope::Ingest, Scope::Query], expires, &secret).unwrap();
        let text = token.to_toml();
        assert!(!text.contains(secret.reveal()) && !format!("{token:?}{secret:?}").contains(secret.reveal()));
        let tokens = Tokens::read(&text).unwrap();
        let found = tokens.find(secret.reveal()).unwrap();
        assert_eq!((found.name.as_str(), found.expires, found.scopes.len()), ("the \"shipper\"", expires, 2));
        assert!(found.allows(Scope::Ingest) && !found.allows(Scope::Admin));
        assert!(tokens.find("flt_something_else_entirely").is_none());
        assert!(Tokens::read(&format!("{text}\n{text}")).unwrap_err().to_string().contains("is there twice"));
    }

    #[test]
    fn mistakes_are_told_without_quoting_secrets() {
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
        for (text, says) in bad {
            let error = Tokens::read(&text).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains(secret), "{error}");
        }
        for (list, says) in [
            ("x", "no scope"),
            ("write:flt_0123456789abcdef0123", "unknown scope"),
            ("ingest:short", "too short"),
        ] {
            let error = Tokens::listed(list).unwrap_err().to_string();
            assert!(error.contains(says) && error.contains("token 1"), "{error}");
        }
        let listed =
            Tokens::listed("ingest:flt_0123456789abcdef0123, query:flt_abcdef0123456789abcd,").unwrap();
        assert_eq!(listed.len(), 2);
        assert!(listed.find("flt_abcdef0123456789abcd").unwrap().allows(Scope::Query));
    }
}
