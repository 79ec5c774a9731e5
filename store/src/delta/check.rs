//! Verifies one table: its Delta log, its files, their rows, and their statistics.

use super::aggregate::order_of;
use super::files::{DataFile, Files};
use super::layout::{self, Layout};
use super::parquet_file::OpenFile;
use super::recovery::{Examined, Listing};
use super::sort::DAY_US;
use super::{DeltaTables, sort};
use crate::check::{Part, Report};
use crate::disk::Disk;
use crate::schema::Table;
use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::TimestampMicrosecondType;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const RESTORE: &str = "put the file back from a backup; rows that only it held are lost otherwise";
const REOPEN: &str =
    "start `faultline serve`: it sets a bad newest commit aside and reads its rows again from the log";

/// A table that is about to be verified.
#[derive(Debug)]
pub(crate) struct TableCheck {
    table: Table,
    disk: Arc<dyn Disk>,
    root: PathBuf,
    /// The files; `None` when the table cannot be loaded.
    files: Option<Files>,
    /// The number of problems that are known already.
    problems: usize,
}

impl TableCheck {
    /// Loads the table and checks its Delta log.
    pub(crate) fn begin(table: Table, disk: &Arc<dyn Disk>, root: &Path, report: &mut Report) -> Self {
        let before = report.problems.len();
        let mut check =
            Self { table, disk: Arc::clone(disk), root: root.to_owned(), files: None, problems: 0 };
        check.log(report);
        match DeltaTables::read_only(table, disk, root) {
            Ok(files) => check.files = Some(files),
            Err(error) => report.wrong(root.display().to_string(), error.to_string(), REOPEN),
        }
        check.problems = report.problems.len() - before;
        check
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.files.as_ref().map_or(0, Files::bytes)
    }

    fn examined(&self) -> Examined<'_> {
        Examined {
            disk: &*self.disk,
            table: self.table,
            root: &self.root,
            set_aside: Path::new(""),
            now_ms: 0,
        }
    }

    /// Checks every commit and every checkpoint that exists.
    fn log(&self, report: &mut Report) {
        // A table that was never created is not a problem.
        let Ok(listing) = Listing::of(&*self.disk, &self.root) else { return };
        let examined = self.examined();
        let newest = listing.commits.last().copied();
        for version in &listing.commits {
            if let Err(why) = examined.commit(*version) {
                let remedy = if Some(*version) == newest { REOPEN } else { RESTORE };
                report.wrong(format!("{} commit {version}", self.table.name()), why, remedy);
            }
        }
        for (version, name) in &listing.checkpoints {
            if let Err(why) = examined.checkpoint(name) {
                report.wrong(format!("{} checkpoint {version}", self.table.name()), why, REOPEN);
            }
        }
        for pair in listing.commits.windows(2).filter(|pair| pair[0] + 1 != pair[1]) {
            report.wrong(format!("{} commit {}", self.table.name(), pair[0] + 1), "it is missing", RESTORE);
        }
    }

    /// Checks every file.
    pub(crate) fn run(self, report: &mut Report, watch: &mut dyn FnMut(u64)) {
        let before = report.problems.len() - self.problems;
        let mut part = Part { name: self.table.name().to_owned(), ..Part::default() };
        for file in self.files.iter().flat_map(|files| &files.files) {
            if let Err(why) = self.file(file) {
                report.wrong(self.root.join(&file.path).display().to_string(), why, RESTORE);
            }
            part.files += 1;
            part.rows += file.statistics.num_records;
            part.bytes += file.bytes;
            watch(file.bytes);
        }
        self.orphans(report);
        report.part(part, before);
    }

    fn file(&self, file: &DataFile) -> Result<(), String> {
        let opened = self.examined().data_file(&file.path, file.bytes)?;
        let rows = opened.footer().file_metadata().num_rows().unsigned_abs();
        if rows != file.statistics.num_records {
            return Err(format!("it has {rows} rows, and the table says {}", file.statistics.num_records));
        }
        self.rows(file, opened)
    }

    /// Checks that the rows of a file are of its day, in order, and within its statistics.
    fn rows(&self, file: &DataFile, opened: OpenFile) -> Result<(), String> {
        let layout = layout::of(self.table);
        let mut last: Option<Box<[u8]>> = None;
        for batch in opened.rows(None).map_err(|error| error.to_string())? {
            let batch = batch.map_err(|error| format!("its rows cannot be read: {error}"))?;
            times_fit(layout, file, &batch)?;
            let order = order_of(layout, &batch).map_err(|error| error.to_string())?;
            for row in &order {
                if last.as_ref().is_some_and(|last| **last > *row.as_ref()) {
                    return Err("its rows are not in the order that it declares".to_owned());
                }
                last = Some(row.as_ref().into());
            }
        }
        Ok(())
    }

    /// Reports files that no commit names: a crash has left them, or they were merged a moment ago.
    fn orphans(&self, report: &mut Report) {
        let Some(files) = &self.files else { return };
        let known: HashSet<&str> = files.files.iter().map(|file| file.path.as_str()).collect();
        let (mut count, mut bytes) = (0, 0);
        for folder in self.disk.folders(&self.root).unwrap_or_default() {
            for file in self.disk.list(&self.root.join(&folder)).unwrap_or_default() {
                if folder.starts_with(layout::PARTITION)
                    && !known.contains(format!("{folder}/{}", file.name).as_str())
                {
                    count += 1;
                    bytes += file.bytes;
                }
            }
        }
        if count > 0 {
            let name = self.table.name();
            report.notes.push(format!(
                "{name}: {count} files ({bytes} bytes) are in no version of the table any more; they leave by themselves"
            ));
        }
    }
}

fn times_fit(layout: &Layout, file: &DataFile, batch: &RecordBatch) -> Result<(), String> {
    let times = batch.column_by_name(layout.time);
    let times = times.and_then(|times| times.as_primitive_opt::<TimestampMicrosecondType>());
    let times = times.ok_or("the column of its times is missing")?;
    let bounds = file.statistics.times(layout.time);
    for time in times.values() {
        if sort::day_of(*time) != file.day {
            return Err(format!("a row is of another day: {}", time.div_euclid(DAY_US)));
        }
        if bounds.is_some_and(|(low, high)| *time < low || *time > high) {
            return Err("a row is outside of what the table says about its times".to_owned());
        }
    }
    Ok(())
}
