//! Redaction, which comes first: before the fingerprint, storage, metrics or logs.
//!
//! There are two kinds of secrets and two kinds of marks. Confirmation tokens are live credentials, but it must be
//! possible to follow one from "required" to "used", so they become `[token:<16 hex of a keyed hash>]`. All other
//! secrets become `[redacted]`.
//!
//! False positives matter as well: codes such as `TOKEN_EXPIRED`, metrics such as `tokens_per_minute` and ordinary
//! words are kept, because otherwise the error itself would be lost.
//!
//! Invariants: no text leaves this library without redaction, including the keys of objects; the same text under the
//! same hash key gives the same result.

mod addresses;
mod assigned;
mod candidates;
mod card;
mod clean;
mod formats;
mod keys;
mod markup;
mod options;
mod pairs;
mod phrases;
mod scan;
mod schemes;
mod values;

use crate::json::{Json, Scalar, write};
use crate::name_table::NameTable;
use crate::registry::RedactionSettings;
use crate::string_enum::string_enum;
pub(crate) use clean::CleanNames;
use keys::{KeyKind, SecretKeys};
use siphasher::sip::SipHasher24;
use std::borrow::Cow;
use std::fmt;
use std::mem;

string_enum! {
    /// One way of recognizing a secret; each can be disabled.
    Rule {
        /// `conf_*` and `quota_continue_*` anywhere, and the values of `token` keys.
        ConfirmationToken = "confirmation_token",
        /// Values under keys that look like secrets.
        SecretKey = "secret_key",
        /// `password=...` and the like inside a text.
        Assignment = "assignment",
        /// The credentials after `Bearer` or `Basic`.
        Bearer = "bearer",
        /// JSON web tokens.
        Jwt = "jwt",
        /// Formats of known issuers: `ghp_`, `sk-`, `AKIA`, and so on.
        KnownFormat = "known_format",
        /// Private keys in PEM form.
        PrivateKey = "private_key",
        /// Payment card numbers that pass the Luhn check.
        Card = "card",
        /// E-mail addresses.
        Email = "email",
        /// The name and password in front of a URL's host.
        UrlCredentials = "url_credentials",
    }
}

/// The mark that replaces a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// The key of the token hash. `serve` stores one in its data directory, `classify` uses [`HashKey::FIXED`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey([u8; 16]);

impl HashKey {
    /// The key for output that is shown and not stored. It is stable across runs and machines.
    pub const FIXED: Self = Self(*b"faultline/tokens");

    /// Creates a key from random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(..)")
    }
}

/// A hash that identifies one confirmation token without revealing it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash(pub u64);

impl fmt::Display for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// Removes secrets from texts and JSON.
#[derive(Debug, Clone)]
pub struct Redactor {
    hash_key: HashKey,
    keys: SecretKeys,
    /// Keys that specifications name, classified once. Their own text needs neither redaction nor escaping.
    judged: NameTable<Judged>,
    /// The JSON text of these keys with a comma and a colon: `,"key":`.
    written: Vec<String>,
    patterns: Vec<regex::Regex>,
    /// The rules that are disabled, one bit per [`Rule`].
    off: u16,
}

/// A key that was classified in advance.
#[derive(Debug, Clone, Copy)]
struct Judged {
    kind: KeyKind,
    /// The index among the written keys.
    written: u16,
}

impl Redactor {
    /// Creates a redactor from the built-in rules and an operator's changes.
    #[must_use]
    pub fn new(hash_key: HashKey, settings: &RedactionSettings) -> Self {
        Self {
            hash_key,
            keys: SecretKeys::new(&settings.keys),
            judged: NameTable::new([]),
            written: Vec::new(),
            patterns: settings.patterns.clone(),
            off: settings.off.iter().fold(0, |bits, &rule| bits | 1 << rule as u16),
        }
    }

    /// Classifies keys that many records will have, in advance.
    pub(crate) fn judge<'k>(&mut self, keys: impl IntoIterator<Item = &'k str>) {
        for key in keys {
            let is_plain_text =
                matches!(self.text(key), Cow::Borrowed(_)) && !key.bytes().any(write::needs_escape);
            if is_plain_text && self.judged.get(key).is_none() {
                let Ok(written) = u16::try_from(self.written.len()) else { return };
                self.judged.insert(key.to_owned(), Judged { kind: self.key_kind(key), written });
                self.written.push(format!(",\"{key}\":"));
            }
        }
    }

    fn is_on(&self, rule: Rule) -> bool {
        self.off & 1 << rule as u16 == 0
    }

    /// Returns the keyed hash of a confirmation token.
    #[must_use]
    pub fn token_hash(&self, token: &str) -> TokenHash {
        // A token that was redacted before keeps its hash.
        let marked = token
            .strip_prefix("[token:")
            .and_then(|hash| u64::from_str_radix(hash.strip_suffix(']')?, 16).ok());
        if let Some(hash) = marked {
            return TokenHash(hash);
        }
        TokenHash(SipHasher24::new_with_key(&self.hash_key.0).hash(token.as_bytes()))
    }

    /// Returns a text without its secrets. It is borrowed if there were none.
    #[must_use]
    #[inline]
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match candidates::next_candidate(text.as_bytes(), 0) {
            None if self.patterns.is_empty() => Cow::Borrowed(text),
            place => self.searched(text, place),
        }
    }

    /// Continues [`Self::text`] out of line, so that the path that most texts take stays short.
    #[inline(never)]
    fn searched<'t>(&self, text: &'t str, first_place: Option<usize>) -> Cow<'t, str> {
        let scanned = first_place.map_or(Cow::Borrowed(text), |place| self.scan(text, place));
        if self.patterns.is_empty() { scanned } else { self.own_patterns(scanned) }
    }

    /// Returns true if a number is a payment card number.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    pub(crate) fn is_secret_number(&self, number: f64) -> bool {
        // A sixteen-digit card number starts with 6 at most, so a float represents it exactly.
        (1e14..1e16).contains(&number)
            && number.fract() == 0.0
            && self.is_on(Rule::Card)
            && card::is_card_number(number as u64)
    }

    fn own_patterns<'t>(&self, mut text: Cow<'t, str>) -> Cow<'t, str> {
        for pattern in &self.patterns {
            if let Cow::Owned(replaced) = pattern.replace_all(&text, REDACTED) {
                text = Cow::Owned(replaced);
            }
        }
        text
    }

    /// Returns the name of a client. A name that is a secret, such as an e-mail address, is replaced by a hash, so
    /// that clients can be distinguished but not identified.
    #[must_use]
    pub fn client<'t>(&self, name: &'t str) -> Cow<'t, str> {
        match self.text(name) {
            Cow::Borrowed(name) => Cow::Borrowed(name),
            Cow::Owned(_) => Cow::Owned(format!("[client:{}]", self.token_hash(name))),
        }
    }

    /// Appends a value as JSON text without its secrets. Objects and arrays are truncated once `end` bytes are
    /// written, and then end with a truncation mark.
    pub(crate) fn json(&self, out: &mut String, value: Json<'_>, end: usize) {
        if let Some(scalar) = value.scalar() {
            self.scalar(out, scalar);
        } else if value.is_array() {
            self.array(out, value, end);
        } else {
            out.push('{');
            self.fields(out, value, end);
            out.push('}');
        }
    }

    fn scalar(&self, out: &mut String, scalar: Scalar<'_>) {
        match scalar {
            Scalar::Text(text) => write::string(out, &self.text(text)),
            Scalar::Unsigned(number) if self.is_secret_number(number as f64) => write::string(out, REDACTED),
            Scalar::Float(number) if self.is_secret_number(number) => write::string(out, REDACTED),
            other => write::scalar(out, other),
        }
    }

    fn array(&self, out: &mut String, array: Json<'_>, end: usize) {
        out.push('[');
        let mut before = "";
        let command = array.items().next().and_then(Json::as_str).unwrap_or_default();
        for (index, item) in array.items().enumerate() {
            if index > 0 {
                out.push(',');
            }
            if out.len() > end {
                write::string(out, "[truncated]");
                break;
            }
            let is_pair = || index == 1 && array.items().nth(2).is_none();
            let is_option = |text: &str| text.starts_with('-') && options::is_password_option(command, text);
            let is_secret = !before.is_empty()
                && (self.is_named_by(before, item, is_pair()) || options::takes_password(command, before))
                || item.as_str().is_some_and(is_option);
            if is_secret {
                secret(out, item);
            } else {
                self.json(out, item, end);
            }
            before = item.as_str().unwrap_or_default();
        }
        out.push(']');
    }

    /// Appends the fields of an object without its braces.
    pub(crate) fn fields(&self, out: &mut String, object: Json<'_>, end: usize) {
        let mut first = true;
        for (key, value) in object.fields() {
            if out.len() > end {
                comma(out, &mut first);
                out.push_str("\"_truncated\":true");
                break;
            }
            self.field_of(out, &mut first, (key, value), end, object);
        }
    }

    /// Appends one field, with a comma before it unless it is the first.
    pub(crate) fn field(&self, out: &mut String, first: &mut bool, key: &str, value: Json<'_>, end: usize) {
        self.field_of(out, first, (key, value), end, Json::NULL);
    }

    /// Appends one field of `object`, which may contain a name that makes the value of this field a secret.
    pub(crate) fn field_of(
        &self,
        out: &mut String,
        first: &mut bool,
        (key, value): (&str, Json<'_>),
        end: usize,
        object: Json<'_>,
    ) {
        let kind = match self.judged.get(key) {
            Some(Judged { kind, written }) => {
                let skipped_comma = usize::from(mem::take(first));
                out.push_str(&self.written[usize::from(written)][skipped_comma..]);
                kind
            }
            None => {
                comma(out, first);
                write::string(out, &self.text(key));
                out.push(':');
                self.key_kind(key)
            }
        };
        match kind {
            KeyKind::Plain => self.plain(out, key, value, end),
            KeyKind::Secret => self.secret(out, value, end),
            KeyKind::Token => self.token(out, value),
            KeyKind::Random if is_random_text(value) => secret(out, value),
            KeyKind::Value if self.names_secret(object) => self.secret(out, value, end),
            KeyKind::Random | KeyKind::Value => self.json(out, value, end),
        }
    }

    /// Appends a value under a key that is not sensitive. A long number under the key of an identifier, such as an
    /// order number, is not treated as a card number.
    #[inline]
    fn plain(&self, out: &mut String, key: &str, value: Json<'_>, end: usize) {
        match value.scalar() {
            Some(scalar) if is_long_number(scalar) && keys::is_identifier(key.as_bytes()) => {
                write::scalar(out, scalar);
            }
            Some(scalar) => self.scalar(out, scalar),
            None => self.json(out, value, end),
        }
    }

    /// Appends a value under a secret key, whatever its type. A value that cannot be a secret is kept.
    fn secret(&self, out: &mut String, value: Json<'_>, end: usize) {
        let is_harmless =
            |text: &str| values::is_harmless(text.as_bytes()) || values::is_remark(text.as_bytes());
        let stays = |item: Json<'_>| item.as_str().is_some_and(is_harmless);
        // An array of remarks is kept: `{"password":["must not be empty"]}`
        const REMARKS: usize = 8;
        let all_stay = value.is_array()
            && value.items().next().is_some()
            && value.items().nth(REMARKS).is_none()
            && value.items().all(stays);
        if all_stay || stays(value) { self.json(out, value, end) } else { secret(out, value) }
    }

    fn key_kind(&self, key: &str) -> KeyKind {
        match self.keys.kind(key.as_bytes()) {
            KeyKind::Plain if keys::is_value_key(key.as_bytes()) => KeyKind::Value,
            KeyKind::Secret | KeyKind::Random if !self.is_on(Rule::SecretKey) => KeyKind::Plain,
            KeyKind::Token if !self.is_on(Rule::ConfirmationToken) => KeyKind::Plain,
            kind => kind,
        }
    }

    /// Appends a value under the key of a token: every text in it is a token.
    fn token(&self, out: &mut String, value: Json<'_>) {
        match value.scalar() {
            Some(scalar @ (Scalar::Text("") | Scalar::Bool(_) | Scalar::Null)) => write::scalar(out, scalar),
            Some(Scalar::Text(text)) => write::string(out, &self.token_mark(text)),
            Some(_) => write::string(out, REDACTED),
            None if value.is_array() => {
                out.push('[');
                let mut first = true;
                for item in value.items() {
                    comma(out, &mut first);
                    self.token(out, item);
                }
                out.push(']');
            }
            None => {
                out.push('{');
                let mut first = true;
                for (key, item) in value.fields() {
                    comma(out, &mut first);
                    write::string(out, &self.text(key));
                    out.push(':');
                    self.token(out, item);
                }
                out.push('}');
            }
        }
    }

    fn token_mark(&self, token: &str) -> String {
        format!("[token:{}]", self.token_hash(token))
    }
}

/// Returns true for a text that looks randomly generated.
fn is_random_text(value: Json<'_>) -> bool {
    const AT_LEAST: usize = 16;
    value.as_str().is_some_and(|text| values::is_random(text.as_bytes(), AT_LEAST))
}

/// Returns true for a number that is as long as a card number, also if it is written as a text.
#[inline]
#[allow(clippy::cast_precision_loss)]
fn is_long_number(scalar: Scalar<'_>) -> bool {
    const LONG: f64 = 1e12;
    match scalar {
        Scalar::Unsigned(number) => number as f64 > LONG,
        Scalar::Float(number) => number > LONG,
        Scalar::Text(text) => {
            text.len() > 12 && text.len() < 40 && text.bytes().all(|byte| byte.is_ascii_digit())
        }
        _ => false,
    }
}

/// Writes the mark instead of a secret value of any type. Empty texts, booleans and `null` are kept.
fn secret(out: &mut String, value: Json<'_>) {
    match value.scalar() {
        Some(scalar @ (Scalar::Bool(_) | Scalar::Null | Scalar::Text(""))) => write::scalar(out, scalar),
        _ => write::string(out, REDACTED),
    }
}

pub(crate) fn comma(out: &mut String, first: &mut bool) {
    if !*first {
        out.push(',');
    }
    *first = false;
}

#[cfg(test)]
mod tests;
