//! The trust and danger fields of a permission denial.

use crate::details::{DetailKey, Details};
use crate::json::Json;
use crate::string_enum::string_enum;
use std::fmt;

string_enum! {
    /// The danger level of an operation. Servers send the word or its number.
    DangerLevel {
        /// Level 0.
        Safe = "safe",
        /// Level 1.
        Reversible = "reversible",
        /// Level 2.
        Destructive = "destructive",
        /// Level 3.
        Dangerous = "dangerous",
        /// Level 4.
        Forbidden = "forbidden",
    }
}

impl DangerLevel {
    fn read(value: Json<'_>) -> Option<Self> {
        match value.as_str() {
            Some(word) => Self::from_name(&word.trim().to_ascii_lowercase())
                .or_else(|| Self::ALL.get(word.trim().parse::<usize>().ok()?).copied()),
            None => Self::ALL.get(usize::try_from(value.as_i64()?).ok()?).copied(),
        }
    }
}

/// The trust fields of an event. The texts are not redacted yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Denial<'a> {
    /// The trust level that the operation requires.
    pub(crate) required_trust: Option<&'a str>,
    /// The trust level that the adapter has.
    pub(crate) actual_trust: Option<&'a str>,
    /// The danger level of the operation.
    pub(crate) danger_level: Option<DangerLevel>,
}

impl<'a> Denial<'a> {
    pub(crate) fn read(details: &Details<'a>) -> Self {
        Self {
            required_trust: details.text(DetailKey::RequiredTrust),
            actual_trust: details.text(DetailKey::ActualTrust),
            danger_level: details.get(DetailKey::DangerLevel).and_then(DangerLevel::read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Parser;

    #[test]
    fn both_codes_call_trust_by_their_own_names() {
        let check = |details: &str, level| {
            Parser::new(64)
                .parse(details.as_bytes(), |json| {
                    assert_eq!(
                        Denial::read(&Details::read(Some(json))),
                        Denial {
                            required_trust: Some("certified"),
                            actual_trust: Some("validated"),
                            danger_level: level
                        }
                    );
                })
                .expect(details);
        };
        check(
            r#"{"required_trust":"certified","actual_trust":"validated","danger_level":2}"#,
            Some(DangerLevel::Destructive),
        );
        check(
            r#"{"minimum_trust_required":"certified","adapter_trust":"validated","danger_level":"Dangerous"}"#,
            Some(DangerLevel::Dangerous),
        );
        check(r#"{"minimum_trust_required":"certified","adapter_trust":"validated","danger_level":9}"#, None);
    }
}
