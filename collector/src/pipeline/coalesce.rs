//! Events past the budget of their service: those that are `group_key` share one row of the record that is being made, which
//! says how many it represents.
//!
//! What is `group_key` is decided so that every count of ours stays right: by everything that events are grouped by, and the
//! minute. Somebody could make every event different, so a service has so many groups in one record; what is beyond is
//! told apart by category only, in rows owner code is `_other`, as the labels of metrics are.
//!
//! What always holds: `sum(represents)` is what was sent. A request that is taken back takes back what it added to the rows
//! of others, and the tokens it has spent. Identities of events without a row are `encode_identities` beside the answers to
//! requests, so that a repeat is known after a restart as well.

use crate::budget::{Allowance, Bucket, Budgets};
use crate::metrics::names::{OTHER, UNKNOWN};
use classifier::{Context, Event, Findings};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use store::rows::EventRows;
use xxhash_rust::xxh3::xxh3_64;

/// Sorts of events past its budget that a service has rows for, in one record.
const MAX_GROUPS_PER_SERVICE: usize = 64;
/// Services of one record that are told apart; nobody sends more by accident.
const MAX_SERVICES: usize = 4096;
const MINUTE_US: i64 = 60_000_000;
/// What stands in place of a message in a row of many groups.
const OVERFLOW_MESSAGE: &str = "events of many groups, past the budget of their service";

/// What becomes of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Placement {
    /// It has a row of its own.
    Own,
    /// A row that is there stands for it as well.
    Shared(usize),
    /// A row for all that is left of its service, or of too many services, begins with it.
    Overflow { is_shared_bucket: bool },
}

/// The coalesced rows and the spent tokens of one WAL record.
#[derive(Default)]
pub(super) struct Coalescer {
    hasher: foldhash::fast::RandomState,
    services: HashMap<Box<str>, ServiceBudget>,
    /// The rows that stand for more, by the hash of the group key of their events.
    rows: HashMap<u64, usize>,
    /// The row of each event that has none of its own.
    coalesced_rows: Vec<usize>,
    /// What they are known by when they are sent again.
    identities: Vec<u128>,
    /// Tokens that were taken, in the order they were.
    spent: Vec<(Arc<Bucket>, u64)>,
    /// Where those of this request begin.
    request_start: usize,
}

struct ServiceBudget {
    allowance: Allowance,
    groups: usize,
}

/// How much there was before a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct CoalesceMark {
    coalesced_rows: usize,
    identities: usize,
    spent: usize,
}

impl Coalescer {
    /// A request begins.
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

    /// What this weighs for each event that has no row.
    pub(super) const BYTES: usize = size_of::<usize>() + 4 * size_of::<u128>();

    /// Decides about an event; `row` is where it would stand.
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
            // Not by `entry`, which would want a name of its own for every event.
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

    /// A row stands for one more event, which is known by these.
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

    /// Takes back what came after a mark; leaves the identities of events without a row, and what was spent on the record.
    pub(super) fn finish(mut self, mark: CoalesceMark, rows: &mut EventRows) -> (Vec<u128>, SpentTokens) {
        for row in self.coalesced_rows.drain(mark.coalesced_rows..) {
            rows.represent(row, -1);
        }
        SpentTokens(self.spent.split_off(mark.spent)).give_back();
        self.identities.truncate(mark.identities);
        (self.identities, SpentTokens(self.spent))
    }
}

/// Tokens that were taken for a record.
#[derive(Default)]
pub(super) struct SpentTokens(Vec<(Arc<Bucket>, u64)>);

impl SpentTokens {
    /// The record is not stored: its events will come again.
    pub(super) fn give_back(self) {
        for (bucket, count) in self.0 {
            bucket.give_back(count);
        }
    }
}

/// What events past the budget have in common when they share a row: all that counts are made by.
fn group_key<'e>(event: &'e Event<'_>) -> impl std::hash::Hash + use<'e> {
    let Event { context, .. } = event;
    // Where somebody tries again and again, a session stands for the client that nobody names.
    let client = context.client.as_deref().or(context.session_id.as_deref());
    (
        (event.fingerprint, event.code.as_deref(), event.fault, event.kind, event.dialect, event.hidden),
        (
            context.time.div_euclid(MINUTE_US),
            context.environment.as_deref(),
            context.service_version.as_deref(),
        ),
        (client, event.token_hash.map(|token| token.0), event.findings),
        (event.quota_metric.as_deref(), event.quota_level),
        (event.required_trust.as_deref(), event.actual_trust.as_deref(), event.danger_level),
    )
}

/// The event that stands for all that is left: it says of which service and category they are, and nothing else.
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
        quota_metric: None,
        quota_current: None,
        quota_limit: None,
        quota_level: None,
        retry_after_s: None,
        resets_at: None,
        required_trust: None,
        actual_trust: None,
        danger_level: None,
        token_hash: None,
        batch_index: None,
        details: None,
        attributes: None,
    }
}

/// The identities of events without a row, as they are `encode_identities` beside the answers to requests.
pub(super) fn encode_identities(identities: &[u128]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(IDENTITIES_PREFIX.len() + 32 * identities.len() + 2);
    text.push_str(IDENTITIES_PREFIX);
    for identity in identities {
        let _ = write!(text, "{identity:032x}");
    }
    text.push_str("\"}");
    text
}

/// None for the answers that are `encode_identities` in the same place.
pub(super) fn decode_identities(text: &str) -> Option<Vec<u128>> {
    let digits = text.strip_prefix(IDENTITIES_PREFIX)?.strip_suffix("\"}")?.as_bytes();
    let identity = |digits: &[u8]| u128::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    digits.chunks(32).map(identity).collect()
}

const IDENTITIES_PREFIX: &str = "{\"folded\":\"";

#[cfg(test)]
mod tests;
