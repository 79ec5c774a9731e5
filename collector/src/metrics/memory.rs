//! What a restart would forget: which services there are, and which groups of errors are known.
//!
//! Read from the store, in the background: counting begins at once, and only news has to wait for it.

use super::Metrics;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use std::ops::ControlFlow;
use std::sync::Arc;
use store::Table;
use store::hot::HotRecord;
use store::lake::{Lake, LakeError};
use taxonomy::Dialect;

/// A service that has said nothing for so long need not be expected, in microseconds.
const SERVICES_FROM: i64 = 24 * 3_600_000_000;
/// A group that was not seen for so long is news, in microseconds.
const GROUPS_FROM: i64 = 14 * 24 * 3_600_000_000;
/// But no more than so many of the newest rows are looked at.
const ROWS: usize = 5_000_000;

impl Metrics {
    /// Remembers what the store held at the start.
    fn remember(&self, records: Vec<Arc<HotRecord>>, lake: Option<&Lake>, now: i64) {
        for record in records {
            for table in [Table::Traffic, Table::Events] {
                if let Ok(Some(rows)) = record.batch(table) {
                    self.remember_rows(&rows);
                }
            }
        }
        match lake.map_or(Ok(()), |lake| self.remember_sealed(lake, now)) {
            Ok(()) => {
                let mut meter = self.current();
                for service in meter.groups.judge() {
                    meter.count_new_group(&service);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "which groups of errors are new cannot be told for those of the first moments");
                self.current().groups.give_up();
            }
        }
    }

    fn remember_sealed(&self, lake: &Lake, now: i64) -> Result<(), LakeError> {
        // First, before a file is added that holds what is only now new.
        self.remember_table(lake, Table::Events, "time", now - GROUPS_FROM, &["fingerprint"])?;
        self.remember_table(lake, Table::Traffic, "minute", now - SERVICES_FROM, &["service", "dialect"])
    }

    fn remember_table(
        &self,
        lake: &Lake,
        table: Table,
        time: &str,
        since: i64,
        columns: &[&str],
    ) -> Result<(), LakeError> {
        let mut left = ROWS;
        let mut visit = |rows: RecordBatch| {
            self.remember_rows(&rows);
            left = left.saturating_sub(rows.num_rows());
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        lake.rows_since(table, time, since, columns, &mut visit)
    }

    fn remember_rows(&self, rows: &RecordBatch) {
        // Dictionaries in the log, plain in the tables.
        let texts = |name| cast(rows.column_by_name(name)?, &DataType::Utf8).ok();
        let mut meter = self.lock();
        if let Some((services, dialects)) = texts("service").zip(texts("dialect")) {
            let mut last = None;
            for pair in texts_of(&services).zip(texts_of(&dialects)) {
                if let (Some(service), Some(dialect)) = pair
                    && last != Some((service, dialect))
                {
                    meter.meet(service, Dialect::from_word(dialect));
                    last = Some((service, dialect));
                }
            }
        }
        if let Some(groups) = texts("fingerprint") {
            for group in texts_of(&groups).flatten().filter_map(|group| u64::from_str_radix(group, 16).ok()) {
                meter.groups.remember(group);
            }
        }
    }
}

fn texts_of(texts: &ArrayRef) -> impl Iterator<Item = Option<&str>> {
    let texts = texts.as_string_opt::<i32>();
    texts
        .into_iter()
        .flat_map(|texts| (0..texts.len()).map(|row| texts.is_valid(row).then(|| texts.value(row))))
}

/// Starts to remember; whoever stops does not wait for it.
///
/// # Errors
/// When there is no thread.
pub(crate) fn remember(
    metrics: Arc<Metrics>,
    records: Vec<Arc<HotRecord>>,
    lake: Option<Arc<Lake>>,
    now: i64,
) -> std::io::Result<()> {
    let remember = move || metrics.remember(records, lake.as_deref(), now);
    std::thread::Builder::new().name("metrics".to_owned()).spawn(remember).map(drop)
}
