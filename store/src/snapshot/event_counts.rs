//! Snapshots of the derived table `event_counts`: rows that are not flushed are counted when the snapshot is taken.

use super::{Horizon, Snapshot, SnapshotError, Unflushed};
use crate::delta::event_counts::{EventCounter, StoredEvents};
use crate::delta::files::Files;
use crate::delta::{DeltaError, TableReader};
use crate::directory::DataDirectory;
use crate::disk::Disk;
use crate::schema::Table;
use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Snapshot {
    /// Takes a snapshot of `event_counts`, with the readers of that table and of `events`.
    ///
    /// # Errors
    /// Fails when the WAL or one of the tables cannot be read.
    pub fn of_event_counts(
        disk: &Arc<dyn Disk>,
        directory: &DataDirectory,
        (counts, events): (&TableReader, &TableReader),
        horizon: &Horizon,
    ) -> Result<Self, SnapshotError> {
        let mut snapshot = Self::read_within(Table::EventCounts, disk, directory, counts, horizon)?;
        let files = events.files()?;
        let root = directory.table(Table::Events);
        let stored = StoredEvents { disk: &**disk, root: &root, files: &files };
        // A server counts again what is missing when it starts. Without one, nobody has, and the WAL may be gone.
        let is_lost = horizon.flushed[Table::EventCounts as usize] == 0;
        if is_lost && snapshot.files.flushed < files.flushed {
            tracing::warn!(
                "event_counts is behind events, so all events are counted; `faultline serve` repairs it"
            );
            stored.count_all(&|_| true, &mut |_, rows| {
                snapshot.counted.push(rows);
                Ok(())
            })?;
            snapshot.flushed = files.flushed;
            snapshot.files = Arc::new(Files {
                table: Table::EventCounts,
                version: 0,
                flushed: files.flushed,
                files: Vec::new(),
            });
        }
        let log = snapshot.log.take();
        let (flushed, visible) = (snapshot.flushed, snapshot.visible);
        let disk = Arc::clone(disk);
        let unflushed = Self {
            table: Table::Events,
            disk,
            root: root.clone(),
            files: Arc::clone(&files),
            flushed,
            log,
            visible,
            counted: Vec::new(),
        };
        snapshot.counted.extend(unflushed.count_unflushed(&stored)?);
        Ok(snapshot)
    }

    /// Counts the rows of `events` that are in no file yet.
    fn count_unflushed(&self, stored: &StoredEvents<'_>) -> Result<Vec<RecordBatch>, DeltaError> {
        let mut counter = EventCounter::default();
        let found = self.for_each_unflushed(&mut |batch| counter.add(batch))?;
        if found.unreadable > 0 {
            tracing::warn!(
                records = found.unreadable,
                "records of the log cannot be read; counts leave them out"
            );
        }
        let mut replaced = counter.take_replaced();
        if !replaced.ids.is_empty() {
            self.for_each_unflushed(&mut |batch| counter.retract(batch, &mut replaced.ids))?;
            stored.retract(&mut counter, replaced)?;
        }
        Ok(counter.finish()?.into_iter().map(|(_, rows)| rows).collect())
    }

    fn for_each_unflushed(
        &self,
        visit: &mut dyn FnMut(&RecordBatch) -> Result<(), ArrowError>,
    ) -> Result<Unflushed, ArrowError> {
        let mut failure = None;
        let found = self.read_unflushed(&mut |batch| match visit(&batch) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        });
        failure.map_or(Ok(found), Err)
    }

    /// Passes on the counts of rows that are in no file, each batch with its number, which must be above `after`.
    pub(super) fn read_counted_after(
        &self,
        after: u64,
        visit: &mut dyn FnMut(u64, RecordBatch) -> ControlFlow<()>,
    ) -> Unflushed {
        for (number, batch) in (1..).zip(&self.counted) {
            if number > after && visit(number, batch.clone()).is_break() {
                break;
            }
        }
        Unflushed::default()
    }
}
