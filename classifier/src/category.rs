//! The ten categories of failures, and the two properties that each has: how bad it is (severity) and what the caller
//! can do about it (recovery).
//!
//! All three are closed lists, because dashboards, alert rules and metric labels are built on them. A new word is
//! therefore a change of the product and never something that a sender can cause.

use crate::string_enum::string_enum;
use std::fmt;

string_enum! {
    /// The kind of a failure, independent of the dialect in which it was sent.
    Category {
        /// The request itself is wrong.
        Validation = "VALIDATION",
        /// The operation or its target does not exist.
        NotFound = "NOT_FOUND",
        /// The caller may not do this, or not yet.
        Permission = "PERMISSION",
        /// The target is in a state that forbids it.
        Conflict = "CONFLICT",
        /// Too much, too fast, or a quota is used up.
        RateLimit = "RATE_LIMIT",
        /// A confirmation token is wrong, old or used.
        Token = "TOKEN",
        /// A schema or configuration is wrong.
        Schema = "SCHEMA",
        /// One side violated the protocol.
        Protocol = "PROTOCOL",
        /// The server or something behind it failed.
        Internal = "INTERNAL",
        /// The kind of failure is not known.
        Unknown = "UNKNOWN",
    }
}

impl Category {
    /// Returns the category that a payload's own `category` field names, in any case and with any separator.
    #[must_use]
    pub fn from_payload(word: &str) -> Option<Self> {
        let same = |name: &str| {
            let mut letters = word.trim().bytes().filter(u8::is_ascii_alphanumeric);
            let mut wanted = name.bytes().filter(u8::is_ascii_alphanumeric);
            loop {
                match (letters.next(), wanted.next()) {
                    (None, None) => return true,
                    (Some(a), Some(b)) if a.eq_ignore_ascii_case(&b) => {}
                    _ => return false,
                }
            }
        };
        Self::ALL.iter().copied().find(|category| same(category.as_str()))
    }
}

string_enum! {
    /// The severity, in order from worst to mildest.
    Severity {
        /// Must be reported at once.
        Critical = "critical",
        /// A request failed.
        Error = "error",
        /// A request succeeded with a problem, or will soon fail.
        Warning = "warning",
        /// Is recorded, but needs no action.
        Info = "info",
    }
}

string_enum! {
    /// The recommended action of the caller or its maintainer.
    Recovery {
        /// Correct the request and send it again.
        RepairRequest = "repair_request",
        /// Ask for something that exists.
        ChooseAnotherTarget = "choose_another_target",
        /// Look up which operations exist.
        DiscoverOperations = "discover_operations",
        /// Get credentials, a role or a scope.
        RequestAccess = "request_access",
        /// Have the adapter reviewed to a higher trust level.
        RaiseTrust = "raise_trust",
        /// Ask a person, then send the confirmation token along.
        Confirm = "confirm",
        /// Read the current state, then decide again.
        RefreshAndRetry = "refresh_and_retry",
        /// Wait, then send the same request again.
        BackOff = "back_off",
        /// Send less.
        SlowDown = "slow_down",
        /// Start the confirmation anew.
        RequestNewConfirmation = "request_new_confirmation",
        /// Correct the schema or configuration.
        FixSchema = "fix_schema",
        /// Correct the client.
        FixClient = "fix_client",
        /// Tell whoever runs the server.
        ReportFault = "report_fault",
        /// Look at the record: nothing is known.
        Inspect = "inspect",
        /// Nothing to do.
        None = "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_may_spell_a_category_its_own_way() {
        for word in ["validation", "VALIDATION", " Validation "] {
            assert_eq!(Category::from_payload(word), Some(Category::Validation), "{word}");
        }
        for word in ["rate_limit", "rate-limit", "RateLimit", "rate limit"] {
            assert_eq!(Category::from_payload(word), Some(Category::RateLimit), "{word}");
        }
        assert_eq!(Category::from_payload("validations"), None);
        assert_eq!(Category::from_payload(""), None);
    }

    #[test]
    fn words_and_values_are_one_to_one() {
        for &severity in Severity::ALL {
            assert_eq!(Severity::from_name(severity.as_str()), Some(severity));
        }
        for &recovery in Recovery::ALL {
            assert_eq!(Recovery::from_name(recovery.as_str()), Some(recovery));
        }
    }
}
