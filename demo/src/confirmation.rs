//! Confirmations, told over many lines: a token is issued because an operation is dangerous, a person grants it, it
//! is redeemed, and now and then somebody tries it again or too late.
//!
//! Several stories run at once. Every line of one story names the same service, operation, user and token; a token
//! is only ever redeemed after it was granted and before it expires.

use crate::dialect::{Fault, Shape, failure, fault, mcp_aql};
use crate::random::{Random, mix};
use crate::record::{Fact, Facts, Record};
use crate::services::{DEPOT, LEDGER, Service, TRACKER};
use Step::{Expire, Grant, Invalid, Issue, Mismatch, Redeem, Replay, Require, Revoke};

#[cfg(test)]
mod tests;

/// How many stories run at once.
const OPEN: usize = 12;

/// How long a token lives.
const LIFETIME_MICROS: i64 = 45_000_000;

/// One line of a story.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Issue,
    Require,
    Grant,
    Redeem,
    Replay,
    Mismatch,
    Invalid,
    Revoke,
    /// Comes no sooner than the token has expired.
    Expire,
}

/// How stories go; the more usual ones stand there more than once.
const SCRIPTS: &[&[Step]] = &[
    &[Issue, Require, Grant, Redeem],
    &[Issue, Require, Grant, Redeem],
    &[Issue, Require, Grant, Redeem],
    &[Issue, Require, Grant, Redeem, Replay],
    &[Issue, Require, Grant, Redeem, Replay, Replay],
    &[Issue, Require, Grant, Mismatch, Redeem],
    &[Issue, Require, Revoke],
    &[Issue, Require, Revoke, Invalid],
    &[Issue, Require, Expire],
];

/// An operation that nobody may run unasked.
struct Danger {
    service: &'static Service,
    operation: &'static str,
    level: &'static str,
    reason: &'static str,
    question: &'static str,
    /// Whether the confirmation stands beside the error too.
    beside: bool,
}

const DANGERS: &[Danger] = &[
    Danger {
        service: &TRACKER,
        operation: "purge_project",
        level: "destructive",
        reason: "Removes every ticket of the project",
        question: "Purge the project of '<tenant>'?",
        beside: true,
    },
    Danger {
        service: &LEDGER,
        operation: "issue_refund",
        level: "dangerous",
        reason: "Pays out money",
        question: "Refund '<resource_id>' in full?",
        beside: false,
    },
    Danger {
        service: &LEDGER,
        operation: "close_period",
        level: "destructive",
        reason: "Cannot be reopened",
        question: "Close the period of '<tenant>'?",
        beside: false,
    },
    Danger {
        service: &DEPOT,
        operation: "write_off_stock",
        level: "dangerous",
        reason: "Touches many bins at once",
        question: "Write off '<count>' items?",
        beside: true,
    },
];

/// A story and how far it has come.
#[derive(Debug, Clone)]
struct Story {
    seed: u64,
    script: &'static [Step],
    issued_at: i64,
    redeemed_at: Option<i64>,
}

/// The stories that run now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Confirmations {
    slots: [Option<Story>; OPEN],
}

impl Confirmations {
    /// Writes the next line of some story, or the first of a new one.
    pub(crate) fn write(&mut self, random: &mut Random, micros: i64, line: &mut String) {
        let slot = self.next_slot(random, micros);
        let story = self.slots[slot].get_or_insert_with(|| Story::begin(random, micros));
        let step = story.advance(micros);
        story.write(step, random, micros, line);
        if story.script.is_empty() {
            self.slots[slot] = None;
        }
    }

    /// A slot that has something to tell; if all wait, any is given up for a new story.
    fn next_slot(&mut self, random: &mut Random, micros: i64) -> usize {
        let first = random.below(OPEN as u64) as usize;
        let mut in_turn = (0..OPEN).map(|step| (first + step) % OPEN);
        let waits = |slot: &Option<Story>| slot.as_ref().is_some_and(|story| story.waits(micros));
        in_turn.find(|&slot| !waits(&self.slots[slot])).unwrap_or_else(|| {
            self.slots[first] = None;
            first
        })
    }
}

impl Story {
    fn begin(random: &mut Random, micros: i64) -> Self {
        Self { seed: random.draw(), script: random.pick(SCRIPTS), issued_at: micros, redeemed_at: None }
    }

    fn waits(&self, micros: i64) -> bool {
        self.script.first() == Some(&Expire) && !self.expired(micros)
    }

    fn expired(&self, micros: i64) -> bool {
        micros >= self.expires_at()
    }

    fn expires_at(&self) -> i64 {
        self.issued_at + LIFETIME_MICROS
    }

    fn danger(&self) -> &'static Danger {
        &DANGERS[(mix(self.seed) % DANGERS.len() as u64) as usize]
    }

    /// The next step of the script; a token that expired unused ends the story there.
    fn advance(&mut self, micros: i64) -> Step {
        let (&step, rest) = self.script.split_first().unwrap_or((&Expire, &[]));
        self.script = rest;
        if self.expired(micros) && self.redeemed_at.is_none() {
            self.script = &[];
            return Expire;
        }
        if step == Redeem {
            self.redeemed_at = Some(micros);
        }
        step
    }

    fn write(&self, step: Step, random: &mut Random, micros: i64, line: &mut String) {
        let danger = self.danger();
        let facts: Facts<'_> = &[
            ("token", Fact::Token(self.seed)),
            ("who", Fact::Text(r#","user":"<user>""#)),
            ("user_number", Fact::Number((self.seed % 160) as i64 + 1)),
            ("danger_level", Fact::Text(danger.level)),
            ("danger_reason", Fact::Text(danger.reason)),
            ("question", Fact::Text(danger.question)),
            ("expires", Fact::Time(self.expires_at())),
            ("now", Fact::Time(micros)),
            ("redeemed", Fact::Time(self.redeemed_at.unwrap_or(micros))),
        ];
        let (shape, fault) = self.told_as(step);
        let record = Record::new(danger.service, shape, random, micros);
        Record { operation: danger.operation, fault, facts, ..record }.write(line);
    }

    fn told_as(&self, step: Step) -> (&'static Shape, &'static Fault) {
        let danger = self.danger();
        let usual = &danger.service.dialect.failures[0];
        match step {
            Issue => (&AUDIT, &ISSUED),
            Grant => (&AUDIT, &GRANTED),
            Redeem => (&AUDIT, &VALIDATED),
            Revoke => (&AUDIT, &REVOKED),
            Require if danger.beside => (&mcp_aql::CONFIRMABLE, &REQUIRED),
            Require => (usual, &REQUIRED),
            Replay => (usual, &ALREADY_USED),
            Mismatch => (usual, &SCOPE_MISMATCH),
            Invalid => (usual, &INVALID),
            Expire => (usual, &EXPIRED),
        }
    }
}

static AUDIT: Shape = failure(1, r#""event":"<code>","audit":true,<details>"#, &[]);

static ISSUED: Fault = fault(
    1,
    "TOKEN_ISSUED",
    "",
    r#""confirmation_token":"conf_<token>","expires_at":"<expires>","danger_level":"<danger_level>""#,
);
static GRANTED: Fault = fault(
    1,
    "CONFIRMATION_GRANTED",
    "",
    r#""confirmation_token":"conf_<token>","granted_by":"<user>","channel":"console""#,
);
static VALIDATED: Fault = fault(
    1,
    "TOKEN_VALIDATED",
    "",
    r#""confirmation_token":"conf_<token>","redeemed_by":"<user>","redeemed_at":"<redeemed>""#,
);
static REVOKED: Fault = fault(
    1,
    "TOKEN_REVOKED",
    "",
    r#""confirmation_token":"conf_<token>","revoked_by":"<user>","reason":"withdrawn by the requester""#,
);

static REQUIRED: Fault = fault(
    1,
    "CONFIRMATION_REQUIRED",
    "This operation requires confirmation",
    r#"{"operation":"<operation>","danger_level":"<danger_level>","reasons":["<danger_reason>"],"confirmation_message":"<question>","confirmation_token":"conf_<token>","expires_at":"<expires>"}"#,
);
static ALREADY_USED: Fault = fault(
    1,
    "TOKEN_ALREADY_USED",
    "Confirmation token has already been used",
    r#"{"token":"conf_<token>","consumed_at":"<redeemed>"}"#,
);
static SCOPE_MISMATCH: Fault = fault(
    1,
    "TOKEN_SCOPE_MISMATCH",
    "Confirmation token scope mismatch",
    r#"{"token":"conf_<token>","token_operation":"<operation>","requested_operation":"export_everything"}"#,
);
static INVALID: Fault =
    fault(1, "TOKEN_INVALID", "Invalid confirmation token", r#"{"token":"conf_<token>"}"#);
static EXPIRED: Fault = fault(
    1,
    "TOKEN_EXPIRED",
    "Confirmation token has expired",
    r#"{"token":"conf_<token>","expired_at":"<expires>","current_time":"<now>"}"#,
);
