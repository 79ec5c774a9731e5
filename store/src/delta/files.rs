//! The state of a table at one version: its files, and the part of the WAL that they hold.

use super::statistics::Statistics;
use crate::schema::Table;
use deltalake_core::kernel::{Action, Add, LogicalFileView, Remove};
use std::collections::HashMap;
use std::sync::Arc;

/// One file of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct DataFile {
    /// The path of the file below the table's folder.
    pub path: String,
    /// The length of the file.
    pub bytes: u64,
    /// The partition: days since 1970.
    pub day: i32,
    /// The time when it was written, in milliseconds since 1970.
    pub written_at: i64,
    /// The statistics of its rows.
    pub statistics: Statistics,
}

/// A table at one version.
#[derive(Debug, Clone)]
pub struct Files {
    /// The table.
    pub table: Table,
    /// The version.
    pub version: u64,
    /// All records of the WAL up to this sequence are in these files.
    pub flushed: u64,
    /// The files, in no particular order.
    pub files: Vec<Arc<DataFile>>,
}

impl DataFile {
    /// Reads a file from its entry in the Delta log.
    pub(super) fn of_log(view: &LogicalFileView) -> Self {
        let partition = view.partition_values_map().remove(super::layout::PARTITION).flatten();
        Self {
            path: view.path().into_owned(),
            bytes: view.size().unsigned_abs(),
            day: partition.as_deref().and_then(day_of).unwrap_or_default(),
            written_at: view.modification_time(),
            statistics: view.stats().as_deref().map(Statistics::from_json).unwrap_or_default(),
        }
    }

    fn partition(&self) -> HashMap<String, Option<String>> {
        HashMap::from([(super::layout::PARTITION.to_owned(), Some(date_of(self.day)))])
    }

    /// Returns the action that adds the file. `is_new` is false when its rows come from other files of the table.
    pub(super) fn add(&self, is_new: bool) -> Action {
        Action::Add(Add {
            path: self.path.clone(),
            partition_values: self.partition(),
            size: self.bytes.cast_signed(),
            modification_time: self.written_at,
            data_change: is_new,
            stats: Some(self.statistics.to_json()),
            ..Add::default()
        })
    }

    /// Returns the action that removes the file. `is_lost` is false when its rows are in other files of the table.
    pub(super) fn remove(&self, is_lost: bool, now_ms: i64) -> Action {
        Action::Remove(Remove {
            path: self.path.clone(),
            data_change: is_lost,
            deletion_timestamp: Some(now_ms),
            extended_file_metadata: Some(true),
            partition_values: Some(self.partition()),
            size: Some(self.bytes.cast_signed()),
            ..Remove::default()
        })
    }
}

impl Files {
    /// Returns the total length of the files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Returns the total number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.files.iter().map(|file| file.statistics.num_records).sum()
    }
}

/// Formats a day as a partition value: `2026-11-16`.
#[must_use]
pub fn date_of(day: i32) -> String {
    let date = chrono::NaiveDate::from_epoch_days(day).unwrap_or_default();
    date.format("%Y-%m-%d").to_string()
}

/// Parses a day from a partition value.
#[must_use]
pub fn day_of(date: &str) -> Option<i32> {
    Some(date.parse::<chrono::NaiveDate>().ok()?.to_epoch_days())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree() {
        for (day, date) in
            [(0, "1970-01-01"), (20773, "2026-11-16"), (-719_162, "0001-01-01"), (2_932_896, "9999-12-31")]
        {
            assert_eq!(date_of(day), date);
            assert_eq!(day_of(date), Some(day));
        }
    }
}
