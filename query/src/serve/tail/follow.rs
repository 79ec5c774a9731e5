//! Follows the hot buffer: looks at each record once, and sends what is wanted of it.

use super::filter::Filter;
use super::message::{self, Place};
use super::recent::{self, Recent};
use crate::error::{Kind, QueryError};
use crate::worker::{LiveStore, QueryService};
use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::hot::{Hot, HotRecord};
use store::{Table, json};
use tokio::sync::{mpsc, watch};

/// How often the buffer is looked at.
const LOOK: Duration = Duration::from_millis(100);
/// A reader who takes nothing for so long is dropped.
const SLOWEST: Duration = Duration::from_secs(10);
/// A reader hears of us this often.
const SILENCE: Duration = Duration::from_secs(15);
/// A reader whose events are elsewhere learns this often how far we have looked.
const PROGRESS: Duration = Duration::from_secs(1);
/// Records that are held while they are looked at.
const RECORDS: usize = 64;
/// Events are sent together up to so many bytes.
const MESSAGE_BYTES: usize = 64 << 10;

const TOO_SLOW: &str = "nothing was read for 10 seconds; come back with Last-Event-ID to go on";
const STOPPING: &str = "the server is stopping";

/// No more can be sent.
struct Over;

/// One tail.
pub(super) struct Follower {
    hot: Arc<Hot>,
    filter: Filter,
    /// What was looked at.
    place: Place,
    /// What the reader knows of that.
    told: Place,
    spoke: Instant,
    /// What the reader had at first, and the newest record that can be among it.
    recent: Option<(Recent, u64)>,
    /// What waits to be sent together.
    gathered: String,
    sender: mpsc::Sender<String>,
    ending: Arc<OnceLock<&'static str>>,
}

impl Follower {
    /// Begins after a place, or now.
    pub(super) fn new(
        service: &QueryService,
        filter: Filter,
        after: Option<Place>,
        sender: mpsc::Sender<String>,
        ending: Arc<OnceLock<&'static str>>,
    ) -> Result<Self, QueryError> {
        let Some(LiveStore { hot, keeper }) = service.live() else {
            return Err(QueryError::new(Kind::Invalid, "only a running server has live events"));
        };
        let sealed = keeper.lake().map_or(0, |lake| lake.table(Table::Events).1);
        let (newest, oldest) = hot.ends();
        let newest = newest.max(sealed);
        let gone = sealed.min(oldest.map_or(u64::MAX, |oldest| oldest.saturating_sub(1)));
        let mut gathered = String::new();
        let mut place = after.unwrap_or(Place::after(newest));
        // What is sealed is not followed any more; and a place that is still to come is of another log.
        if place.complete() < gone || place.sequence > newest {
            let found = Place::after(if place.sequence > newest { newest } else { gone });
            gathered = message::gap(place, found);
            place = found;
        }
        gathered.insert_str(0, &message::hello(place));
        let hot = Arc::clone(hot);
        Ok(Self {
            hot,
            filter,
            place,
            told: place,
            spoke: Instant::now(),
            recent: None,
            gathered,
            sender,
            ending,
        })
    }

    /// Says these first. They may hold events that are followed too, which are then left out.
    pub(super) fn begin_with(&mut self, recent: Recent) {
        for line in recent.lines.lines() {
            self.gathered.push_str(&message::event(self.place, line));
        }
        let (newest, _) = self.hot.ends();
        self.recent = Some((Recent { lines: String::new(), ..recent }, newest));
    }

    /// Follows until the reader goes, does not read, or the server stops.
    pub(super) async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        let sender = self.sender.clone();
        let stopped = async {
            // Whoever cannot ask us to stop any more does not want us either.
            let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
        };
        let ended = tokio::select! {
            Over = self.follow() => None,
            () = sender.closed() => None,
            () = stopped => Some(STOPPING),
        };
        if let Some(reason) = ended {
            let _ = self.ending.set(reason);
        }
    }

    async fn follow(&mut self) -> Over {
        loop {
            if let Err(over) = self.look().await {
                return over;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Sends what is new.
    async fn look(&mut self) -> Result<(), Over> {
        loop {
            let following = self.hot.after(self.place.complete(), RECORDS);
            if following.gone > self.place.complete() {
                let found = Place::after(following.gone);
                self.gathered.push_str(&message::gap(self.place, found));
                (self.place, self.told) = (found, found);
            }
            for record in &following.records {
                self.take(record).await?;
            }
            if following.records.len() < RECORDS {
                break;
            }
        }
        if self.gathered.is_empty() {
            let silent = self.spoke.elapsed();
            if silent >= SILENCE || (silent >= PROGRESS && self.told != self.place) {
                self.gathered = message::still_here(self.place);
                self.told = self.place;
            }
        }
        self.send().await
    }

    /// Looks at one record.
    async fn take(&mut self, record: &HotRecord) -> Result<(), Over> {
        let seen = (self.place.sequence == record.sequence).then_some(self.place.row).flatten();
        if let Some((events, rows)) = self.wanted(record, seen) {
            let mut lines = String::new();
            json::lines(Table::Events, &events, &mut lines);
            let last = rows.last().copied();
            for (line, row) in lines.lines().zip(rows) {
                let place = Place { sequence: record.sequence, row: (Some(row) != last).then_some(row) };
                self.gathered.push_str(&message::event(place, line));
                self.told = place;
                if self.gathered.len() >= MESSAGE_BYTES {
                    self.send().await?;
                }
            }
        }
        self.place = Place::after(record.sequence);
        // Others want to look at theirs.
        tokio::task::consume_budget().await;
        Ok(())
    }

    /// The events of a record that are wanted, after a row; and their rows.
    fn wanted(&mut self, record: &HotRecord, seen: Option<u64>) -> Option<(RecordBatch, Vec<u64>)> {
        if record.rows[Table::Events as usize] == 0 {
            return None;
        }
        let found = self.filtered(record, seen);
        let found = found.inspect_err(|error| {
            tracing::warn!(sequence = record.sequence, "a tail leaves out a record: {error}");
        });
        found.ok().flatten().filter(|(events, _)| events.num_rows() > 0)
    }

    fn filtered(
        &mut self,
        record: &HotRecord,
        seen: Option<u64>,
    ) -> Result<Option<(RecordBatch, Vec<u64>)>, QueryError> {
        let internal = |error: &dyn std::fmt::Display| QueryError::new(Kind::Internal, error.to_string());
        let batch = record.current_batch(Table::Events).map_err(|error| internal(&error))?;
        let Some(batch) = batch else { return Ok(None) };
        let wanted = self.filter.rows(&batch)?;
        let is_new = |row: u64| seen.is_none_or(|seen| row > seen);
        let mut rows = Vec::new();
        let mut mask = Vec::with_capacity(batch.num_rows());
        for ((row, is_wanted), id) in (0..).zip(wanted.values()).zip(recent::ids(&batch)) {
            let is_wanted = is_wanted && is_new(row) && !had(&mut self.recent, record.sequence, id);
            mask.push(is_wanted);
            if is_wanted {
                rows.push(row);
            }
        }
        let events =
            filter_record_batch(&batch, &BooleanArray::from(mask)).map_err(|error| internal(&error))?;
        Ok(Some((events, rows)))
    }

    /// Hands over what has gathered; waits for a reader who is behind, but not for ever.
    async fn send(&mut self) -> Result<(), Over> {
        if self.gathered.is_empty() {
            return Ok(());
        }
        let message = std::mem::take(&mut self.gathered);
        self.spoke = Instant::now();
        match self.sender.send_timeout(message, SLOWEST).await {
            Ok(()) => Ok(()),
            Err(mpsc::error::SendTimeoutError::Closed(_)) => Err(Over),
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => {
                let _ = self.ending.set(TOO_SLOW);
                Err(Over)
            }
        }
    }
}

/// Whether the reader had an event among the first; nothing newer than those can be.
fn had(recent: &mut Option<(Recent, u64)>, sequence: u64, id: &str) -> bool {
    match recent {
        Some((recent, newest)) if sequence <= *newest => recent.had(id),
        Some(_) => {
            *recent = None;
            false
        }
        None => false,
    }
}
