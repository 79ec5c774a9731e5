//! What is old, or too much, leaves the tables: whole files, the oldest first.

use super::files::{DataFile, Files};
use super::layout;
use super::sorted::DAY_US;
use std::sync::Arc;
use std::time::Duration;

/// How much of a table is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// Days that ended longer ago than this are removed.
    pub age: Option<Duration>,
    /// The oldest files are removed until there are no more bytes than this.
    pub bytes: Option<u64>,
}

/// The files that are to be removed.
pub(super) fn expired(files: &Files, retention: Retention, now_us: i64) -> Vec<Arc<DataFile>> {
    let time = layout::of(files.table).time;
    let end_of_day = |file: &DataFile| (i64::from(file.day) + 1).saturating_mul(DAY_US);
    let newest =
        |file: &DataFile| file.statistics.times(time).map_or_else(|| end_of_day(file), |(_, last)| last);
    let mut oldest_first: Vec<&Arc<DataFile>> = files.files.iter().collect();
    oldest_first.sort_by_key(|file| (file.day, newest(file)));
    let age = retention.age.map(|age| i64::try_from(age.as_micros()).unwrap_or(i64::MAX));
    let is_old = |file: &DataFile| age.is_some_and(|age| end_of_day(file) < now_us.saturating_sub(age));
    let mut left = files.bytes();
    let mut expired = Vec::new();
    for file in oldest_first {
        if is_old(file) || retention.bytes.is_some_and(|bytes| left > bytes) {
            left -= file.bytes;
            expired.push(Arc::clone(file));
        }
    }
    expired
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lake::statistics::Statistics;
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
        Files { table: Table::Events, version: 1, sealed: 0, files }
    }

    fn gone(of: &[(i32, u64)], retention: Retention, day: i64) -> Vec<String> {
        expired(&files(of), retention, day * DAY_US).iter().map(|file| file.path.clone()).collect()
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
}
