//! Pairs of names and values in JSON: `{"name":"Authorization","value":"..."}`, `["Authorization","..."]`,
//! `["--password","..."]`.

use super::Redactor;
use super::keys::{self, KeyKind};
use super::values::{is_harmless, is_prose, is_remark, looks_secret};
use crate::json::{Json, Scalar};

/// The number of fields that are examined. No object that pairs a name with a value has more, but a hostile one may.
const FIELDS: usize = 16;

impl Redactor {
    /// Returns true if an object contains the name of a secret, so that its value is one.
    pub(super) fn names_secret(&self, object: Json<'_>) -> bool {
        object.fields().take(FIELDS).any(|(key, value)| {
            keys::is_name_key(key.as_bytes()) && name_of(value).is_some_and(|name| self.is_secret_name(name))
        })
    }

    fn is_secret_name(&self, name: &str) -> bool {
        let name = name.trim_start_matches('-');
        name.len() <= 64 && matches!(self.key_kind(name), KeyKind::Secret | KeyKind::Token)
    }

    /// Returns true if the element before a list element is its name. The elements of a list of names, such as
    /// `["user","password","email"]`, are not values.
    pub(super) fn is_named_by(&self, before: &str, value: Json<'_>, is_pair: bool) -> bool {
        // The credentials are the element after `-u`: `["curl", "-u", "name:password"]`
        if matches!(before, "-u" | "--user" | "--proxy-user") {
            let is_ids = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
            return value
                .as_str()
                .is_some_and(|text| text.contains(':') && !text.contains("//") && !is_ids(text));
        }
        let first = before.as_bytes().first().copied().unwrap_or(b' ');
        let may_be_name = first == b'-' || first.is_ascii_uppercase() || is_pair || before.contains('-');
        if before.len() > 64 || !may_be_name || !self.is_secret_name(before) {
            return false;
        }
        match value.scalar() {
            Some(Scalar::Text(text)) => {
                let text = text.as_bytes();
                is_value(text) || first == b'-' && !text.starts_with(b"-") && !is_prose(text)
            }
            Some(Scalar::Bool(_) | Scalar::Null) | None => false,
            Some(_) => first == b'-',
        }
    }
}

/// Returns the name in a value. A name may be a path to a field, of which the last part counts.
fn name_of(value: Json<'_>) -> Option<&str> {
    match value.as_str() {
        Some(name) => Some(name),
        None => value.items().take(FIELDS).last()?.as_str(),
    }
}

/// Returns true for a text that may be a value and is not the next name in a list.
pub(super) fn is_value(text: &[u8]) -> bool {
    let is_name = || text.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_') && text.len() < 20;
    !text.is_empty()
        && !is_harmless(text)
        && !is_remark(text)
        && !is_name()
        && (looks_secret(text) || text.contains(&b' '))
}
