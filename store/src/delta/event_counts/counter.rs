//! Counts events by bucket and group.
//!
//! A report that replaces an earlier one (`supersedes`) takes that one back: the row of the earlier report is counted
//! when it is added, and [`EventCounter::retract`] subtracts it again. So the sum is the same in whatever order and in
//! however many pieces the rows are counted. `first_seen`, `last_seen` and the newest event cannot be subtracted; they
//! are those of all reports that stood for a failure when they were stored.

use crate::delta::sort::day_of;
use crate::rows::event_counts::{BUCKET_US, EventCountRow, EventCountRows, NAMES};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, PrimitiveArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimestampMicrosecondType};
use arrow::error::ArrowError;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

/// The columns of `events` that are read for counting.
pub(super) const COLUMNS: [&str; 17] = [
    "event_id",
    "time",
    "ingested_at",
    "hidden",
    "fingerprint",
    "represents",
    "supersedes",
    "service",
    "canonical",
    "operation",
    "category",
    "dialect",
    "template",
    "kind",
    "fault",
    "service_version",
    "environment",
];

/// Adds up events by bucket and group.
#[derive(Default)]
pub(crate) struct EventCounter {
    names: [Names; NAMES.len()],
    places: HashMap<Key, usize, RandomState>,
    counts: Vec<(Key, Count)>,
    /// The place of the row before. Rows of a file are sorted by group, so it is often that of the next row.
    last: usize,
    replaced: Replaced,
}

/// The reports that counted rows replace.
#[derive(Debug, Default)]
pub(crate) struct Replaced {
    /// The ids of the replaced reports.
    pub(crate) ids: HashSet<u128>,
    /// The time of arrival of the earliest report that replaces one, in microseconds since 1970.
    pub(crate) since: Option<i64>,
}

/// A bucket and a group. The names are numbers of [`Names`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    bucket: i64,
    fingerprint: u64,
    names: [u32; NAMES.len()],
    hidden: bool,
}

#[derive(Clone, Copy, Default)]
struct Count {
    events: i64,
    reports: i64,
    seen: Option<(i64, i64, u128)>,
}

impl EventCounter {
    /// Adds the rows of a batch of `events`.
    pub(crate) fn add(&mut self, events: &RecordBatch) -> Result<(), ArrowError> {
        let rows = Rows::new(events, &mut self.names)?;
        for row in 0..events.num_rows() {
            let represents = rows.represents(row);
            let count = self.count(rows.key(row));
            count.reports += 1;
            count.events = count.events.saturating_add(represents);
            if represents > 0 {
                count.see(rows.times.value(row), || rows.ids.at(row));
            }
        }
        self.replaced.add(events)
    }

    /// Subtracts the rows of a batch whose ids are in `ids`, and removes these from it.
    pub(crate) fn retract(
        &mut self,
        events: &RecordBatch,
        ids: &mut HashSet<u128>,
    ) -> Result<(), ArrowError> {
        let column = Ids::new(column(events, "event_id")?)?;
        let found: Vec<usize> =
            (0..events.num_rows()).filter(|row| column.at(*row).is_some_and(|id| ids.remove(&id))).collect();
        if found.is_empty() {
            return Ok(());
        }
        let rows = Rows::new(events, &mut self.names)?;
        for row in found {
            let count = self.count(rows.key(row));
            count.events = count.events.saturating_sub(rows.represents(row));
        }
        Ok(())
    }

    /// Returns the reports that the added rows replace, and forgets them.
    pub(crate) fn take_replaced(&mut self) -> Replaced {
        std::mem::take(&mut self.replaced)
    }

    fn count(&mut self, key: Key) -> &mut Count {
        if self.counts.get(self.last).is_none_or(|(last, _)| *last != key) {
            let next = self.counts.len();
            self.last = *self.places.entry(key).or_insert(next);
            if self.last == next {
                self.counts.push((key, Count::default()));
            }
        }
        &mut self.counts[self.last].1
    }

    /// Returns the counts of each day in the order of the table, the oldest day first.
    pub(crate) fn finish(self) -> Result<Vec<(i32, RecordBatch)>, ArrowError> {
        let Self { names, mut counts, .. } = self;
        let ranks = names.each_ref().map(Names::ranks);
        let rank = |key: &Key, name: usize| ranks[name][key.names[name] as usize];
        // The names before and after the fingerprint and the flag, in the sort order of the table.
        let order = |(key, _): &(Key, Count)| {
            let before: [u32; 3] = std::array::from_fn(|name| rank(key, name));
            let between: [u32; 4] = std::array::from_fn(|name| rank(key, 3 + name));
            let after: [u32; 3] = std::array::from_fn(|name| rank(key, 7 + name));
            (day_of(key.bucket), before, key.fingerprint, between, key.hidden, after, key.bucket)
        };
        counts.sort_by_cached_key(order);
        let mut days = Vec::new();
        let mut builder = EventCountRows::default();
        let mut rows = counts.iter().peekable();
        while let Some((key, count)) = rows.next() {
            builder.push(EventCountRow {
                bucket: key.bucket,
                names: std::array::from_fn(|name| names[name].get(key.names[name])),
                fingerprint: key.fingerprint,
                hidden: key.hidden,
                events: count.events,
                reports: count.reports,
                seen: count.seen,
            });
            let day = day_of(key.bucket);
            if rows.peek().is_none_or(|(next, _)| day_of(next.bucket) != day) {
                days.push((day, builder.finish()?));
            }
        }
        Ok(days)
    }
}

impl Count {
    fn see(&mut self, time: i64, id: impl FnOnce() -> Option<u128>) {
        let Some((first, last, newest)) = &mut self.seen else {
            self.seen = id().map(|id| (time, time, id));
            return;
        };
        *first = time.min(*first);
        if time >= *last
            && let Some(id) = id()
        {
            (*last, *newest) = (time, id).max((*last, *newest));
        }
    }
}

impl Replaced {
    fn add(&mut self, events: &RecordBatch) -> Result<(), ArrowError> {
        let Some(supersedes) = events.column_by_name("supersedes") else { return Ok(()) };
        if supersedes.null_count() == supersedes.len() {
            return Ok(());
        }
        let (ids, arrivals) = (Ids::new(supersedes)?, times(events, "ingested_at")?);
        for row in 0..events.num_rows() {
            if let Some(id) = ids.at(row) {
                self.ids.insert(id);
                let arrival = arrivals.value(row);
                self.since = Some(self.since.map_or(arrival, |since| since.min(arrival)));
            }
        }
        Ok(())
    }
}

/// Distinct names, with a number each. The number 0 means none.
#[derive(Default)]
struct Names {
    numbers: HashMap<Box<str>, u32, RandomState>,
    names: Vec<Box<str>>,
}

impl Names {
    fn get(&self, number: u32) -> Option<&str> {
        self.names.get((number as usize).checked_sub(1)?).map(|name| &**name)
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        self.names.push(name.into());
        let number = u32::try_from(self.names.len()).unwrap_or(u32::MAX);
        self.numbers.insert(name.into(), number);
        number
    }

    /// Returns the rank of each number in the order of the names; none comes first.
    fn ranks(&self) -> Vec<u32> {
        let mut order: Vec<usize> = (0..self.names.len()).collect();
        order.sort_unstable_by_key(|place| &self.names[*place]);
        let mut ranks = vec![0; self.names.len() + 1];
        for (place, rank) in order.into_iter().zip(1..) {
            ranks[place + 1] = rank;
        }
        ranks
    }

    /// Returns the number of the name in each row.
    fn of_column(&mut self, column: Option<&ArrayRef>, rows: usize) -> Result<Vec<u32>, ArrowError> {
        let Some(column) = column else { return Ok(vec![0; rows]) };
        let column = dictionary(column)?;
        let dictionary = column.as_any_dictionary();
        let values = dictionary.values().as_string_opt::<i32>();
        let values = values.ok_or_else(|| ArrowError::SchemaError("a column of names".to_owned()))?;
        if values.is_empty() {
            return Ok(vec![0; rows]);
        }
        let of_value: Vec<u32> =
            values.iter().map(|value| value.map_or(0, |value| self.number(value))).collect();
        let mut numbers: Vec<u32> =
            dictionary.normalized_keys().into_iter().map(|key| of_value[key]).collect();
        for_nulls(&column, |row| numbers[row] = 0);
        Ok(numbers)
    }
}

/// The columns of a batch of `events`.
struct Rows<'b> {
    times: &'b PrimitiveArray<TimestampMicrosecondType>,
    ids: Ids<'b>,
    hidden: &'b BooleanArray,
    represents: Option<&'b Int64Array>,
    fingerprints: Vec<u64>,
    names: [Vec<u32>; NAMES.len()],
}

impl<'b> Rows<'b> {
    fn new(events: &'b RecordBatch, names: &mut [Names; NAMES.len()]) -> Result<Self, ArrowError> {
        let hidden = column(events, "hidden")?.as_boolean_opt();
        let represents = events.column_by_name("represents");
        let mut numbers = [const { Vec::new() }; NAMES.len()];
        for ((name, numbers), names) in NAMES.iter().zip(&mut numbers).zip(names) {
            *numbers = names.of_column(events.column_by_name(name), events.num_rows())?;
        }
        Ok(Self {
            times: times(events, "time")?,
            ids: Ids::new(column(events, "event_id")?)?,
            hidden: hidden.ok_or_else(|| unexpected("hidden"))?,
            represents: represents.and_then(|represents| represents.as_primitive_opt::<Int64Type>()),
            fingerprints: hashes(column(events, "fingerprint")?)?,
            names: numbers,
        })
    }

    fn key(&self, row: usize) -> Key {
        Key {
            bucket: self.times.value(row).div_euclid(BUCKET_US).saturating_mul(BUCKET_US),
            fingerprint: self.fingerprints[row],
            names: std::array::from_fn(|name| self.names[name][row]),
            hidden: self.hidden.value(row),
        }
    }

    /// Returns the number of events that a row stands for.
    fn represents(&self, row: usize) -> i64 {
        self.represents
            .filter(|represents| represents.is_valid(row))
            .map_or(1, |represents| represents.value(row))
    }
}

/// A column of identities, as hex digits or as bytes.
pub(super) struct Ids<'b>(&'b ArrayRef);

impl<'b> Ids<'b> {
    pub(super) fn new(column: &'b ArrayRef) -> Result<Self, ArrowError> {
        match column.data_type() {
            DataType::Utf8 | DataType::FixedSizeBinary(16) => Ok(Self(column)),
            other => Err(ArrowError::SchemaError(format!("identities cannot be read from {other}"))),
        }
    }

    pub(super) fn at(&self, row: usize) -> Option<u128> {
        if self.0.is_null(row) {
            return None;
        }
        match self.0.as_string_opt::<i32>() {
            Some(texts) => u128::from_str_radix(texts.value(row), 16).ok(),
            None => {
                let bytes = self.0.as_fixed_size_binary_opt()?.value(row);
                bytes.try_into().ok().map(u128::from_be_bytes)
            }
        }
    }
}

/// Returns the values of a column of hashes.
fn hashes(column: &ArrayRef) -> Result<Vec<u64>, ArrowError> {
    let of_bytes = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_be_bytes);
    if let Some(bytes) = column.as_fixed_size_binary_opt() {
        return Ok(bytes.iter().map(|bytes| bytes.map_or(0, of_bytes)).collect());
    }
    let column = dictionary(column)?;
    let dictionary = column.as_any_dictionary();
    let values = dictionary.values();
    let of_value: Vec<u64> = match values.as_string_opt::<i32>() {
        Some(texts) => texts
            .iter()
            .map(|text| text.and_then(|text| u64::from_str_radix(text, 16).ok()).unwrap_or(0))
            .collect(),
        None => {
            let bytes = values.as_fixed_size_binary_opt().ok_or_else(|| unexpected("fingerprint"))?;
            bytes.iter().map(|bytes| bytes.map_or(0, of_bytes)).collect()
        }
    };
    if of_value.is_empty() {
        return Ok(vec![0; column.len()]);
    }
    Ok(dictionary.normalized_keys().into_iter().map(|key| of_value[key]).collect())
}

/// Returns a column of texts as a dictionary.
fn dictionary(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    match column.data_type() {
        DataType::Dictionary(..) => Ok(column.clone()),
        _ => cast(column, &DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))),
    }
}

fn for_nulls(column: &ArrayRef, mut visit: impl FnMut(usize)) {
    if column.null_count() > 0 {
        (0..column.len()).filter(|row| column.is_null(*row)).for_each(&mut visit);
    }
}

fn times<'b>(
    events: &'b RecordBatch,
    name: &str,
) -> Result<&'b PrimitiveArray<TimestampMicrosecondType>, ArrowError> {
    column(events, name)?.as_primitive_opt().ok_or_else(|| unexpected(name))
}

fn column<'b>(events: &'b RecordBatch, name: &str) -> Result<&'b ArrayRef, ArrowError> {
    events.column_by_name(name).ok_or_else(|| unexpected(name))
}

fn unexpected(name: &str) -> ArrowError {
    ArrowError::SchemaError(format!("events have no column {name} of the expected type"))
}
