//! Every bound of the collector, in one place, each with its reason.
//!
//! Senders are hostile until proven otherwise: whatever they send, and however many of them, the memory and
//! the time they cost are bounded by these numbers. At its worst, what senders take is about three times `batch_bytes`,
//! once each of `inflight_bytes`, `unwritten_bytes` and `idempotency_bytes`, twice `dedup_entries` identities and `series` series:
//! whoever raises one of them pays for it.

use classifier::LimitConstraint;
use std::time::Duration;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Bounds on what senders may cost. [`Limits::DEFAULT`] serves one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A compressed body, as it arrives.
    pub compressed_bytes: usize,
    /// A body after decompression, or one that came without: checked while it streams.
    pub body_bytes: usize,
    /// The rows of one request, as stored: a body can yield more than it holds.
    pub batch_bytes: usize,
    /// Requests whose body or rows are above this are worked on one at a time, so that two giants do not meet
    /// in memory, by a worker of their own, so that nobody waits behind one.
    pub large_bytes: usize,
    /// A giant that has waited this long for its turn is refused: a queue of them must not grow for ever.
    pub large_wait: Duration,
    /// Records that the log has not made durable yet, all together: disks can be slower than workers.
    pub unwritten_bytes: usize,
    /// The bodies of all requests that are being read or wait for the log.
    pub inflight_bytes: usize,
    /// Requests that are being read or wait for the log.
    pub requests: usize,
    /// Open connections on each listener.
    pub connections: usize,
    /// Open connections of one address, on each listener: a part of all, so that no client can take them from the
    /// others, and a large one, since a proxy or a machine of many senders is one address.
    pub connections_per_address: usize,
    /// A connection on which no request is begun for this long is closed; exporters send every few seconds, or once a
    /// minute.
    pub idle_timeout: Duration,
    /// A request's head, of a connection that is not idle.
    pub head_timeout: Duration,
    /// The pause between two pieces of a body.
    pub body_pause: Duration,
    /// A whole body.
    pub body_timeout: Duration,
    /// A request waits this long for room before it is refused: bursts pass, overload shows.
    pub admission_wait: Duration,
    /// When a refused sender should come back.
    pub retry_after: Duration,
    /// Idempotency keys that are remembered.
    pub idempotency_keys: usize,
    /// Their answers, all together: each can list `rejected_listed` lines. The oldest are forgotten first.
    pub idempotency_bytes: usize,
    /// How long an idempotency key is remembered. No setting: it is a promise, and the tables keep answers for it.
    pub idempotency_window: Duration,
    /// How long a repeated span or log record is known for one. No setting: it is a promise.
    pub dedup_window: Duration,
    /// Spans and log records remembered for that, in each half of the window.
    pub dedup_entries: usize,
    /// Rejected lines that an answer lists; the rest are counted.
    pub rejected_listed: usize,
    /// Rows of the `rejects` table in one minute: a sample, not a copy.
    pub rejects_per_minute: usize,
    /// How much of a rejected record is kept.
    pub reject_sample_bytes: usize,
    /// Attributes of one span, record, resource or event; the rest are not read.
    pub attributes: usize,
    /// Lists and maps nested deeper in an attribute are cut off.
    pub value_depth: usize,
    /// How long a shutdown waits for what was begun.
    pub drain: Duration,
    /// Metric series, those of our own health included: what is beyond is `_other`. The families share them out, so none
    /// needs a bound of its own.
    pub series: usize,
    /// Services that metrics tell apart.
    pub services: usize,
    /// Operations that are remembered to be answered by a server that reports.
    pub operations: usize,
}

impl Limits {
    /// What serves one machine.
    pub const DEFAULT: Self = Self {
        compressed_bytes: 16 * MIB,
        body_bytes: 64 * MIB,
        batch_bytes: 64 * MIB,
        large_bytes: 8 * MIB,
        large_wait: Duration::from_secs(30),
        unwritten_bytes: 16 * MIB,
        inflight_bytes: 96 * MIB,
        requests: 1024,
        connections: 1024,
        connections_per_address: 768,
        idle_timeout: Duration::from_secs(120),
        head_timeout: Duration::from_secs(10),
        body_pause: Duration::from_secs(10),
        body_timeout: Duration::from_secs(60),
        admission_wait: Duration::from_millis(500),
        retry_after: Duration::from_secs(1),
        idempotency_keys: 65_536,
        idempotency_bytes: 32 * MIB,
        idempotency_window: Duration::from_secs(24 * 60 * 60),
        dedup_window: Duration::from_secs(120),
        dedup_entries: 500_000,
        rejected_listed: 100,
        rejects_per_minute: 600,
        reject_sample_bytes: KIB,
        attributes: 256,
        value_depth: 32,
        drain: Duration::from_secs(30),
        series: 50_000,
        services: 400,
        operations: 4096,
    };

    /// Whether the bounds fit together.
    ///
    /// # Errors
    /// The first relation that does not hold.
    pub const fn check(&self) -> Result<(), LimitConstraint> {
        let body = ("body_bytes", self.body_bytes);
        let batch = ("batch_bytes", self.batch_bytes);
        let large = ("large_bytes", self.large_bytes);
        let (pause, time) = (self.body_pause.as_millis() as usize, self.body_timeout.as_millis() as usize);
        let series = ("series", self.series);
        LimitConstraint::check(&[
            LimitConstraint::fits(
                ("compressed_bytes", self.compressed_bytes),
                body,
                "a body grows when it is unpacked",
            ),
            LimitConstraint::fits(
                body,
                ("inflight_bytes", self.inflight_bytes),
                "one request of the largest size must be able to pass",
            ),
            LimitConstraint::fits(large, body, "otherwise no request could have a worker for large ones"),
            LimitConstraint::fits(large, batch, "otherwise no request could have a worker for large ones"),
            LimitConstraint::fits(
                large,
                ("unwritten_bytes", self.unwritten_bytes),
                "a request that is not large never has to be alone",
            ),
            LimitConstraint::at_most(body, LARGEST, "texts of a record are counted in 31 bits"),
            LimitConstraint::at_most(batch, LARGEST, "texts of a record are counted in 31 bits"),
            LimitConstraint::fits(
                ("body_pause", pause),
                ("body_timeout", time),
                "a pause, in milliseconds, is part of the whole",
            ),
            LimitConstraint::at_most(
                ("value_depth", self.value_depth),
                DEEPEST,
                "values are walked by recursion",
            ),
            LimitConstraint::at_least(
                series,
                LEAST_SERIES,
                "our own health and the sums of all services need them",
            ),
            LimitConstraint::fits(
                ("services", self.services),
                series,
                "each has series of its own, and the same again for what differs",
            )
            .times(SERIES_OF_A_SERVICE),
        ])
    }
}

/// No request can be allowed to be larger.
const LARGEST: usize = 1 << 30;
/// No attribute can be allowed to be nested deeper.
const DEEPEST: usize = 128;
/// Fewer series would leave no room for services.
const LEAST_SERIES: usize = 4_000;
/// So many series must there be for each service.
const SERIES_OF_A_SERVICE: usize = 40;

const _: () = {
    assert!(Limits::DEFAULT.check().is_ok());
    // A giant's rows stand in memory three times while they are written as a record.
    assert!(3 * Limits::DEFAULT.batch_bytes + Limits::DEFAULT.inflight_bytes < 320 * MIB);
};

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
