//! Conformance findings: improvements that a server could make to its errors.
//!
//! The list is closed, so that a `SELECT` can rank servers by the quality of their errors.

use crate::string_enum::string_enum;
use aho_corasick::AhoCorasick;
use std::fmt;
use std::sync::LazyLock;

string_enum! {
    /// One thing that is wrong with an error, beyond the failure itself.
    Finding {
        /// The error is a text, not an object.
        StringError = "string_error",
        /// The code is not registered.
        UnregisteredCode = "unregistered_code",
        /// The code is missing, or does not have the format of its dialect.
        BadCodeFormat = "bad_code_format",
        /// There is no message.
        MissingMessage = "missing_message",
        /// Details that the specification asks for are missing.
        MissingDetails = "missing_details",
        /// The message does not follow the specification's template.
        TemplateMismatch = "template_mismatch",
        /// The error is called internal, though its text says that the caller is at fault.
        InternalForCallerMistake = "internal_for_caller_mistake",
        /// The number is one that MCP reserves and has not assigned.
        ReservedCode = "reserved_code",
        /// The message shows a path, a stack frame or an exception class.
        LeakyMessage = "leaky_message",
        /// The message contained a secret.
        SecretInMessage = "secret_in_message",
        /// The payload and the specification disagree on whether a retry helps.
        RetryableContradiction = "retryable_contradiction",
        /// The failure arrived in a reply that its protocol calls a success.
        HiddenFailure = "hidden_failure",
        /// An error has the code of a warning.
        WarningInError = "warning_in_error",
    }
}

/// A set of findings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Findings(u16);

impl Findings {
    /// Adds a finding if a condition holds.
    pub(crate) fn insert_if(&mut self, finding: Finding, holds: bool) {
        self.0 |= u16::from(holds) << finding as u16;
    }

    /// Returns true if there are no findings.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns true if the finding is in the set.
    #[must_use]
    pub const fn contains(self, finding: Finding) -> bool {
        self.0 & 1 << finding as u16 != 0
    }

    /// Returns the findings in the order of the list.
    pub fn iter(self) -> impl Iterator<Item = Finding> {
        Finding::ALL.iter().copied().filter(move |&finding| self.contains(finding))
    }
}

/// Returns true if the message of an internal error reads like a mistake of the caller.
pub(crate) fn blames_caller(message: &str) -> bool {
    static MATCHER: LazyLock<Option<AhoCorasick>> =
        LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(CALLER_PHRASES).ok());
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    let bytes = message.as_bytes();
    MATCHER.iter().flat_map(|matcher| matcher.find_iter(bytes)).any(|found| {
        !is_letter(found.start().checked_sub(1).and_then(|before| bytes.get(before)))
            && !is_letter(bytes.get(found.end()))
    })
}

/// Phrases that occur in messages about mistakes of the caller.
const CALLER_PHRASES: [&str; 8] = [
    "not found",
    "invalid",
    "denied",
    "does not exist",
    "no such",
    "forbidden",
    "missing required",
    "not allowed",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_keeps_the_order_of_the_list() {
        let mut findings = Findings::default();
        findings.insert_if(Finding::HiddenFailure, true);
        findings.insert_if(Finding::StringError, true);
        findings.insert_if(Finding::LeakyMessage, false);
        assert_eq!(findings.iter().collect::<Vec<_>>(), [Finding::StringError, Finding::HiddenFailure]);
    }

    #[test]
    fn a_blamed_caller_is_noticed() {
        assert!(blames_caller("Internal error: user not found"));
        assert!(blames_caller("Invalid id"));
        assert!(!blames_caller("invalidation queue is full"));
        assert!(!blames_caller("disk on fire"));
    }
}
