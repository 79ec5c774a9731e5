//! Verifies a whole data directory: the WAL, the Delta logs of the tables, and every file with its statistics.
//!
//! Invariants: nothing is changed. Every byte of the WAL and of the files is read, so data without a problem is
//! readable.

use crate::delta::check::TableCheck;
use crate::directory::DataDirectory;
use crate::disk::Disk;
use crate::schema::Table;
use crate::snapshot::Decoders;
use crate::wal::{WalError, WalView};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A problem that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The location of the problem.
    pub place: String,
    /// The description of the problem.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

/// The amount of data that was checked in one part of the directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// The name of the part: `wal`, or a table.
    pub name: String,
    /// The number of files or segments.
    pub files: u64,
    /// The number of rows, or of WAL records.
    pub rows: u64,
    /// The number of bytes that were read.
    pub bytes: u64,
    /// The number of problems in this part.
    pub problems: u64,
}

/// The result of a check.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The amount of checked data by part.
    pub parts: Vec<Part>,
    /// The problems.
    pub problems: Vec<Problem>,
    /// Remarks that are not problems.
    pub notes: Vec<String>,
}

impl Report {
    pub(crate) fn wrong(&mut self, place: impl Into<String>, what: impl Into<String>, remedy: &str) {
        self.problems.push(Problem { place: place.into(), what: what.into(), remedy: remedy.to_owned() });
    }

    /// Adds a finished part. `before` is the number of problems when it began; the later ones belong to it.
    pub(crate) fn part(&mut self, mut part: Part, before: usize) {
        part.problems = (self.problems.len() - before) as u64;
        self.parts.push(part);
    }
}

/// A directory that is about to be verified.
#[derive(Debug)]
pub struct Check {
    disk: Arc<dyn Disk>,
    directory: DataDirectory,
    log: WalView,
    tables: Vec<TableCheck>,
    report: Report,
}

impl Check {
    /// Opens everything that will be read. Another process may be using the directory.
    ///
    /// # Errors
    /// Fails when the WAL cannot be opened.
    pub fn begin(disk: &Arc<dyn Disk>, directory: &DataDirectory) -> Result<Self, WalError> {
        // The WAL is opened first, for the reason that `snapshot` explains.
        let log = WalView::open(&**disk, &directory.wal())?;
        let mut report = Report::default();
        let tables = Table::ALL
            .into_iter()
            .map(|table| TableCheck::begin(table, disk, &directory.table(table), &mut report))
            .collect();
        Ok(Self { disk: Arc::clone(disk), directory: directory.clone(), log, tables, report })
    }

    /// Returns the number of bytes that the check will read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.log.bytes() + self.tables.iter().map(TableCheck::bytes).sum::<u64>()
    }

    /// Reads everything. `watch` is called from time to time with the number of bytes that were read since the last
    /// call.
    pub fn run(mut self, watch: &mut dyn FnMut(u64)) -> Report {
        check_log(&self.log, &mut self.report, watch);
        for table in self.tables {
            table.run(&mut self.report, watch);
        }
        set_aside(&*self.disk, &self.directory, &mut self.report);
        self.report
    }
}

fn check_log(log: &WalView, report: &mut Report, watch: &mut dyn FnMut(u64)) {
    const DAMAGED: &str = "what is damaged is lost, everything else is read; check the disk (SMART, dmesg)";
    let before = report.problems.len();
    let mut part = Part { name: "wal".to_owned(), ..Part::default() };
    let (mut decoders, mut unreadable) = (Decoders::default(), 0);
    let replay = log.read(0, &mut |record| {
        part.rows += 1;
        part.bytes += record.payload.len() as u64;
        watch(record.payload.len() as u64);
        let rows = decoders
            .record(record)
            .and_then(|record| Table::ALL.into_iter().try_for_each(|table| record.batch(table).map(drop)));
        unreadable += u64::from(rows.is_err());
        ControlFlow::Continue(())
    });
    part.files = replay.segments;
    if replay.damaged > 0 || replay.damaged_bytes > 0 {
        let what = format!("{} records are damaged ({} bytes)", replay.damaged, replay.damaged_bytes);
        report.wrong("wal", what, DAMAGED);
    }
    if replay.unreadable_segments > 0 {
        report.wrong("wal", format!("{} segments cannot be read", replay.unreadable_segments), DAMAGED);
    }
    if unreadable > 0 {
        let what = format!("{unreadable} records are intact but cannot be understood");
        report.wrong("wal", what, "use the version of faultline that wrote them, or a newer one");
    }
    report.part(part, before);
}

/// Reports files that were set aside earlier. They are no longer a problem, but someone should look at them.
fn set_aside(disk: &dyn Disk, directory: &DataDirectory, report: &mut Report) {
    let folder = directory.path().join(crate::directory::SET_ASIDE);
    match disk.list(&folder) {
        Ok(files) if !files.is_empty() => report.notes.push(format!(
            "{} bad files were set aside in {}; their rows came back from the log; remove them when you have looked",
            files.len(),
            folder.display()
        )),
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            report.wrong(folder.display().to_string(), error.to_string(), "check its owner and permissions");
        }
        _ => {}
    }
}
