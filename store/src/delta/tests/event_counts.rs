//! `event_counts` against `events`: whatever is stored, interrupted, merged, removed and restarted, counting the rows of
//! `events` gives what the counts add up to.

use super::*;
use crate::delta::{DeltaOptions, DeltaTables};
use crate::rows::{EventRow, EventRows, OLD_BUCKET_US, Relation};
use arrow::array::{Array, TimestampMicrosecondArray};
use arrow::datatypes::TimestampMicrosecondType;
use arrow::util::display::array_value_to_string;
use classifier::{
    Category, Context, Event, EventDenial, EventKind, EventQuota, Fault, Findings, Recovery, Severity,
};
use proptest::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeSet;

const FOLDER: &str = "/data";
const MINUTE: i64 = 60_000_000;
const HOUR: i64 = 60 * MINUTE;

/// An event to be stored.
#[derive(Debug, Clone)]
struct Stored {
    id: u128,
    time: i64,
    /// The number of the group, which decides about all its names.
    group: u8,
    is_warning: bool,
    hidden: bool,
    /// The number of events that it stands for; 0 for a further report.
    represents: i64,
    supersedes: Option<u128>,
}

fn event(stored: &Stored) -> Event<'static> {
    let group = stored.group;
    let name = |names: [&'static str; 3]| Some(Cow::Borrowed(names[usize::from(group) % 3]));
    Event {
        event_id: stored.id,
        kind: if stored.is_warning { EventKind::Warning } else { EventKind::Error },
        dialect: Dialect::McpAql,
        code: None,
        canonical: Cow::Borrowed(["NOT_FOUND_RESOURCE", "INTERNAL_ERROR"][usize::from(group) % 2]),
        category: [Category::NotFound, Category::Internal][usize::from(group) % 2],
        fault: [None, Some(Fault::Server), Some(Fault::Probe)][usize::from(group) % 3],
        severity: Severity::Error,
        retryable: None,
        recovery: Recovery::RepairRequest,
        inferred: false,
        hidden: stored.hidden,
        http_status: None,
        message: None,
        template: (group > 1).then_some("Resource '{value}' not found"),
        fingerprint: u64::from(group) * 0x0123_4567_89ab_cdef,
        findings: Findings::default(),
        context: Context {
            time: stored.time,
            service: name(["tickets", "téléphone", "files"]).filter(|_| group != 4),
            service_version: name(["1", "2", "10"]),
            operation: name(["get", "put", "get"]),
            ..Context::default()
        },
        quota: EventQuota::default(),
        retry_after_s: None,
        denial: EventDenial::default(),
        token_hash: None,
        batch_index: None,
        details: None,
        attributes: None,
    }
}

fn events_record(sequence: u64, events: &[Stored], now: i64) -> Arc<BufferedRecord> {
    let mut rows = EventRows::default();
    for (place, stored) in events.iter().enumerate() {
        let relation = match (stored.supersedes, stored.represents) {
            (Some(id), 0) => Relation::DuplicateOfBoth(1, id),
            (Some(id), _) => Relation::Supersedes(id),
            (None, 0) => Relation::DuplicateOf(1),
            (None, _) => Relation::Primary,
        };
        rows.push(EventRow { event: &event(stored), ingested_at: now, relation });
        if stored.represents > 1 {
            rows.represent(place, stored.represents - 1);
        }
    }
    let mut bytes = Vec::new();
    Encoder::default().append(&mut bytes, Table::Events, rows.finish().unwrap()).unwrap();
    let decoder = Arc::new(Decoder::current().unwrap());
    Arc::new(BufferedRecord::new(sequence, Buffer::from_vec(bytes), decoder).unwrap())
}

/// The numbers of a group: events, reports, the first and the last time, and the newest id.
type Numbers = (i64, i64, Option<i64>, Option<(i64, String)>);
/// What is counted, by the names of the group and the hour.
type Counted = BTreeMap<(String, i64), Numbers>;

fn text(batch: &RecordBatch, name: &str, row: usize) -> Option<String> {
    let column = batch.column_by_name(name).unwrap();
    column.is_valid(row).then(|| array_value_to_string(column, row).unwrap())
}

fn times<'b>(batch: &'b RecordBatch, name: &str) -> &'b TimestampMicrosecondArray {
    batch.column_by_name(name).unwrap().as_primitive::<TimestampMicrosecondType>()
}

fn whole(batch: &RecordBatch, name: &str, row: usize) -> i64 {
    batch.column_by_name(name).unwrap().as_primitive::<Int64Type>().value(row)
}

fn group_of(batch: &RecordBatch, row: usize) -> String {
    const NAMES: [&str; 10] = [
        "service",
        "canonical",
        "operation",
        "fingerprint",
        "category",
        "template",
        "kind",
        "hidden",
        "fault",
        "service_version",
    ];
    NAMES.iter().map(|name| text(batch, name, row).unwrap_or_default()).collect::<Vec<_>>().join(" ")
}

/// Reads all rows of a table's files.
fn batches(disk: &dyn Disk, delta: &DeltaTables, table: Table) -> Vec<RecordBatch> {
    let root = Path::new(FOLDER).join("tables").join(table.name());
    let files = delta.files(table);
    let read = |file: &Arc<crate::delta::files::DataFile>| {
        let opened = OpenFile::open(disk, &root.join(&file.path), table).unwrap();
        opened.rows(None).unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    files.files.iter().flat_map(read).collect()
}

/// Counts the rows of `events` in the plainest way.
fn truth(events: &[RecordBatch]) -> Counted {
    let ids = |name: &str| {
        let of_batch = |batch: &RecordBatch| {
            (0..batch.num_rows()).filter_map(|row| text(batch, name, row)).collect::<Vec<_>>()
        };
        events.iter().flat_map(of_batch).collect::<BTreeSet<String>>()
    };
    let superseded = ids("supersedes");
    let mut counted = Counted::new();
    for batch in events {
        for row in 0..batch.num_rows() {
            let (time, id) = (times(batch, "time").value(row), text(batch, "event_id", row).unwrap());
            let represents = whole(batch, "represents", row);
            let hour = time.div_euclid(OLD_BUCKET_US);
            let numbers = counted.entry((group_of(batch, row), hour)).or_default();
            numbers.0 += if superseded.contains(&id) { 0 } else { represents };
            numbers.1 += 1;
            if represents > 0 {
                numbers.2 = Some(numbers.2.map_or(time, |first| first.min(time)));
                numbers.3 = numbers.3.take().max(Some((time, id)));
            }
        }
    }
    counted
}

/// Adds up the rows of `event_counts`.
fn added(counts: &[RecordBatch]) -> Counted {
    let mut counted = Counted::new();
    for batch in counts {
        let (first, last) = (times(batch, "first_seen"), times(batch, "last_seen"));
        for row in 0..batch.num_rows() {
            let hour = times(batch, "bucket").value(row).div_euclid(OLD_BUCKET_US);
            let numbers = counted.entry((group_of(batch, row), hour)).or_default();
            numbers.0 += whole(batch, "events", row);
            numbers.1 += whole(batch, "reports", row);
            if first.is_valid(row) {
                let earliest = first.value(row);
                numbers.2 = Some(numbers.2.map_or(earliest, |first| first.min(earliest)));
                let newest = text(batch, "newest_event_id", row).unwrap();
                numbers.3 = numbers.3.take().max(Some((last.value(row), newest)));
            }
        }
    }
    counted
}

/// A data directory with a WAL that never loses a record, unless a test says so.
struct World {
    disk: SimDisk,
    delta: DeltaTables,
    records: Vec<Arc<BufferedRecord>>,
    stored: Vec<Stored>,
    /// The number of those that are too old to be replaced.
    settled: usize,
    now: i64,
}

fn open(disk: &SimDisk, bytes: Option<u64>) -> Result<DeltaTables, DeltaError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let retention = Retention { age: Some(Duration::from_secs(3 * 86_400)), bytes };
    let retention = [retention; Table::ALL.len()];
    DeltaTables::open(
        &disk,
        Path::new(FOLDER),
        DeltaOptions { retention, grace: Duration::ZERO, clock: || NOW },
    )
}

impl World {
    fn new(seed: u64, bytes: Option<u64>) -> Self {
        let disk = SimDisk::new(seed);
        let delta = open(&disk, bytes).unwrap();
        Self { disk, delta, records: Vec::new(), stored: Vec::new(), settled: 0, now: NOW }
    }

    /// Writes events to the WAL.
    fn write(&mut self, events: Vec<Stored>) {
        let sequence = self.records.len() as u64 + 1;
        self.records.push(events_record(sequence, &events, self.now));
        self.stored.extend(events);
    }

    fn flush(&self) -> Result<(), DeltaError> {
        let lacking: Vec<_> =
            self.records.iter().filter(|record| self.delta.lacks(record)).cloned().collect();
        match lacking.last() {
            Some(last) => self.delta.flush(&lacking, last.sequence, self.now).map(drop),
            None => Ok(()),
        }
    }

    fn maintain(&self) -> Result<(), DeltaError> {
        for table in [Table::Events, Table::EventCounts] {
            while self.delta.maintain(table, MaintenanceMode::Full, self.now)?.merged > 0 {}
        }
        Ok(())
    }

    fn restart(&mut self, disk: SimDisk, bytes: Option<u64>) {
        self.delta = open(&disk, bytes).unwrap();
        self.disk = disk;
    }

    fn counts(&self) -> Counted {
        added(&batches(&self.disk, &self.delta, Table::EventCounts))
    }

    fn events(&self) -> Counted {
        truth(&batches(&self.disk, &self.delta, Table::Events))
    }

    fn agrees(&self) {
        assert_eq!(self.counts(), self.events());
    }

    /// Removes the whole log of the derived table.
    fn lose_counts(&self) {
        let log = Path::new(FOLDER).join("tables/event_counts/_delta_log");
        for path in self.disk.paths().into_iter().filter(|path| path.starts_with(&log)) {
            self.disk.remove(&path).unwrap();
        }
        self.disk.sync_dir(&log).unwrap();
    }
}

/// An event that arrives: the minutes since the day before, the group, what it stands for, whether it is hidden or a
/// warning, and how many reports before it is the one that it replaces.
type Arriving = (i64, u8, i64, bool, bool, Option<usize>);

/// Something that happens to a data directory.
#[derive(Debug, Clone)]
enum Step {
    /// Events arrive.
    Write(Vec<Arriving>),
    Flush,
    Maintain,
    PassHours(i64),
    /// The process is killed, or the power fails, at an operation of a flush or of maintenance.
    Crash {
        at: u64,
        in_maintenance: bool,
        is_power: bool,
    },
    /// The derived table is lost.
    Lose,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let event = (
        0..2 * 1440_i64,
        0..6_u8,
        0..4_i64,
        any::<bool>(),
        prop::bool::weighted(0.1),
        prop::option::of(0..12_usize),
    );
    let step = prop_oneof![
        6 => prop::collection::vec(event, 1..25).prop_map(Step::Write),
        5 => Just(Step::Flush),
        3 => Just(Step::Maintain),
        1 => (1..40_i64).prop_map(Step::PassHours),
        2 => (1..90_u64, any::<bool>(), any::<bool>())
            .prop_map(|(at, in_maintenance, is_power)| Step::Crash { at, in_maintenance, is_power }),
        1 => Just(Step::Lose),
    ];
    prop::collection::vec(step, 1..40)
}

impl World {
    fn stored_event(
        &self,
        more: &[Stored],
        (minutes, group, represents, hidden, is_warning, replaces): Arriving,
    ) -> Stored {
        let number = (self.stored.len() + more.len() + 1) as u128;
        let id = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        let known: Vec<&Stored> = self.stored[self.settled..].iter().chain(more).collect();
        // A report is replaced once, soon after it arrived, and by one of the same day.
        let is_free =
            |candidate: &&&Stored| !known.iter().any(|other| other.supersedes == Some(candidate.id));
        let replaced = replaces.and_then(|back| known.iter().rev().nth(back)).filter(is_free);
        let time = replaced.map_or(self.now - DAY + minutes * MINUTE - HOUR * 12, |other| other.time);
        Stored { id, time, group, is_warning, hidden, represents, supersedes: replaced.map(|other| other.id) }
    }

    fn take(&mut self, step: Step, bytes: Option<u64>) {
        match step {
            Step::Write(rows) => {
                let mut events = Vec::new();
                for row in rows {
                    let event = self.stored_event(&events, row);
                    events.push(event);
                }
                self.write(events);
            }
            Step::Flush => self.flush().unwrap(),
            Step::Maintain => {
                // What waits is flushed before hours pass, as in a server.
                self.flush().unwrap();
                self.maintain().unwrap();
                self.agrees();
            }
            Step::PassHours(hours) => {
                self.flush().unwrap();
                self.now += hours * HOUR;
                self.settled = self.stored.len();
            }
            Step::Crash { at, in_maintenance, is_power } => {
                self.disk.crash_at(at);
                let _ = if in_maintenance { self.maintain() } else { self.flush() };
                let disk = if is_power { self.disk.after_power_loss() } else { self.disk.after_kill() };
                self.restart(disk, bytes);
            }
            Step::Lose => {
                self.lose_counts();
                self.restart(self.disk.after_kill(), bytes);
            }
        }
        // At every moment, the files of both tables agree, unless the next flush has to level them.
        if self.delta.files(Table::Events).flushed == self.delta.files(Table::EventCounts).flushed {
            self.agrees();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Scenario: events of any kind arrive, some of which replace earlier ones or stand for several; they are flushed
    /// and merged, days expire, the process is killed, the power fails, and the derived table is lost.
    /// Guarantee: the counts agree with the events, after every step and in the end, and rows are in their order.
    #[test]
    fn counts_agree_with_events(steps in steps(), seed in 0..1000_u64, is_limited: bool) {
        let bytes = is_limited.then_some(60_000);
        let mut world = World::new(seed, bytes);
        for step in steps {
            world.take(step, bytes);
        }
        world.flush().unwrap();
        world.maintain().unwrap();
        world.agrees();
        for table in [Table::Events, Table::EventCounts] {
            let root = Path::new(FOLDER).join("tables").join(table.name());
            is_in_order(&world.disk, &root, &world.delta.files(table));
        }
    }
}

fn plain(id: u128, time: i64, group: u8) -> Stored {
    Stored { id, time, group, is_warning: false, hidden: false, represents: 1, supersedes: None }
}

fn events_of(counted: &Counted) -> i64 {
    counted.values().map(|numbers| numbers.0).sum()
}

/// A report is replaced in the same flush, in a later one, and in one after its file was merged.
#[test]
fn a_replaced_report_is_taken_back() {
    let mut world = World::new(1, None);
    world.write(vec![plain(1, NOW, 0), plain(2, NOW, 1), Stored { supersedes: Some(1), ..plain(3, NOW, 2) }]);
    world.flush().unwrap();
    assert_eq!(events_of(&world.counts()), 2);
    world.agrees();
    world.write(vec![Stored { supersedes: Some(2), ..plain(4, NOW + 1, 2) }]);
    world.flush().unwrap();
    assert_eq!(events_of(&world.counts()), 2);
    world.agrees();
    for id in 10..30 {
        world.write(vec![plain(id, NOW, 0)]);
        world.flush().unwrap();
    }
    world.maintain().unwrap();
    world.write(vec![Stored { supersedes: Some(10), ..plain(40, NOW + 2, 2) }]);
    world.flush().unwrap();
    assert_eq!(events_of(&world.counts()), 22);
    world.agrees();
}

/// The buckets of a day are a quarter of an hour at first, and an hour when it is old. Their number is what counts.
#[test]
fn buckets_of_an_old_day_become_longer() {
    let mut world = World::new(1, None);
    let day = NOW - 12 * HOUR;
    world.write(
        (0..48).map(|place| plain(place, day + i64::try_from(place).unwrap() * 15 * MINUTE, 0)).collect(),
    );
    world.flush().unwrap();
    world.maintain().unwrap();
    let rows = |world: &World| world.delta.files(Table::EventCounts).rows();
    assert_eq!(rows(&world), 48);
    let before = world.counts();
    world.now += 2 * DAY + 2 * HOUR;
    world.maintain().unwrap();
    assert_eq!((rows(&world), world.counts()), (12, before));
    world.write(vec![plain(99, day + HOUR + MINUTE, 0)]);
    world.flush().unwrap();
    assert_eq!(rows(&world), 13, "late rows come in short buckets");
    world.now += 2 * HOUR;
    world.maintain().unwrap();
    assert_eq!(rows(&world), 12);
    world.agrees();
}

/// A table that is behind, and whose records the WAL no longer has, is counted again when the tables are opened. So is
/// one whose log is damaged beyond repair.
#[test]
fn lost_counts_are_counted_again() {
    let mut world = World::new(1, None);
    for id in 0..5 {
        world.write(vec![plain(id, NOW, 0), Stored { represents: 3, ..plain(100 + id, NOW - DAY, 1) }]);
        world.flush().unwrap();
    }
    let expected = world.counts();
    world.records.clear();
    world.lose_counts();
    world.restart(world.disk.after_kill(), None);
    assert_eq!(world.counts(), expected);
    let log = Path::new(FOLDER).join("tables/event_counts/_delta_log");
    world.disk.put(&log.join("00000000000000000000.json"), b"{".to_vec());
    world.restart(world.disk.after_kill(), None);
    assert_eq!(world.counts(), expected);
    assert!(!world.delta.set_aside().is_empty());
    world.agrees();
}

/// A crash between the two commits of a flush leaves the counts behind, without a record in the WAL to repair it.
#[test]
fn a_flush_that_was_interrupted_between_the_tables_is_completed_when_they_are_opened() {
    let mut interrupted = 0;
    for at in 1..60 {
        let mut world = World::new(at, None);
        world.write(vec![plain(1, NOW, 0)]);
        world.flush().unwrap();
        world.write(vec![plain(2, NOW, 1), Stored { supersedes: Some(1), ..plain(3, NOW, 2) }]);
        world.disk.crash_at(at);
        let _ = world.flush();
        let is_between = world.delta.files(Table::Events).flushed == 2
            && world.delta.files(Table::EventCounts).flushed == 1;
        interrupted += usize::from(is_between);
        world.restart(world.disk.after_power_loss(), None);
        world.agrees();
    }
    assert!(interrupted > 3, "{interrupted}");
}
