//! One line before it is written: who answers which call, in which shape, with which fault.
//!
//! A template is text with named slots, such as `Missing required parameter '<param>'`. What stands in a slot is, in
//! this order: a fact of the story that the line belongs to, a property of the record, a word of the vocabulary.
//! Within one record a slot always has one value, so message and details agree without anyone passing values around.

use crate::clock::{Millis, Seconds};
use crate::dialect::{Fault, Shape, batch};
use crate::ink::Ink;
use crate::random::{Random, mix};
use crate::services::Service;
use crate::vocabulary;

/// What a story knows and a line must repeat.
#[derive(Clone, Copy)]
pub(crate) enum Fact {
    Text(&'static str),
    Number(i64),
    /// Hundredths, written with two decimals.
    Cents(i64),
    /// Microseconds since 1970, written to the second.
    Time(i64),
    /// The secret part of a confirmation token.
    Token(u64),
}

/// A slot's name and what stands there.
pub(crate) type Facts<'a> = &'a [(&'static str, Fact)];

/// Everything that decides the text of a line.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) service: &'static Service,
    pub(crate) operation: &'static str,
    /// What the operation returns when it succeeds.
    pub(crate) payload: &'static str,
    pub(crate) shape: &'static Shape,
    pub(crate) fault: &'static Fault,
    pub(crate) facts: Facts<'a>,
    pub(crate) micros: i64,
    /// Decides every word of the vocabulary in this record.
    pub(crate) seed: u64,
}

impl Record<'_> {
    /// A call that this service answers in this shape, with any fault that fits it.
    pub(crate) fn new(
        service: &'static Service,
        shape: &'static Shape,
        random: &mut Random,
        micros: i64,
    ) -> Self {
        let fault = if shape.faults.is_empty() { &Fault::NONE } else { random.pick_weighted(shape.faults) };
        let (operation, payload) = random.pick(service.operations);
        Record { service, operation, payload, shape, fault, facts: &[], micros, seed: random.draw() }
    }

    pub(crate) fn write(&self, line: &mut String) {
        self.expand(self.service.line, &mut Ink::new(line));
    }

    /// Writes a template with its slots filled.
    pub(crate) fn expand(&self, template: &str, ink: &mut Ink<'_>) {
        let mut rest = template;
        while let Some((text, after)) = rest.split_once('<') {
            let (slot, tail) = after.split_once('>').unwrap_or((after, ""));
            ink.text(text);
            self.fill(slot, ink);
            rest = tail;
        }
        ink.text(rest);
    }

    fn fill(&self, slot: &str, ink: &mut Ink<'_>) {
        if let Some((_, fact)) = self.facts.iter().find(|(name, _)| *name == slot) {
            return self.write_fact(*fact, ink);
        }
        match slot {
            "body" => self.expand(self.shape.body, ink),
            "inner" => self.expand(self.shape.inner, ink),
            "inner_as_text" => ink.quoted(|ink| self.expand(self.shape.inner, ink)),
            "code" => ink.text(self.fault.code),
            "kind" => ink.text(self.fault.kind),
            "message" => self.expand(self.fault.message, ink),
            "details" => self.expand(self.fault.details, ink),
            "status" => ink.text(self.fault.status),
            "rpc_code" => ink.text(self.fault.rpc_code),
            "retryable" => ink.show(self.fault.retryable),
            "service" => ink.text(self.service.name),
            "environment" => ink.text(self.service.environment),
            "operation" => ink.text(self.operation),
            "payload" => self.expand(self.payload, ink),
            "resource" => ink.text(self.service.resource),
            "resource_id" => self.expand(self.service.resource_id, ink),
            "time" => ink.show(Millis(self.micros)),
            "epoch_ms" => ink.show(self.micros / 1_000),
            "duration" => self.write_duration(ink),
            _ if batch::fills(slot) => batch::write(slot, self, ink),
            _ => vocabulary::write(slot, self, ink),
        }
    }

    fn write_fact(&self, fact: Fact, ink: &mut Ink<'_>) {
        match fact {
            Fact::Text(text) => self.expand(text, ink),
            Fact::Number(number) => ink.show(number),
            Fact::Cents(cents) => ink.show(format_args!("{}.{:02}", cents / 100, cents % 100)),
            Fact::Time(micros) => ink.show(Seconds(micros)),
            Fact::Token(token) => vocabulary::write_letters(token, 16, ink),
        }
    }

    /// Milliseconds, log-normal in all but name: how many of six bits are set decides how often the time doubles.
    fn write_duration(&self, ink: &mut Ink<'_>) {
        let bits = mix(!self.seed);
        let doublings = (bits & 0b11_1111).count_ones();
        let jitter = 64 + (bits >> 8) % 64;
        let usual = (self.service.usual_micros << doublings) / 8 * jitter / 64;
        let micros = if self.fault.slow { TIME_LIMIT_MICROS + usual } else { usual };
        ink.show(format_args!("{}.{}", micros / 1_000, micros / 100 % 10));
    }
}

/// How long a call may take that ends in a timeout.
const TIME_LIMIT_MICROS: u64 = 20_000_000;
