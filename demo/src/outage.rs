//! Now and then a service has a bad half minute: most of its failures are its own fault then.
//!
//! Nothing is remembered: whether a service is down is a question about the seed, the service and the time.

use crate::random::mix;
use crate::services::Service;

/// Outages start and end at multiples of this.
const LENGTH_MICROS: i64 = 30_000_000;

/// One half minute in so many is an outage, for each service.
const ONE_IN: u64 = 14;

/// Whether the service is down at this time.
pub(crate) fn strikes(service: &Service, seed: u64, micros: i64) -> bool {
    let half_minute = micros.div_euclid(LENGTH_MICROS) as u64;
    let name = service.name.bytes().fold(seed, |hash, byte| mix(hash ^ u64::from(byte)));
    mix(name ^ half_minute).is_multiple_of(ONE_IN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::services::{LEDGER, TRACKER};

    #[test]
    fn services_fail_at_different_times_and_not_often() {
        let times =
            |service| (0..1_000).filter(|n| strikes(service, 5, n * LENGTH_MICROS)).collect::<Vec<_>>();
        let (ledger, tracker) = (times(&LEDGER), times(&TRACKER));
        assert!((40..110).contains(&ledger.len()), "{}", ledger.len());
        assert_ne!(ledger, tracker);
    }
}
