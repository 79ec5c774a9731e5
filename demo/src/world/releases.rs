//! Releases: every service gets a new version each day, and each day one of these versions is bad until a fix follows.
//!
//! No state is kept: the version at a time is computed from the seed, the service and the time.

use super::incident::Incident;
use crate::random::mix;
use crate::services::Service;

const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// Releases happen in working hours: from this hour (UTC) on, within the number of hours below.
const FIRST_HOUR: i64 = 8;
const RELEASE_HOURS: u64 = 8;

/// The services whose releases can be bad.
const BREAKABLE: [&str; 5] =
    ["ledger-adapter", "orders-reference", "skills-runtime", "tracker-adapter", "repo-tools"];

/// A version of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Release {
    pub(super) minor: i64,
    pub(super) patch: i64,
    /// True if most failed calls of this version fail with an internal error.
    pub(super) is_bad: bool,
}

impl Release {
    pub(super) fn name(&self) -> String {
        format!("1.{}.{}", self.minor, self.patch)
    }

    /// Returns the version of a service at a time.
    pub(super) fn at(service: &Service, seed: u64, micros: i64) -> Self {
        let today = micros.div_euclid(DAY);
        let day = if micros >= released_at(service, seed, today) { today } else { today - 1 };
        let fixed_at = fixed_at(service, seed, day);
        Self {
            minor: day.rem_euclid(1_000),
            patch: i64::from(fixed_at.is_some_and(|at| micros >= at)),
            is_bad: fixed_at.is_some_and(|at| micros < at),
        }
    }

    /// Returns the version during an incident: the minor version is higher while the bad release of the incident is
    /// deployed.
    pub(super) fn during(self, incident: Option<&Incident>, service: &Service, micros: i64) -> Self {
        match incident.filter(|incident| incident.is_deployed(service, micros)) {
            Some(_) => Self { minor: self.minor + 1, patch: 0, is_bad: false },
            None => self,
        }
    }
}

fn released_at(service: &Service, seed: u64, day: i64) -> i64 {
    let minutes = hash(service.name, seed, day) % (RELEASE_HOURS * 60);
    day * DAY + FIRST_HOUR * HOUR + minutes as i64 * MINUTE
}

/// Returns the time at which a bad release is fixed, or `None` if the release of this day is good.
fn fixed_at(service: &Service, seed: u64, day: i64) -> Option<i64> {
    let broken = BREAKABLE[(hash("broken", seed, day) % BREAKABLE.len() as u64) as usize];
    let minutes = 20 + hash("fixed", seed, day) % 25;
    (broken == service.name).then(|| released_at(service, seed, day) + minutes as i64 * MINUTE)
}

fn hash(name: &str, seed: u64, day: i64) -> u64 {
    name.bytes().fold(mix(seed ^ day as u64), |hash, byte| mix(hash ^ u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::START_MICROS;
    use crate::world::services::REPOSITORIES;

    #[test]
    fn versions_only_go_up_and_bad_ones_are_fixed_within_the_hour() {
        let times: Vec<i64> = (0..30 * 24 * 12).map(|step| START_MICROS + step * 5 * MINUTE).collect();
        let releases: Vec<_> = times.iter().map(|at| Release::at(&REPOSITORIES, 3, *at)).collect();
        assert!(releases.is_sorted_by_key(|release| (release.minor, release.patch)));
        let bad = releases.iter().filter(|release| release.is_bad).count();
        assert!((4..9 * 30).contains(&bad), "{bad}");
    }

    #[test]
    fn each_day_has_a_bad_release() {
        let broken = |day| {
            let at = START_MICROS + day * DAY + FIRST_HOUR * HOUR;
            let mut times = (0..RELEASE_HOURS as i64 * 12 + 12).map(|step| at + step * 5 * MINUTE);
            let is_bad = |at| super::super::cast::lines().any(|service| Release::at(service, 7, at).is_bad);
            times.any(is_bad)
        };
        assert!((0..14).all(broken));
    }
}
