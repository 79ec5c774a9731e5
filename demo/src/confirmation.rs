//! Confirmation flows over many lines: a token is issued because an operation is dangerous, a user grants it, it is
//! redeemed, and occasionally it is used again or too late.
//!
//! Several flows run at once. Every line of one flow names the same service, operation, user and token; a token is
//! only redeemed after it was granted and before it expires.

use crate::dialect::{Fault, Shape, failure, fault, mcp_aql, mcp_aql_faults};
use crate::random::{Random, mix};
use crate::record::{Record, SlotValue, SlotValues};
use crate::services::{DEPOT, LEDGER, Service, TRACKER};
use Step::{Expire, Grant, Invalid, Issue, Mismatch, Redeem, Replay, Require, Revoke};

#[cfg(test)]
mod tests;

/// The number of flows that run at once.
const MAX_FLOWS: usize = 12;

/// The lifetime of a token, in microseconds.
const LIFETIME_MICROS: i64 = 45_000_000;

/// One line of a flow.
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
    /// This step waits until the token has expired.
    Expire,
}

/// The possible flows; the usual ones are listed more than once.
const FLOWS: &[&[Step]] = &[
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

/// An operation that requires a confirmation.
struct DangerousOperation {
    service: &'static Service,
    operation: &'static str,
    level: &'static str,
    reason: &'static str,
    question: &'static str,
    /// True if the confirmation is also sent as a sibling of the error.
    beside_error: bool,
}

const DANGEROUS_OPERATIONS: &[DangerousOperation] = &[
    DangerousOperation {
        service: &TRACKER,
        operation: "purge_project",
        level: "destructive",
        reason: "Removes every ticket of the project",
        question: "Purge the project of '<tenant>'?",
        beside_error: true,
    },
    DangerousOperation {
        service: &LEDGER,
        operation: "issue_refund",
        level: "dangerous",
        reason: "Pays out money",
        question: "Refund '<resource_id>' in full?",
        beside_error: false,
    },
    DangerousOperation {
        service: &LEDGER,
        operation: "close_period",
        level: "destructive",
        reason: "Cannot be reopened",
        question: "Close the period of '<tenant>'?",
        beside_error: false,
    },
    DangerousOperation {
        service: &DEPOT,
        operation: "write_off_stock",
        level: "dangerous",
        reason: "Touches many bins at once",
        question: "Write off '<count>' items?",
        beside_error: true,
    },
];

/// A running flow.
#[derive(Debug, Clone)]
struct Flow {
    seed: u64,
    remaining_steps: &'static [Step],
    issued_at: i64,
    redeemed_at: Option<i64>,
}

/// Returns the lines of a whole flow, each with its time. With `is_denied`, the operation is first denied because of
/// insufficient trust, and the confirmation is requested a few seconds later.
pub(crate) fn story(random: &mut Random, micros: i64, is_denied: bool) -> Vec<(i64, String)> {
    let mut lines = Vec::new();
    let mut flow = Flow::start(random, micros);
    if is_denied {
        let mut line = String::new();
        flow.write_denial(random, micros, &mut line);
        lines.push((micros, line));
        flow.issued_at += 2_000_000 + random.below(6_000_000) as i64;
    }
    lines.extend(flow.lines(random));
    lines
}

/// The running flows.
#[derive(Debug, Clone, Default)]
pub(crate) struct Confirmations {
    slots: [Option<Flow>; MAX_FLOWS],
}

impl Confirmations {
    /// Writes the next line of a random flow, or the first line of a new one.
    pub(crate) fn write(&mut self, random: &mut Random, micros: i64, line: &mut String) {
        let slot = self.next_slot(random, micros);
        let flow = self.slots[slot].get_or_insert_with(|| Flow::start(random, micros));
        let step = flow.advance(micros);
        flow.write(step, random, micros, line);
        if flow.remaining_steps.is_empty() {
            self.slots[slot] = None;
        }
    }

    /// Returns a slot that is free or whose flow does not wait. If all wait, one flow is dropped for a new one.
    fn next_slot(&mut self, random: &mut Random, micros: i64) -> usize {
        let first = random.below(MAX_FLOWS as u64) as usize;
        let mut slots = (0..MAX_FLOWS).map(|step| (first + step) % MAX_FLOWS);
        let is_waiting = |slot: &Option<Flow>| slot.as_ref().is_some_and(|flow| flow.is_waiting(micros));
        slots.find(|&slot| !is_waiting(&self.slots[slot])).unwrap_or_else(|| {
            self.slots[first] = None;
            first
        })
    }
}

impl Flow {
    fn start(random: &mut Random, micros: i64) -> Self {
        Self {
            seed: random.next_u64(),
            remaining_steps: random.pick(FLOWS),
            issued_at: micros,
            redeemed_at: None,
        }
    }

    /// Returns all lines of a flow that starts at this time, each with its time.
    fn lines(mut self, random: &mut Random) -> Vec<(i64, String)> {
        let mut micros = self.issued_at;
        let mut lines = Vec::new();
        for step in self.remaining_steps {
            micros = match step {
                Issue => micros,
                Require => micros + 40_000,
                Expire => self.expires_at() + 1_000_000,
                Grant => micros + 4_000_000 + random.below(14_000_000) as i64,
                Redeem | Replay | Mismatch | Invalid | Revoke => {
                    micros + 1_000_000 + random.below(4_000_000) as i64
                }
            };
            if *step == Redeem {
                self.redeemed_at = Some(micros);
            }
            let mut line = String::new();
            self.write(*step, random, micros, &mut line);
            lines.push((micros, line));
            if *step == Redeem {
                micros += 50_000;
                let mut line = String::new();
                self.write_success(random, micros, &mut line);
                lines.push((micros, line));
            }
        }
        lines
    }

    /// Writes the reply of the operation after the token was redeemed.
    fn write_success(&self, random: &mut Random, micros: i64, line: &mut String) {
        let dangerous = self.dangerous_operation();
        let slot_values: SlotValues<'_> = &self.user();
        let shape = random.pick_weighted(dangerous.service.dialect.successes);
        let record = Record::new(dangerous.service, shape, random, micros);
        let (operation, payload) = (dangerous.operation, r#"{"done":true}"#);
        Record { operation, payload, slot_values, ..record }.write(line);
    }

    /// Returns the slots that name the user.
    fn user(&self) -> [(&'static str, SlotValue); 2] {
        [
            ("who", SlotValue::Text(r#","user":"<user>""#)),
            ("user_number", SlotValue::Number((self.seed % 160) as i64 + 1)),
        ]
    }

    /// Writes the denial after which a confirmation is requested.
    fn write_denial(&self, random: &mut Random, micros: i64, line: &mut String) {
        let dangerous = self.dangerous_operation();
        let slot_values: SlotValues<'_> = &self.user();
        let shape = &dangerous.service.dialect.failures[0];
        let record = Record::new(dangerous.service, shape, random, micros);
        let fault = random.pick(&mcp_aql_faults::TRUST_DENIALS);
        Record { operation: dangerous.operation, fault, slot_values, ..record }.write(line);
    }

    fn is_waiting(&self, micros: i64) -> bool {
        self.remaining_steps.first() == Some(&Expire) && !self.has_expired(micros)
    }

    fn has_expired(&self, micros: i64) -> bool {
        micros >= self.expires_at()
    }

    fn expires_at(&self) -> i64 {
        self.issued_at + LIFETIME_MICROS
    }

    fn dangerous_operation(&self) -> &'static DangerousOperation {
        let index = mix(self.seed) % DANGEROUS_OPERATIONS.len() as u64;
        &DANGEROUS_OPERATIONS[index as usize]
    }

    /// Returns the next step. When the token has expired unused, the flow ends there.
    fn advance(&mut self, micros: i64) -> Step {
        let (&step, rest) = self.remaining_steps.split_first().unwrap_or((&Expire, &[]));
        self.remaining_steps = rest;
        if self.has_expired(micros) && self.redeemed_at.is_none() {
            self.remaining_steps = &[];
            return Expire;
        }
        if step == Redeem {
            self.redeemed_at = Some(micros);
        }
        step
    }

    fn write(&self, step: Step, random: &mut Random, micros: i64, line: &mut String) {
        let dangerous = self.dangerous_operation();
        let slot_values: SlotValues<'_> = &[
            ("token", SlotValue::Token(self.seed)),
            ("who", SlotValue::Text(r#","user":"<user>""#)),
            ("user_number", SlotValue::Number((self.seed % 160) as i64 + 1)),
            ("danger_level", SlotValue::Text(dangerous.level)),
            ("danger_reason", SlotValue::Text(dangerous.reason)),
            ("question", SlotValue::Text(dangerous.question)),
            ("expires", SlotValue::Time(self.expires_at())),
            ("now", SlotValue::Time(micros)),
            ("redeemed", SlotValue::Time(self.redeemed_at.unwrap_or(micros))),
        ];
        let (shape, fault) = self.shape_and_fault(step);
        let record = Record::new(dangerous.service, shape, random, micros);
        Record { operation: dangerous.operation, fault, slot_values, ..record }.write(line);
    }

    fn shape_and_fault(&self, step: Step) -> (&'static Shape, &'static Fault) {
        let dangerous = self.dangerous_operation();
        let usual = &dangerous.service.dialect.failures[0];
        match step {
            Issue => (&AUDIT, &ISSUED),
            Grant => (&AUDIT, &GRANTED),
            Redeem => (&AUDIT, &VALIDATED),
            Revoke => (&AUDIT, &REVOKED),
            Require if dangerous.beside_error => (&mcp_aql::CONFIRMABLE, &REQUIRED),
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
