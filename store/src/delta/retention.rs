//! Retention: removes files that are too old or exceed the size limit from the tables, the oldest first.
//!
//! The age of a file counts from the later of two times: the end of the day of its rows, and the time when its rows
//! were stored. So an archive of last year's logs that is loaded today is kept for the whole retention age from today
//! on, and live data is not kept longer because of it.

use super::files::{DataFile, Files, date_of};
use super::layout;
use super::sort::DAY_US;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The age and the size up to which a table is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// The age from which days are removed, counted from the end of the day or from the time when it was stored.
    pub age: Option<Duration>,
    /// The size to which a table is reduced by removing the oldest files.
    pub bytes: Option<u64>,
}

/// The data that retention has removed from a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Expired {
    /// The number of removed files.
    pub files: u64,
    /// The number of rows in them.
    pub rows: u64,
    /// The number of bytes in them.
    pub bytes: u64,
    /// The number of days from which rows were removed.
    pub days: u64,
}

impl std::ops::AddAssign for Expired {
    fn add_assign(&mut self, other: Self) {
        self.files += other.files;
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.days += other.days;
    }
}

/// The files that are to be removed, with the reason.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    /// The files, oldest first.
    pub(super) files: Vec<Arc<DataFile>>,
    /// The number of files that are too old. The others are removed because of the size.
    pub(super) too_old: u64,
}

impl Leaving {
    /// Returns the totals, and logs the files that are removed.
    pub(super) fn told(&self, table: &'static str) -> Expired {
        let days: BTreeSet<i32> = self.files.iter().map(|file| file.day).collect();
        let expired = Expired {
            files: self.files.len() as u64,
            rows: self.files.iter().map(|file| file.statistics.num_records).sum(),
            bytes: self.files.iter().map(|file| file.bytes).sum(),
            days: days.len() as u64,
        };
        tracing::info!(
            table,
            rows = expired.rows,
            days = expired.days,
            first_day = days.first().copied().map(date_of),
            last_day = days.last().copied().map(date_of),
            files = expired.files,
            bytes = expired.bytes,
            too_old_files = self.too_old,
            "retention removes rows"
        );
        expired
    }
}

/// Returns the files that are to be removed.
pub(super) fn leaving(files: &Files, retention: Retention, now_us: i64) -> Leaving {
    let time = layout::of(files.table).time;
    let end_of_day = |file: &DataFile| (i64::from(file.day) + 1).saturating_mul(DAY_US);
    let kept_since = |file: &DataFile| end_of_day(file).max(file.written_at.saturating_mul(1000));
    let newest =
        |file: &DataFile| file.statistics.times(time).map_or_else(|| end_of_day(file), |(_, last)| last);
    let mut oldest_first: Vec<&Arc<DataFile>> = files.files.iter().collect();
    oldest_first.sort_by_key(|file| (kept_since(file), file.day, newest(file)));
    let age = retention.age.map(|age| i64::try_from(age.as_micros()).unwrap_or(i64::MAX));
    let is_old = |file: &DataFile| age.is_some_and(|age| kept_since(file) < now_us.saturating_sub(age));
    let mut left = files.bytes();
    let mut leaving = Leaving::default();
    for file in oldest_first {
        let is_old = is_old(file);
        if is_old || retention.bytes.is_some_and(|bytes| left > bytes) {
            left -= file.bytes;
            leaving.too_old += u64::from(is_old);
            leaving.files.push(Arc::clone(file));
        }
    }
    leaving
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delta::statistics::Statistics;
    use crate::schema::Table;

    fn files(of: &[(i32, u64)]) -> Files {
        let file = |(number, (day, bytes)): (usize, &(i32, u64))| {
            Arc::new(DataFile {
                path: number.to_string(),
                bytes: *bytes,
                day: *day,
                written_at: 0,
                statistics: Statistics::default(),
            })
        };
        let files = of.iter().enumerate().map(file).collect();
        Files { table: Table::Events, version: 1, flushed: 0, files }
    }

    fn gone(of: &[(i32, u64)], retention: Retention, day: i64) -> Vec<String> {
        leaving(&files(of), retention, day * DAY_US).files.iter().map(|file| file.path.clone()).collect()
    }

    #[test]
    fn a_day_goes_when_its_last_moment_is_too_old() {
        let days = Retention { age: Some(Duration::from_secs(2 * 86_400)), bytes: None };
        assert_eq!(gone(&[(10, 1), (12, 1), (11, 1)], days, 13), Vec::<String>::new());
        assert_eq!(gone(&[(10, 1), (12, 1), (11, 1)], days, 14), ["0"]);
        assert_eq!(gone(&[(10, 1), (12, 1), (11, 1)], days, 15), ["0", "2"]);
        assert_eq!(gone(&[(10, 1)], Retention::default(), 5000), Vec::<String>::new());
    }

    #[test]
    fn the_oldest_make_room() {
        let bytes = |bytes| Retention { age: None, bytes: Some(bytes) };
        let of = [(12, 40), (10, 30), (11, 30)];
        assert_eq!(gone(&of, bytes(100), 13), Vec::<String>::new());
        assert_eq!(gone(&of, bytes(99), 13), ["1"]);
        assert_eq!(gone(&of, bytes(40), 13), ["1", "2"]);
        assert_eq!(gone(&of, bytes(0), 13), ["1", "2", "0"]);
    }

    /// An archive is kept for the whole age from the time when it was stored. When the size limit removes files, the
    /// archive is not removed first, but in the order of that time.
    #[test]
    fn what_was_stored_late_is_kept_from_then_on() {
        let mut archive = files(&[(10, 1), (500, 1), (900, 1)]);
        let stored_late = DataFile { written_at: 1000 * DAY_US / 1000, ..DataFile::clone(&archive.files[0]) };
        archive.files[0] = Arc::new(stored_late);
        let names = |retention, day: i64| -> Vec<String> {
            leaving(&archive, retention, day * DAY_US).files.iter().map(|file| file.path.clone()).collect()
        };
        let days = Retention { age: Some(Duration::from_secs(400 * 86_400)), bytes: None };
        assert_eq!(names(days, 1000), ["1"], "the live day is too old, the archive is not");
        assert_eq!(names(days, 1302), ["1", "2"]);
        assert_eq!(names(days, 1400), ["1", "2"]);
        assert_eq!(names(days, 1401), ["1", "2", "0"]);
        assert_eq!(names(Retention { age: None, bytes: Some(1) }, 1001), ["1", "2"]);
    }

    #[test]
    fn what_leaves_is_counted() {
        let days = Retention { age: Some(Duration::ZERO), bytes: None };
        let told = leaving(&files(&[(10, 3), (10, 4), (12, 5)]), days, 13 * DAY_US).told("events");
        assert_eq!(told, Expired { files: 2, rows: 0, bytes: 7, days: 1 }, "the last day has just ended");
        let all = leaving(&files(&[(10, 3), (12, 5)]), days, 14 * DAY_US);
        assert_eq!((all.too_old, all.told("events").days), (2, 2));
    }
}
