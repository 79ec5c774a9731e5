//! Batches: several operations in one response, some of which failed.
//!
//! A batch is derived from its record's seed, so its summary and its items agree. In a record without a fault
//! every item succeeds; otherwise at least one fails and at least one succeeds.

use crate::json_writer::JsonWriter;
use crate::random::Random;
use crate::record::Record;

/// The number of items, and a bit for each failed one.
struct Batch {
    total: u64,
    failed_bits: u64,
}

/// Returns true for a slot that this module fills.
pub(crate) fn has_slot(slot: &str) -> bool {
    matches!(slot, "results" | "errors" | "summary" | "total" | "failed")
}

/// Writes the value of a batch slot.
pub(crate) fn write(slot: &str, record: &Record<'_>, writer: &mut JsonWriter<'_>) {
    let batch = Batch::from_record(record);
    match slot {
        "results" => batch.write_items(record, writer, SUCCEEDED_RESULT, FAILED_RESULT),
        "errors" => batch.write_items(record, writer, SKIPPED, ERROR),
        "summary" => batch.write_summary(writer),
        "total" => writer.write_display(batch.total),
        _ => writer.write_display(batch.failed_count()),
    }
}

const SKIPPED: &str = "";
const SUCCEEDED_RESULT: &str = r#""operation":"<operation>","result":{"success":true,"data":<payload>}}"#;
const FAILED_RESULT: &str = r#""operation":"<operation>","result":{"success":false,"error":{"code":"<code>","message":"<message>","details":<details>}}}"#;
const ERROR: &str = r#""code":"<code>","message":"<message>"}"#;

impl Batch {
    fn from_record(record: &Record<'_>) -> Self {
        let mut random = Random::new(record.seed);
        let total = 2 + random.below(3);
        let all = (1 << total) - 1;
        let failed_bits = if record.fault.code.is_empty() { 0 } else { 1 + random.below(all - 1) };
        Self { total, failed_bits }
    }

    fn failed_count(&self) -> u32 {
        self.failed_bits.count_ones()
    }

    fn write_summary(&self, writer: &mut JsonWriter<'_>) {
        let (total, failed) = (self.total, u64::from(self.failed_count()));
        let succeeded = total - failed;
        writer.write_display(format_args!(r#""total":{total},"succeeded":{succeeded},"failed":{failed}"#));
    }

    /// Writes the items, each from its own record.
    fn write_items(&self, record: &Record<'_>, writer: &mut JsonWriter<'_>, succeeded: &str, failed: &str) {
        let mut separator = "{";
        for index in 0..self.total {
            let is_failed = (self.failed_bits >> index) & 1 == 1;
            let template = if is_failed { failed } else { succeeded };
            if template != SKIPPED {
                writer.write_text(separator);
                writer.write_display(format_args!(r#""index":{index},"#));
                item(record, index).expand(template, writer);
                separator = ",{";
            }
        }
    }
}

fn item(record: &Record<'_>, index: u64) -> Record<'static> {
    let mut random = Random::new(record.seed.wrapping_add(1 + index));
    Record::new(record.service, record.shape, &mut random, record.micros)
}
