//! Restores what the metrics would lose in a restart: the known services, and the known groups of errors.
//!
//! They are read from the store in the background: counting begins at once, and only new groups have to wait.

use super::Metrics;
use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use classifier::Dialect;
use std::ops::ControlFlow;
use std::sync::Arc;
use store::Table;
use store::delta::{DeltaError, DeltaTables};
use store::hot::BufferedRecord;

/// The time within which a service must have sent traffic to be registered, in microseconds.
const SERVICE_HISTORY_US: i64 = 24 * 3_600_000_000;
/// The time within which a group must have been seen to be known, in microseconds.
const GROUP_HISTORY_US: i64 = 14 * 24 * 3_600_000_000;
/// The number of rows that are read of each table; the newest come first.
const MAX_ROWS: usize = 5_000_000;

impl Metrics {
    /// Loads the services and groups that the store held at startup.
    fn load(&self, records: Vec<Arc<BufferedRecord>>, delta: Option<&DeltaTables>, now: i64) {
        for record in records {
            for table in [Table::Traffic, Table::Events] {
                if let Ok(Some(rows)) = record.batch(table) {
                    self.load_rows(&rows);
                }
            }
        }
        match delta.map_or(Ok(()), |delta| self.load_flushed(delta, now)) {
            Ok(()) => {
                let mut registry = self.current();
                for service in registry.groups.finish_warmup() {
                    registry.count_new_group(&service);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "the groups of errors of the first minutes may count as new");
                self.current().groups.abandon_warmup();
            }
        }
    }

    fn load_flushed(&self, delta: &DeltaTables, now: i64) -> Result<(), DeltaError> {
        // Events are read first, before a flush adds a file with groups that are only now new.
        self.load_table(delta, Table::Events, "time", now - GROUP_HISTORY_US, &["fingerprint"])?;
        self.load_table(delta, Table::Traffic, "minute", now - SERVICE_HISTORY_US, &["service", "dialect"])
    }

    fn load_table(
        &self,
        delta: &DeltaTables,
        table: Table,
        time: &str,
        since: i64,
        columns: &[&str],
    ) -> Result<(), DeltaError> {
        let mut left = MAX_ROWS;
        let mut visit = |rows: RecordBatch| {
            self.load_rows(&rows);
            left = left.saturating_sub(rows.num_rows());
            if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        delta.rows_since(table, time, since, columns, &mut visit)
    }

    fn load_rows(&self, rows: &RecordBatch) {
        // The columns are dictionaries in the WAL and plain strings in the tables.
        let texts = |name| cast(rows.column_by_name(name)?, &DataType::Utf8).ok();
        let mut registry = self.lock();
        if let Some((services, dialects)) = texts("service").zip(texts("dialect")) {
            let mut last = None;
            for pair in texts_of(&services).zip(texts_of(&dialects)) {
                if let (Some(service), Some(dialect)) = pair
                    && last != Some((service, dialect))
                {
                    registry.register_service(service, Dialect::from_name(dialect));
                    last = Some((service, dialect));
                }
            }
        }
        if let Some(groups) = texts("fingerprint") {
            for group in texts_of(&groups).flatten().filter_map(|group| u64::from_str_radix(group, 16).ok()) {
                registry.groups.insert(group);
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

/// Starts loading in the background; shutdown does not wait for it.
///
/// # Errors
/// Returns an error if the thread cannot be started.
pub(crate) fn start(
    metrics: Arc<Metrics>,
    records: Vec<Arc<BufferedRecord>>,
    delta: Option<Arc<DeltaTables>>,
    now: i64,
) -> std::io::Result<()> {
    let load = move || metrics.load(records, delta.as_deref(), now);
    std::thread::Builder::new().name("metrics".to_owned()).spawn(load).map(drop)
}
