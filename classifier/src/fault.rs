//! The party that is at fault for a failure, which is the first question of an operator.
//!
//! It is derived from the wording of the message if that tells, otherwise from the entry of the canonical code,
//! otherwise from its category. Error budgets count `server`, `upstream` and `transport`.

use crate::string_enum::string_enum;
use std::fmt;

string_enum! {
    /// The party that has to change something before the failure goes away.
    Fault {
        /// The caller sent a wrong request, or one that it may not send.
        Caller = "caller",
        /// The server itself broke, or is set up wrongly.
        Server = "server",
        /// A service behind the server failed.
        Upstream = "upstream",
        /// A rule of an administrator, a gateway or a sandbox forbids it.
        Policy = "policy",
        /// A person declined or cancelled it.
        User = "user",
        /// A rate limit, a quota or a budget is used up.
        Quota = "quota",
        /// The connection between two parties broke or was never made.
        Transport = "transport",
        /// The client asked for something optional to learn whether it is there; nothing is wrong.
        Probe = "probe",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_values_are_one_to_one() {
        for &fault in Fault::ALL {
            assert_eq!(Fault::from_name(fault.as_str()), Some(fault));
        }
        assert_eq!(Fault::from_name("Caller"), None);
    }
}
