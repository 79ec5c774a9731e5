//! Budgets: limits on how many events of a service are stored one by one, so that one noisy service cannot starve the
//! rest.
//!
//! A budget is a token bucket that fills at a rate and holds ten seconds' worth. An event that finds a token is
//! stored in a row of its own; one that finds none exceeds the budget, and shares a row with similar events
//! (`pipeline::coalesce`).
//!
//! Invariants: within its budget nothing changes for a service; the number of buckets is bounded, whatever names are
//! sent; and taking a token takes no lock. A bucket that is full again holds no information and can be forgotten, so
//! that names of the past do not take the place of current ones.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// The time in which an empty bucket fills up, in nanoseconds.
const BURST_NS: i64 = 10 * SECOND_NS;
const SECOND_NS: i64 = 1_000_000_000;
/// The largest number of events per period: a faster rate could not be distinguished from an unlimited one.
const MAX_EVENTS_PER_PERIOD: i64 = SECOND_NS;
/// The number of services without a configured budget that have a bucket of their own; the rest share one.
const MAX_BUCKETS: usize = 4096;
/// The shortest time between two sweeps for full buckets, in microseconds.
const SWEEP_INTERVAL_US: i64 = 1_000_000;

/// The budget of one service, or of every service without its own: `orders=500/min`, `10000/s`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    /// The service; `None` for all services that have no budget of their own.
    pub service: Option<String>,
    /// The time in which one token is refilled, in nanoseconds.
    interval: i64,
}

impl FromStr for Budget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (service, rate) = match text.rsplit_once('=') {
            Some((service, rate)) => (Some(service.trim()), rate),
            None => (None, text),
        };
        let is_named = service.is_none_or(|service| !service.is_empty());
        match interval(rate).filter(|_| is_named) {
            Some(interval) => Ok(Self { service: service.map(str::to_owned), interval }),
            None => Err("give a budget as in 10000/s, 600/min or orders=500/s".to_owned()),
        }
    }
}

fn interval(rate: &str) -> Option<i64> {
    let (events, per) = rate.trim().split_once('/')?;
    let time = match per.trim() {
        "s" => SECOND_NS,
        "min" => 60 * SECOND_NS,
        _ => return None,
    };
    let events =
        events.trim().parse::<i64>().ok().filter(|events| (1..=MAX_EVENTS_PER_PERIOD).contains(events))?;
    Some(time / events)
}

/// The tokens of one service, represented by the time up to which they are spent: the tokens left are the time from
/// it until now, divided by the interval.
#[derive(Debug)]
pub(crate) struct Bucket {
    interval: i64,
    /// The longest time that it can lag behind now, which is at least one interval.
    burst: i64,
    spent_until: AtomicI64,
}

impl Bucket {
    fn new(interval: i64) -> Self {
        Self { interval, burst: BURST_NS.max(interval), spent_until: AtomicI64::new(i64::MIN) }
    }

    /// Takes a token and returns true, if there is one. Time is in microseconds since 1970.
    pub(crate) fn take(&self, now: i64) -> bool {
        let now = now.saturating_mul(1_000);
        let spend = |until: i64| {
            // If tokens are spent far ahead of now, the clock was set back. The service does not wait until it has
            // caught up.
            let was_set_back = until > now.saturating_add(self.burst);
            let until =
                if was_set_back { now - self.interval } else { until.max(now.saturating_sub(self.burst)) };
            let next = until.saturating_add(self.interval);
            (next <= now).then_some(next)
        };
        self.spent_until.fetch_update(Ordering::Relaxed, Ordering::Relaxed, spend).is_ok()
    }

    /// Returns tokens of events that were not stored after all.
    pub(crate) fn give_back(&self, count: u64) {
        let time = self.interval.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX));
        self.spent_until.fetch_sub(time.min(BURST_NS.max(self.interval)), Ordering::Relaxed);
    }

    fn is_full(&self, now: i64) -> bool {
        self.spent_until.load(Ordering::Relaxed) <= now.saturating_mul(1_000).saturating_sub(self.burst)
    }
}

/// The bucket that a service may take tokens from, if it is limited.
#[derive(Debug, Clone)]
pub(crate) enum Allowance {
    /// The service has no budget.
    Unlimited,
    Own(Arc<Bucket>),
    /// The service is beyond the largest number of buckets and shares one with all others that are.
    Shared(Arc<Bucket>),
}

/// The budgets of all services. There are none until they are set.
#[derive(Debug, Default)]
pub struct Budgets {
    are_set: AtomicBool,
    buckets: RwLock<Buckets>,
}

#[derive(Debug, Default)]
struct Buckets {
    /// The interval of the budget of services without their own.
    default_interval: Option<i64>,
    configured: HashMap<Box<str>, Arc<Bucket>>,
    dynamic: HashMap<Box<str>, Arc<Bucket>>,
    overflow: Option<Arc<Bucket>>,
    /// The time of the last sweep for full buckets.
    last_sweep: i64,
}

impl Budgets {
    /// Replaces all budgets; of several for the same service the last one applies. All buckets are full at first.
    pub fn set(&self, budgets: &[Budget]) {
        let mut buckets = Buckets::default();
        for Budget { service, interval } in budgets {
            match service {
                Some(service) => {
                    buckets.configured.insert(service.as_str().into(), Arc::new(Bucket::new(*interval)));
                }
                None => buckets.default_interval = Some(*interval),
            }
        }
        buckets.overflow = buckets.default_interval.map(|interval| Arc::new(Bucket::new(interval)));
        *self.buckets.write().unwrap_or_else(PoisonError::into_inner) = buckets;
        self.are_set.store(!budgets.is_empty(), Ordering::Relaxed);
    }

    /// Reports whether there are any budgets.
    #[inline]
    pub(crate) fn are_set(&self) -> bool {
        self.are_set.load(Ordering::Relaxed)
    }

    /// Returns the allowance of a service. Time is in microseconds since 1970.
    pub(crate) fn allowance(&self, service: &str, now: i64) -> Allowance {
        let known = self.buckets.read().unwrap_or_else(PoisonError::into_inner).lookup(service);
        known.unwrap_or_else(|| {
            self.buckets.write().unwrap_or_else(PoisonError::into_inner).register(service, now)
        })
    }
}

impl Buckets {
    fn lookup(&self, service: &str) -> Option<Allowance> {
        let own = self.configured.get(service).or_else(|| self.dynamic.get(service));
        let own = own.map(|bucket| Allowance::Own(Arc::clone(bucket)));
        own.or_else(|| self.default_interval.is_none().then_some(Allowance::Unlimited))
    }

    fn register(&mut self, service: &str, now: i64) -> Allowance {
        if let Some(allowance) = self.lookup(service) {
            return allowance;
        }
        let (Some(interval), Some(overflow)) = (self.default_interval, &self.overflow) else {
            return Allowance::Unlimited;
        };
        if self.dynamic.len() >= MAX_BUCKETS
            && now.abs_diff(self.last_sweep) >= SWEEP_INTERVAL_US.unsigned_abs()
        {
            self.last_sweep = now;
            self.dynamic.retain(|_, bucket| !bucket.is_full(now));
        }
        if self.dynamic.len() >= MAX_BUCKETS {
            return Allowance::Shared(Arc::clone(overflow));
        }
        let bucket = Arc::new(Bucket::new(interval));
        self.dynamic.insert(service.into(), Arc::clone(&bucket));
        Allowance::Own(bucket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000;
    const NOW: i64 = 1_700_000_000 * S;

    fn bucket(rate: &str) -> Bucket {
        Bucket::new(interval(rate).unwrap())
    }

    fn taken(bucket: &Bucket, tries: usize, now: i64) -> usize {
        (0..tries).filter(|_| bucket.take(now)).count()
    }

    #[test]
    fn budgets_are_read() {
        let of = |text: &str| text.parse::<Budget>().map(|budget| (budget.service, budget.interval));
        assert_eq!(of("10000/s"), Ok((None, 100_000)));
        assert_eq!(of("orders=500/s"), Ok((Some("orders".to_owned()), 2_000_000)));
        assert_eq!(of("a=b = 60 / min"), Ok((Some("a=b".to_owned()), SECOND_NS)));
        for bad in ["", "10", "0/s", "-1/s", "1.5/s", "10/h", "=10/s", "orders=", "10/s/s", "2000000000/s"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_burst_of_ten_seconds_then_the_rate() {
        let bucket = bucket("100/s");
        assert_eq!(taken(&bucket, 5_000, NOW), 1_000);
        assert_eq!(taken(&bucket, 5_000, NOW + S / 2), 50);
        assert_eq!(taken(&bucket, 5_000, NOW + 3 * S / 2), 100);
        assert_eq!(taken(&bucket, 5_000, NOW + 3_600 * S), 1_000, "and no more, however long it was quiet");
        assert!(!bucket.is_full(NOW + 3_600 * S + 9 * S) && bucket.is_full(NOW + 3_600 * S + 10 * S));
    }

    #[test]
    fn the_slowest_budget_has_room_for_one() {
        let bucket = bucket("1/min");
        assert_eq!(taken(&bucket, 10, NOW), 1);
        assert_eq!(taken(&bucket, 10, NOW + 59 * S), 0);
        assert_eq!(taken(&bucket, 10, NOW + 60 * S), 1);
    }

    #[test]
    fn tokens_come_back() {
        let bucket = bucket("10/s");
        assert_eq!(taken(&bucket, 500, NOW), 100);
        bucket.give_back(7);
        assert_eq!(taken(&bucket, 500, NOW), 7);
        bucket.give_back(u64::MAX);
        assert_eq!(taken(&bucket, 500, NOW), 100, "no more than it holds");
    }

    #[test]
    fn a_clock_that_is_set_back_starves_nobody() {
        let bucket = bucket("10/s");
        assert_eq!(taken(&bucket, 500, NOW), 100);
        let earlier = NOW - 86_400 * S;
        assert_eq!(taken(&bucket, 500, earlier), 1);
        assert_eq!(taken(&bucket, 500, earlier + S), 10);
    }

    #[test]
    fn many_takers_get_no_more_than_one() {
        let bucket = bucket("100/s");
        let takers = || {
            std::thread::scope(|scope| {
                let takers: Vec<_> = (0..4).map(|_| scope.spawn(|| taken(&bucket, 1_000, NOW))).collect();
                takers.into_iter().map(|taker| taker.join().unwrap()).sum::<usize>()
            })
        };
        assert_eq!(takers(), 1_000);
    }

    fn budgets(words: &[&str]) -> Budgets {
        let budgets = Budgets::default();
        assert!(!budgets.are_set());
        budgets.set(&words.iter().map(|word| word.parse().unwrap()).collect::<Vec<_>>());
        budgets
    }

    fn burst(allowance: &Allowance) -> Option<usize> {
        match allowance {
            Allowance::Unlimited => None,
            Allowance::Own(bucket) | Allowance::Shared(bucket) => Some(taken(bucket, 400, NOW)),
        }
    }

    #[test]
    fn a_service_has_its_own_budget_or_that_of_every_one() {
        let all = budgets(&["10/s", "orders=20/s", "orders=30/s"]);
        assert!(all.are_set());
        assert_eq!(burst(&all.allowance("orders", NOW)), Some(300));
        assert_eq!(burst(&all.allowance("orders", NOW)), Some(0), "the same bucket");
        assert_eq!(burst(&all.allowance("stock", NOW)), Some(100));
        let one = budgets(&["orders=20/s"]);
        assert_eq!(burst(&one.allowance("stock", NOW)), None);
        assert_eq!(burst(&one.allowance("orders", NOW)), Some(200));
        one.set(&[]);
        assert!(!one.are_set());
    }

    /// A million names cannot take more than the largest number of buckets, and services that come later still get
    /// their own once others are quiet.
    #[test]
    fn names_past_the_bound_share_a_bucket_until_others_are_quiet() {
        let budgets = budgets(&["1/s", "named=5/s"]);
        for number in 0..MAX_BUCKETS {
            assert_eq!(burst(&budgets.allowance(&format!("s{number}"), NOW)), Some(10));
        }
        let shared = |allowance: Allowance| matches!(allowance, Allowance::Shared(_));
        assert!(shared(budgets.allowance("one more", NOW)) && shared(budgets.allowance("another", NOW)));
        assert_eq!(burst(&budgets.allowance("one more", NOW)), Some(10));
        assert_eq!(burst(&budgets.allowance("another", NOW)), Some(0));
        assert_eq!(burst(&budgets.allowance("named", NOW)), Some(50));
        assert!(!shared(budgets.allowance("one more", NOW + 11 * S)));
        assert!(budgets.buckets.read().unwrap().dynamic.len() == 1);
    }
}
