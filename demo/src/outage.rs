//! Outages: during some half minutes, most failures of a service are internal errors.
//!
//! No state is kept: only the seed, the service and the time determine if a service is down.

use crate::random::mix;
use crate::services::Service;

/// The length of an outage in microseconds. Outages start and end at multiples of it.
const LENGTH_MICROS: i64 = 30_000_000;

/// For each service, one in this many half minutes is an outage.
const ONE_IN: u64 = 14;

/// Returns true when the service is down at this time.
pub(crate) fn is_down(service: &Service, seed: u64, micros: i64) -> bool {
    let half_minute = micros.div_euclid(LENGTH_MICROS) as u64;
    let name_hash = service.name.bytes().fold(seed, |hash, byte| mix(hash ^ u64::from(byte)));
    mix(name_hash ^ half_minute).is_multiple_of(ONE_IN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::{LEDGER, TRACKER};

    #[test]
    fn outages_are_rare_and_differ_by_service() {
        let times =
            |service| (0..1_000).filter(|n| is_down(service, 5, n * LENGTH_MICROS)).collect::<Vec<_>>();
        let (ledger, tracker) = (times(&LEDGER), times(&TRACKER));
        assert!((40..110).contains(&ledger.len()), "{}", ledger.len());
        assert_ne!(ledger, tracker);
    }
}
