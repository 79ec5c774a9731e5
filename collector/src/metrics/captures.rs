//! Counts the calls of each service that are taken for successes although the content of their reply was not
//! captured.
//!
//! A service that reports spans without the content of replies looks as if it never failed. `/api/v1/status` names
//! such services, so that "no errors" is not silently wrong.
//!
//! Invariant: there are no more services here than metrics distinguish.

use std::collections::BTreeMap;

/// The finding of a service whose replies are not captured.
pub(crate) const REPLY_NOT_CAPTURED: &str = "reply_not_captured";

/// The calls of one service since the start of the server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Capture {
    pub(crate) calls: u64,
    pub(crate) unverified: u64,
}

impl Capture {
    /// Reports whether at least a quarter of the calls might hide a failure. Calls without a tool count as well, and
    /// a single missing reply is not enough for a service with many calls.
    pub(crate) fn is_blind(self) -> bool {
        self.unverified > 0 && self.unverified.saturating_mul(4) >= self.calls
    }
}

/// The services that have calls, with their counts.
#[derive(Debug, Default)]
pub(crate) struct Captures(BTreeMap<Box<str>, Capture>);

impl Captures {
    /// Adds calls of a service. The name is a label value, so the number of services is bounded.
    pub(super) fn add(&mut self, service: &str, calls: u64, unverified: u64) {
        // The `entry` method would allocate an owned name for every batch.
        match self.0.get_mut(service) {
            Some(capture) => capture.add(calls, unverified),
            None => drop(self.0.insert(service.into(), Capture { calls, unverified })),
        }
    }

    /// Returns the services that have unverified calls.
    pub(crate) fn unverified(&self) -> impl Iterator<Item = (&str, Capture)> {
        let known = self.0.iter().filter(|(_, capture)| capture.unverified > 0);
        known.map(|(service, capture)| (&**service, *capture))
    }
}

impl Capture {
    fn add(&mut self, calls: u64, unverified: u64) {
        self.calls += calls;
        self.unverified += unverified;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_blind_when_a_quarter_of_its_calls_are() {
        let mut captures = Captures::default();
        captures.add("crm", 3, 0);
        assert_eq!(captures.unverified().count(), 0);
        captures.add("crm", 9, 2);
        assert_eq!(
            captures.unverified().map(|(service, capture)| (service, capture.is_blind())).collect::<Vec<_>>(),
            [("crm", false)]
        );
        captures.add("crm", 2, 2);
        assert!(captures.unverified().all(|(_, capture)| capture.is_blind()));
    }
}
