//! Events past the budget of their service: those that are alike share one row of the record that is being made, which
//! says how many it represents.
//!
//! What is alike is decided so that every count of ours stays right: by everything that events are grouped by, and the
//! minute. Somebody could make every event different, so a service has so many sorts in one record; what is beyond is
//! told apart by category only, in rows whose code is `_other`, as the labels of metrics are.
//!
//! What always holds: `sum(represents)` is what was sent. A request that is taken back takes back what it added to the rows
//! of others, and the tokens it has spent. Identities of events without a row are kept beside the answers to
//! requests, so that a repeat is known after a restart as well.

use crate::budget::{Bucket, Budgets, Purse};
use crate::metrics::names::{OTHER, UNKNOWN};
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::Arc;
use store::rows::EventRows;
use taxonomy::{Context, Event, Findings};
use xxhash_rust::xxh3::xxh3_64;

/// Sorts of events past its budget that a service has rows for, in one record.
const SORTS: usize = 64;
/// Services of one record that are told apart; nobody sends more by accident.
const ACCOUNTS: usize = 4096;
const MINUTE_US: i64 = 60_000_000;
/// What stands in place of a message in a row of many sorts.
const MANY: &str = "events of many sorts, past the budget of their service";

/// What becomes of an event.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It has a row of its own.
    Own,
    /// A row that is there stands for it as well.
    Shared(usize),
    /// A row for all that is left of its service, or of too many services, begins with it.
    Rest { is_of_many: bool },
}

/// What was folded and spent for one record.
#[derive(Default)]
pub(super) struct Folds {
    hasher: foldhash::fast::RandomState,
    accounts: HashMap<Box<str>, Account>,
    /// The rows that stand for more, by the hash of what is alike about their events.
    rows: HashMap<u64, usize>,
    /// The row of each event that has none of its own.
    folded: Vec<usize>,
    /// What they are known by when they are sent again.
    identities: Vec<u128>,
    /// Tokens that were taken, in the order they were.
    spent: Vec<(Arc<Bucket>, u64)>,
    /// Where those of this request begin.
    request: usize,
}

struct Account {
    purse: Purse,
    sorts: usize,
}

/// How much there was before a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FoldMark {
    folded: usize,
    identities: usize,
    spent: usize,
}

impl Folds {
    /// A request begins.
    pub(super) fn begin(&mut self) {
        self.request = self.spent.len();
    }

    pub(super) fn mark(&self) -> FoldMark {
        let Self { folded, identities, spent, .. } = self;
        FoldMark { folded: folded.len(), identities: identities.len(), spent: spent.len() }
    }

    /// What this weighs for each event that has no row.
    pub(super) const BYTES: usize = size_of::<usize>() + 4 * size_of::<u128>();

    /// Decides about an event; `row` is where it would stand.
    pub(super) fn place(&mut self, event: &Event<'_>, row: usize, budgets: &Budgets, now: i64) -> Place {
        let Self { hasher, accounts, rows, spent, request, .. } = self;
        let service = event.context.service.as_deref().unwrap_or(UNKNOWN);
        let mut stranger = Account { purse: Purse::Bottomless, sorts: SORTS };
        let account = if accounts.len() < ACCOUNTS || accounts.contains_key(service) {
            // Not by `entry`, which would want a name of its own for every event.
            if !accounts.contains_key(service) {
                accounts.insert(service.into(), Account { purse: budgets.of(service, now), sorts: 0 });
            }
            accounts.get_mut(service).unwrap_or(&mut stranger)
        } else {
            stranger.purse = budgets.of(service, now);
            &mut stranger
        };
        let (Purse::Own(bucket) | Purse::Shared(bucket)) = &account.purse else { return Place::Own };
        if bucket.take(now) {
            match spent[*request..].last_mut() {
                Some((last, count)) if Arc::ptr_eq(last, bucket) => *count += 1,
                _ => spent.push((Arc::clone(bucket), 1)),
            }
            return Place::Own;
        }
        let is_of_many = matches!(account.purse, Purse::Shared(_));
        if !is_of_many {
            let sort = hasher.hash_one((service, alike(event)));
            if let Some(shared) = rows.get(&sort) {
                return Place::Shared(*shared);
            }
            if account.sorts < SORTS {
                account.sorts += 1;
                rows.insert(sort, row);
                return Place::Own;
            }
        }
        let whose = if is_of_many { OTHER } else { service };
        let rest = hasher.hash_one((whose, event.category, event.kind, event.hidden));
        match rows.get(&rest) {
            Some(shared) => Place::Shared(*shared),
            None => {
                rows.insert(rest, row);
                Place::Rest { is_of_many }
            }
        }
    }

    /// A row stands for one more event, which is known by these.
    pub(super) fn fold(&mut self, row: usize, rows: &mut EventRows, identities: impl Iterator<Item = u128>) {
        rows.represent(row, 1);
        self.folded.push(row);
        self.identities.extend(identities);
    }

    /// Takes back what came after a mark; leaves the identities of events without a row, and what was spent on the record.
    pub(super) fn close(mut self, mark: FoldMark, rows: &mut EventRows) -> (Vec<u128>, Spent) {
        for row in self.folded.drain(mark.folded..) {
            rows.represent(row, -1);
        }
        Spent(self.spent.split_off(mark.spent)).give_back();
        self.identities.truncate(mark.identities);
        (self.identities, Spent(self.spent))
    }
}

/// Tokens that were taken for a record.
#[derive(Default)]
pub(super) struct Spent(Vec<(Arc<Bucket>, u64)>);

impl Spent {
    /// The record is not stored: its events will come again.
    pub(super) fn give_back(self) {
        for (bucket, count) in self.0 {
            bucket.give_back(count);
        }
    }
}

/// What events past the budget have in common when they share a row: all that counts are made by.
fn alike<'e>(event: &'e Event<'_>) -> impl std::hash::Hash + use<'e> {
    let Event { context, .. } = event;
    // Where somebody tries again and again, a session stands for the client that nobody names.
    let client = context.client.as_deref().or(context.session_id.as_deref());
    (
        (event.fingerprint, event.code.as_deref(), event.kind, event.dialect, event.hidden),
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
pub(super) fn rest_of<'e>(event: &Event<'e>, is_of_many: bool) -> Event<'e> {
    let Context { time, time_source, source, .. } = event.context;
    let service = if is_of_many { Some(OTHER.into()) } else { event.context.service.clone() };
    let name = format!("{}\u{1f}{}", service.as_deref().unwrap_or(UNKNOWN), event.category.as_str());
    Event {
        code: None,
        canonical: OTHER.into(),
        retryable: None,
        http_status: None,
        message: Some(MANY.into()),
        template: Some(MANY),
        fingerprint: xxh3_64(name.as_bytes()),
        findings: Findings::default(),
        context: Context { time, time_source, service, source, ..Context::default() },
        event_id: event.event_id,
        kind: event.kind,
        dialect: event.dialect,
        category: event.category,
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

/// The identities of events without a row, as they are kept beside the answers to requests.
pub(super) fn kept(identities: &[u128]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(KEPT.len() + 32 * identities.len() + 2);
    text.push_str(KEPT);
    for identity in identities {
        let _ = write!(text, "{identity:032x}");
    }
    text.push_str("\"}");
    text
}

/// None for the answers that are kept in the same place.
pub(super) fn from_kept(text: &str) -> Option<Vec<u128>> {
    let digits = text.strip_prefix(KEPT)?.strip_suffix("\"}")?.as_bytes();
    let identity = |digits: &[u8]| u128::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    digits.chunks(32).map(identity).collect()
}

const KEPT: &str = "{\"folded\":\"";

#[cfg(test)]
mod tests;
