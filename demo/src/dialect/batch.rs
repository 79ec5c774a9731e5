//! Batches: several operations in one answer, some of which failed.
//!
//! A batch is drawn from its record's seed, so its summary and its items agree. In a record without a fault every
//! item succeeds; otherwise at least one fails and at least one does not.

use crate::ink::Ink;
use crate::random::Random;
use crate::record::Record;

/// How many items there are, and which of them failed (one bit each).
struct Batch {
    total: u64,
    failures: u64,
}

/// Whether a slot is about a batch.
pub(crate) fn fills(slot: &str) -> bool {
    matches!(slot, "results" | "errors" | "summary" | "total" | "failed")
}

/// Writes what stands in a slot about a batch.
pub(crate) fn write(slot: &str, record: &Record<'_>, ink: &mut Ink<'_>) {
    let batch = Batch::of(record);
    match slot {
        "results" => batch.write_items(record, ink, RESULT_GOOD, RESULT_BAD),
        "errors" => batch.write_items(record, ink, LEFT_OUT, ERROR),
        "summary" => batch.write_summary(ink),
        "total" => ink.show(batch.total),
        _ => ink.show(batch.failed()),
    }
}

const LEFT_OUT: &str = "";
const RESULT_GOOD: &str = r#""operation":"<operation>","result":{"success":true,"data":<payload>}}"#;
const RESULT_BAD: &str = r#""operation":"<operation>","result":{"success":false,"error":{"code":"<code>","message":"<message>","details":<details>}}}"#;
const ERROR: &str = r#""code":"<code>","message":"<message>"}"#;

impl Batch {
    fn of(record: &Record<'_>) -> Self {
        let mut random = Random::new(record.seed);
        let total = 2 + random.below(3);
        let all = (1 << total) - 1;
        let failures = if record.fault.code.is_empty() { 0 } else { 1 + random.below(all - 1) };
        Self { total, failures }
    }

    fn failed(&self) -> u32 {
        self.failures.count_ones()
    }

    fn write_summary(&self, ink: &mut Ink<'_>) {
        let (total, failed) = (self.total, u64::from(self.failed()));
        let succeeded = total - failed;
        ink.show(format_args!(r#""total":{total},"succeeded":{succeeded},"failed":{failed}"#));
    }

    /// Writes the items, each from a record of its own.
    fn write_items(&self, record: &Record<'_>, ink: &mut Ink<'_>, good: &str, bad: &str) {
        let mut separator = "{";
        for index in 0..self.total {
            let failed = (self.failures >> index) & 1 == 1;
            let template = if failed { bad } else { good };
            if template != LEFT_OUT {
                ink.text(separator);
                ink.show(format_args!(r#""index":{index},"#));
                item(record, index).expand(template, ink);
                separator = ",{";
            }
        }
    }
}

fn item(record: &Record<'_>, index: u64) -> Record<'static> {
    let mut random = Random::new(record.seed.wrapping_add(1 + index));
    Record::new(record.service, record.shape, &mut random, record.micros)
}
