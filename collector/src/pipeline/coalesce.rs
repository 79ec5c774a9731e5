//! Coalescing of events that exceed the budget of their service: events with the same group key share one row of the
//! WAL record, which says how many events it represents.
//!
//! The group key is chosen so that every aggregate stays correct: it consists of everything that events are grouped
//! by, and the minute. A sender could make every event different, so each service has a limited number of groups per
//! record; events beyond it are distinguished by category only, in rows with the code `_other`, like the labels of
//! metrics.
//!
//! Invariants: `sum(represents)` is the number of events that were sent. A request that is discarded also reverts
//! what it added to the rows of others, and returns its tokens. Identities of events without a row are stored beside
//! the responses to requests, so that duplicates are recognized after a restart as well.

use crate::budget::{Allowance, Bucket, Budgets};
use crate::metrics::names::{OTHER, UNKNOWN};
use classifier::{Context, Event, EventDenial, EventQuota, Findings};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use store::rows::EventRows;
use xxhash_rust::xxh3::xxh3_64;

/// The number of coalesced rows that a service has in one record.
const MAX_GROUPS_PER_SERVICE: usize = 64;
/// The number of services that are distinguished in one record; legitimate senders stay far below it.
const MAX_SERVICES: usize = 4096;
const MINUTE_US: i64 = 60_000_000;
/// The message of a row that represents events of many groups.
const OVERFLOW_MESSAGE: &str = "events of many groups, past the budget of their service";

/// The placement of an event in the rows of a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// The event has a row of its own.
    Own,
    /// The existing row with this index represents the event as well.
    Shared(usize),
    /// The event starts a row that represents all further events of its service, or of all services that share a
    /// bucket.
    Overflow { is_shared_bucket: bool },
}

/// The coalesced rows and the spent tokens of one WAL record.
#[derive(Default)]
pub(super) struct Coalescer {
    hasher: foldhash::fast::RandomState,
    services: HashMap<Box<str>, ServiceBudget>,
    /// The rows that represent several events, by the hash of the group key of these events.
    rows: HashMap<u64, usize>,
    /// For each event without a row of its own, the row that represents it.
    coalesced_rows: Vec<usize>,
    /// The identities of these events, by which duplicates are recognized.
    identities: Vec<u128>,
    /// The tokens that were taken, in order.
    spent: Vec<(Arc<Bucket>, u64)>,
    /// The index in `spent` at which the tokens of the current request begin.
    request_start: usize,
}

struct ServiceBudget {
    allowance: Allowance,
    groups: usize,
}

/// The state of a coalescer before a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CoalesceMark {
    coalesced_rows: usize,
    identities: usize,
    spent: usize,
}

impl Coalescer {
    /// Begins a request.
    pub(super) fn begin(&mut self) {
        self.request_start = self.spent.len();
    }

    pub(super) fn mark(&self) -> CoalesceMark {
        let Self { coalesced_rows, identities, spent, .. } = self;
        CoalesceMark {
            coalesced_rows: coalesced_rows.len(),
            identities: identities.len(),
            spent: spent.len(),
        }
    }

    /// The approximate memory for each event without a row of its own, in bytes.
    pub(super) const BYTES: usize = size_of::<usize>() + 4 * size_of::<u128>();

    /// Decides where an event is placed; `row` is the index that its own row would have.
    pub(super) fn place_event(
        &mut self,
        event: &Event<'_>,
        row: usize,
        budgets: &Budgets,
        now: i64,
    ) -> Placement {
        let Self { hasher, services, rows, spent, request_start, .. } = self;
        let service = event.context.service.as_deref().unwrap_or(UNKNOWN);
        let mut untracked = ServiceBudget { allowance: Allowance::Unlimited, groups: MAX_GROUPS_PER_SERVICE };
        let account = if services.len() < MAX_SERVICES || services.contains_key(service) {
            // The `entry` method would allocate an owned name for every event.
            if !services.contains_key(service) {
                services.insert(
                    service.into(),
                    ServiceBudget { allowance: budgets.allowance(service, now), groups: 0 },
                );
            }
            services.get_mut(service).unwrap_or(&mut untracked)
        } else {
            untracked.allowance = budgets.allowance(service, now);
            &mut untracked
        };
        let (Allowance::Own(bucket) | Allowance::Shared(bucket)) = &account.allowance else {
            return Placement::Own;
        };
        if bucket.take(now) {
            match spent[*request_start..].last_mut() {
                Some((last, count)) if Arc::ptr_eq(last, bucket) => *count += 1,
                _ => spent.push((Arc::clone(bucket), 1)),
            }
            return Placement::Own;
        }
        let is_shared_bucket = matches!(account.allowance, Allowance::Shared(_));
        if !is_shared_bucket {
            let group = hasher.hash_one((service, group_key(event)));
            if let Some(shared) = rows.get(&group) {
                return Placement::Shared(*shared);
            }
            if account.groups < MAX_GROUPS_PER_SERVICE {
                account.groups += 1;
                rows.insert(group, row);
                return Placement::Own;
            }
        }
        let owner = if is_shared_bucket { OTHER } else { service };
        let overflow = hasher.hash_one((owner, event.category, event.fault, event.kind, event.hidden));
        match rows.get(&overflow) {
            Some(shared) => Placement::Shared(*shared),
            None => {
                rows.insert(overflow, row);
                Placement::Overflow { is_shared_bucket }
            }
        }
    }

    /// Lets a row represent one more event, which has the given identities.
    pub(super) fn coalesce(
        &mut self,
        row: usize,
        rows: &mut EventRows,
        identities: impl Iterator<Item = u128>,
    ) {
        rows.represent(row, 1);
        self.coalesced_rows.push(row);
        self.identities.extend(identities);
    }

    /// Reverts what came after a mark. Returns the identities of events without a row of their own, and the tokens
    /// that the rest of the record has spent.
    pub(super) fn finish(mut self, mark: CoalesceMark, rows: &mut EventRows) -> (Vec<u128>, SpentTokens) {
        for row in self.coalesced_rows.drain(mark.coalesced_rows..) {
            rows.represent(row, -1);
        }
        SpentTokens(self.spent.split_off(mark.spent)).give_back();
        self.identities.truncate(mark.identities);
        (self.identities, SpentTokens(self.spent))
    }
}

/// The budget tokens that were taken for a record.
#[derive(Default)]
pub(super) struct SpentTokens(Vec<(Arc<Bucket>, u64)>);

impl SpentTokens {
    /// Returns the tokens, because the record is not stored and its events will be sent again.
    pub(super) fn give_back(self) {
        for (bucket, count) in self.0 {
            bucket.give_back(count);
        }
    }
}

/// Returns the key of events that share a row past the budget: everything that aggregates group by.
fn group_key<'e>(event: &'e Event<'_>) -> impl std::hash::Hash + use<'e> {
    let Event { context, denial, .. } = event;
    // If no client is named, the session distinguishes the clients that retry again and again.
    let client = context.client.as_deref().or(context.session_id.as_deref());
    (
        (event.fingerprint, event.code.as_deref(), event.fault, event.kind, event.dialect, event.hidden),
        (
            context.time.div_euclid(MINUTE_US),
            context.environment.as_deref(),
            context.service_version.as_deref(),
        ),
        (client, event.token_hash.map(|token| token.0), event.findings),
        (event.quota.metric.as_deref(), event.quota.level),
        (denial.required_trust.as_deref(), denial.actual_trust.as_deref(), denial.danger_level),
    )
}

/// Returns the event of an overflow row: it has the service and category, but no message, code or context of its own.
pub(super) fn overflow_event<'e>(event: &Event<'e>, is_shared_bucket: bool) -> Event<'e> {
    let Context { time, time_source, source, .. } = event.context;
    let service = if is_shared_bucket { Some(OTHER.into()) } else { event.context.service.clone() };
    let name = format!("{}\u{1f}{}", service.as_deref().unwrap_or(UNKNOWN), event.category.as_str());
    Event {
        code: None,
        canonical: OTHER.into(),
        retryable: None,
        http_status: None,
        message: Some(OVERFLOW_MESSAGE.into()),
        template: Some(OVERFLOW_MESSAGE),
        fingerprint: xxh3_64(name.as_bytes()),
        findings: Findings::default(),
        context: Context { time, time_source, service, source, ..Context::default() },
        event_id: event.event_id,
        kind: event.kind,
        dialect: event.dialect,
        category: event.category,
        fault: event.fault,
        severity: event.severity,
        recovery: event.recovery,
        inferred: event.inferred,
        hidden: event.hidden,
        quota: EventQuota::default(),
        retry_after_s: None,
        denial: EventDenial::default(),
        token_hash: None,
        batch_index: None,
        details: None,
        attributes: None,
    }
}

#[cfg(test)]
mod tests;
