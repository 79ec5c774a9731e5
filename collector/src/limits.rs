//! The limits of the collector, in one place, each with its reason.
//!
//! Senders are assumed to be hostile: whatever they send, and however many of them there are, the memory and time
//! that they cost are bounded by these numbers. In the worst case, senders take about three times `batch_bytes`, once
//! each of `inflight_bytes`, `unwritten_bytes` and `idempotency_bytes`, twice `dedup_entries` identities, and
//! `series` series; raising one of these costs that much more memory.

use classifier::LimitConstraint;
use std::time::Duration;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Limits on what senders may cost. [`Limits::DEFAULT`] suits a single machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The size of a compressed body, as it arrives.
    pub compressed_bytes: usize,
    /// The size of a body after decompression, or of an uncompressed one; checked while it streams.
    pub body_bytes: usize,
    /// The size of the rows of one request in memory: a body can yield far more than its own size.
    pub batch_bytes: usize,
    /// The size of a body, or of rows, above which a request is large. Large requests are processed one at a time, so
    /// that two are never in memory at once, and by a worker of their own, so that no other request waits for them.
    pub large_bytes: usize,
    /// The longest time that a large request waits for its turn before it is rejected, so that their queue cannot
    /// grow without bound.
    pub large_wait: Duration,
    /// The total size of records that the WAL has not made durable yet: disks can be slower than workers.
    pub unwritten_bytes: usize,
    /// The total size of the bodies of requests that are being read or wait for the WAL.
    pub inflight_bytes: usize,
    /// The number of requests that are being read or wait for the WAL.
    pub requests: usize,
    /// The number of open connections on each listener.
    pub connections: usize,
    /// The number of open connections from one address, on each listener. It is less than `connections`, so that no
    /// client can take all of them, but large, because a proxy or a machine with many senders has one address.
    pub connections_per_address: usize,
    /// The time without a new request after which a connection is closed; exporters send every few seconds, or once a
    /// minute.
    pub idle_timeout: Duration,
    /// The longest time for receiving the head of a request, on a connection that is not idle.
    pub head_timeout: Duration,
    /// The longest pause between two chunks of a body.
    pub body_pause: Duration,
    /// The longest time for receiving a whole body.
    pub body_timeout: Duration,
    /// The longest time that a request waits for admission before it is rejected: bursts pass, and overload is
    /// reported.
    pub admission_wait: Duration,
    /// The time after which a rejected sender should retry.
    pub retry_after: Duration,
    /// The number of idempotency keys that are remembered.
    pub idempotency_keys: usize,
    /// The total size of their responses; each can list `rejected_listed` lines. The oldest are forgotten first.
    pub idempotency_bytes: usize,
    /// The time for which an idempotency key is remembered. It is not a setting, because it is guaranteed, and the
    /// tables keep responses for that time.
    pub idempotency_window: Duration,
    /// The time for which a repeated span or log record is recognized as a duplicate. It is not a setting, because it
    /// is guaranteed.
    pub dedup_window: Duration,
    /// The number of identities that each generation of the dedup window holds.
    pub dedup_entries: usize,
    /// The number of rejected lines that a response lists; the rest are only counted.
    pub rejected_listed: usize,
    /// The number of rows that the `rejects` table gets per minute: a sample, not a copy.
    pub rejects_per_minute: usize,
    /// The number of bytes that are kept of a rejected record.
    pub reject_sample_bytes: usize,
    /// The number of attributes of one span, record, resource or event that are read; the rest are ignored.
    pub attributes: usize,
    /// The nesting depth at which lists and maps in an attribute are cut off.
    pub value_depth: usize,
    /// The longest time that a shutdown waits for requests in progress.
    pub drain: Duration,
    /// The number of metric series, including those of the server itself; beyond it, series become `_other`. The
    /// metrics share it out, so none needs a limit of its own.
    pub series: usize,
    /// The number of services that metrics distinguish.
    pub services: usize,
    /// The number of operations for which the registry remembers that their server reports calls.
    pub operations: usize,
}

impl Limits {
    /// The limits that suit a single machine.
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

    /// Checks that the limits are consistent with each other.
    ///
    /// # Errors
    /// Returns the first constraint that is violated.
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

/// The largest size that can be allowed for a request, in bytes.
const LARGEST: usize = 1 << 30;
/// The largest nesting depth that can be allowed for attributes.
const DEEPEST: usize = 128;
/// The smallest number of series: fewer would leave none for services.
const LEAST_SERIES: usize = 4_000;
/// The number of series that must be available for each service.
const SERIES_OF_A_SERVICE: usize = 40;

const _: () = {
    assert!(Limits::DEFAULT.check().is_ok());
    // The rows of a large request are in memory three times while they are encoded as a record.
    assert!(3 * Limits::DEFAULT.batch_bytes + Limits::DEFAULT.inflight_bytes < 320 * MIB);
};

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
