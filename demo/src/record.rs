//! The description of one line: the service, the call, the response shape and the fault.
//!
//! A template is text with named slots, such as `Missing required parameter '<param>'`. The value of a slot comes from
//! the first of these that has it: the slot values of the flow that the line belongs to, the properties of the record,
//! the vocabulary. Within one record a slot always has the same value, so message and details agree.

use crate::dialect::{Fault, Shape, batch};
use crate::json_writer::JsonWriter;
use crate::random::{Random, mix};
use crate::services::Service;
use crate::timestamp::{Rfc3339Millis, Rfc3339Seconds};
use crate::vocabulary;

/// A value that all lines of a flow share.
#[derive(Clone, Copy)]
pub(crate) enum SlotValue {
    Text(&'static str),
    Number(i64),
    /// An amount in hundredths, written with two decimals.
    Cents(i64),
    /// A time in microseconds since 1970, written to the second.
    Time(i64),
    /// The secret part of a confirmation token.
    Token(u64),
}

/// The names of slots and their values.
pub(crate) type SlotValues<'a> = &'a [(&'static str, SlotValue)];

/// Everything that determines the text of a line.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) service: &'static Service,
    pub(crate) operation: &'static str,
    /// The template of the result if the operation succeeds.
    pub(crate) payload: &'static str,
    pub(crate) shape: &'static Shape,
    pub(crate) fault: &'static Fault,
    pub(crate) slot_values: SlotValues<'a>,
    pub(crate) micros: i64,
    /// The seed of every vocabulary value in this record.
    pub(crate) seed: u64,
}

impl Record<'_> {
    /// Creates a record of a random call of a service, with a random fault of the shape.
    pub(crate) fn new(
        service: &'static Service,
        shape: &'static Shape,
        random: &mut Random,
        micros: i64,
    ) -> Self {
        let fault = if shape.faults.is_empty() { &Fault::NONE } else { random.pick_weighted(shape.faults) };
        let (operation, payload) = random.pick(service.operations);
        Record {
            service,
            operation,
            payload,
            shape,
            fault,
            slot_values: &[],
            micros,
            seed: random.next_u64(),
        }
    }

    pub(crate) fn write(&self, line: &mut String) {
        self.expand(self.service.line, &mut JsonWriter::new(line));
    }

    /// Writes a template, with its slots replaced by their values.
    pub(crate) fn expand(&self, template: &str, writer: &mut JsonWriter<'_>) {
        let mut rest = template;
        while let Some((text, after)) = rest.split_once('<') {
            let (slot, tail) = after.split_once('>').unwrap_or((after, ""));
            writer.write_text(text);
            self.fill(slot, writer);
            rest = tail;
        }
        writer.write_text(rest);
    }

    fn fill(&self, slot: &str, writer: &mut JsonWriter<'_>) {
        if let Some((_, value)) = self.slot_values.iter().find(|(name, _)| *name == slot) {
            return self.write_slot_value(*value, writer);
        }
        match slot {
            "body" => self.expand(self.shape.body, writer),
            "inner" => self.expand(self.shape.inner, writer),
            "inner_as_text" => writer.write_escaped(|writer| self.expand(self.shape.inner, writer)),
            "code" => writer.write_text(self.fault.code),
            "kind" => writer.write_text(self.fault.kind),
            "message" => self.expand(self.fault.message, writer),
            "details" => self.expand(self.fault.details, writer),
            "status" => writer.write_text(self.fault.status),
            "rpc_code" => writer.write_text(self.fault.rpc_code),
            "retryable" => writer.write_display(self.fault.retryable),
            "service" => writer.write_text(self.service.name),
            "environment" => writer.write_text(self.service.environment),
            "operation" => writer.write_text(self.operation),
            "payload" => self.expand(self.payload, writer),
            "resource" => writer.write_text(self.service.resource),
            "resource_id" => self.expand(self.service.resource_id, writer),
            "time" => writer.write_display(Rfc3339Millis(self.micros)),
            "epoch_ms" => writer.write_display(self.micros / 1_000),
            "duration" => self.write_duration(writer),
            _ if batch::has_slot(slot) => batch::write(slot, self, writer),
            _ => vocabulary::write(slot, self, writer),
        }
    }

    fn write_slot_value(&self, value: SlotValue, writer: &mut JsonWriter<'_>) {
        match value {
            SlotValue::Text(text) => self.expand(text, writer),
            SlotValue::Number(number) => writer.write_display(number),
            SlotValue::Cents(cents) => {
                writer.write_display(format_args!("{}.{:02}", cents / 100, cents % 100));
            }
            SlotValue::Time(micros) => writer.write_display(Rfc3339Seconds(micros)),
            SlotValue::Token(token) => vocabulary::write_letters(token, 16, writer),
        }
    }

    /// Returns a duration that is close to log-normal: it doubles once for each of six random bits that is set.
    pub(crate) fn duration_micros(&self) -> u64 {
        let bits = mix(!self.seed);
        let doublings = (bits & 0b11_1111).count_ones();
        let jitter = 64 + (bits >> 8) % 64;
        let usual = (self.service.usual_micros << doublings) / 8 * jitter / 64;
        if self.fault.slow { TIME_LIMIT_MICROS + usual } else { usual }
    }

    /// Writes the duration in milliseconds.
    fn write_duration(&self, writer: &mut JsonWriter<'_>) {
        let micros = self.duration_micros();
        writer.write_display(format_args!("{}.{}", micros / 1_000, micros / 100 % 10));
    }
}

/// The time limit of calls that end in a timeout.
const TIME_LIMIT_MICROS: u64 = 20_000_000;
