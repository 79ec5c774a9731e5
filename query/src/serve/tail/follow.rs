//! Follows the buffer of rows that are not yet in Parquet files: it filters each record once, and sends the matching events.

use super::filter::Filter;
use super::message::{self, TailPosition};
use super::recent::{self, Recent};
use crate::error::{QueryError, QueryErrorKind};
use crate::worker::{LiveStore, QueryService};
use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::filter_record_batch;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use store::hot::{BufferedRecord, Hot};
use store::{Table, json};
use tokio::sync::{mpsc, watch};

/// The interval at which the buffer is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The time after which a client that reads nothing is disconnected.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum time without a message to the client.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// The interval at which a client without matching events learns its new position.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// The number of records that are held while they are filtered.
const RECORDS: usize = 64;
/// The size up to which events are sent in one message.
const MESSAGE_BYTES: usize = 64 << 10;

const TOO_SLOW: &str = "nothing was read for 10 seconds; reconnect with Last-Event-ID to continue";
const STOPPING: &str = "the server is stopping";

/// The tail has ended, and nothing more can be sent.
struct TailEnded;

/// The state of one tail.
pub(super) struct Follower {
    hot: Arc<Hot>,
    filter: Filter,
    /// The position up to which records were filtered. Later records are still to be filtered.
    position: TailPosition,
    /// The last position that was sent to the client.
    sent_position: TailPosition,
    last_sent: Instant,
    /// The stored events that were sent first, and the newest record that can be among them.
    recent: Option<(Recent, u64)>,
    /// Events that will be sent together.
    pending: String,
    sender: mpsc::Sender<String>,
    ending: Arc<OnceLock<&'static str>>,
}

impl Follower {
    /// Starts after a position, or with the next record.
    pub(super) fn new(
        service: &QueryService,
        filter: Filter,
        after: Option<TailPosition>,
        sender: mpsc::Sender<String>,
        ending: Arc<OnceLock<&'static str>>,
    ) -> Result<Self, QueryError> {
        let Some(LiveStore { hot, maintenance }) = service.live() else {
            return Err(QueryError::new(QueryErrorKind::Invalid, "only a running server has live events"));
        };
        let flushed = maintenance.delta().map_or(0, |delta| delta.table(Table::Events).1);
        let (newest, oldest) = hot.ends();
        let newest = newest.max(flushed);
        let gone = flushed.min(oldest.map_or(u64::MAX, |oldest| oldest.saturating_sub(1)));
        let mut pending = String::new();
        let mut position = after.unwrap_or(TailPosition::after(newest));
        // Flushed records are not in the buffer any more. A position in the future is that of another WAL.
        if position.complete() < gone || position.sequence > newest {
            let found = TailPosition::after(if position.sequence > newest { newest } else { gone });
            pending = message::gap(position, found);
            position = found;
        }
        pending.insert_str(0, &message::start(position));
        let hot = Arc::clone(hot);
        Ok(Self {
            hot,
            filter,
            position,
            sent_position: position,
            last_sent: Instant::now(),
            recent: None,
            pending,
            sender,
            ending,
        })
    }

    /// Sends stored events first. Those that are in the buffer too are not sent again.
    pub(super) fn prepend_recent(&mut self, recent: Recent) {
        for line in recent.lines.lines() {
            self.pending.push_str(&message::event(self.position, line));
        }
        let (newest, _) = self.hot.ends();
        self.recent = Some((Recent { lines: String::new(), ..recent }, newest));
    }

    /// Follows until the client disconnects or does not read, or the server stops.
    pub(super) async fn run(mut self, mut stopping: watch::Receiver<bool>) {
        let sender = self.sender.clone();
        let stopped = async {
            // An error means that the server has already stopped.
            let _ = stopping.wait_for(|is_stopping| *is_stopping).await;
        };
        let ended = tokio::select! {
            TailEnded = self.follow() => None,
            () = sender.closed() => None,
            () = stopped => Some(STOPPING),
        };
        if let Some(reason) = ended {
            let _ = self.ending.set(reason);
        }
    }

    async fn follow(&mut self) -> TailEnded {
        loop {
            if let Err(ended) = self.poll().await {
                return ended;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Sends the new events.
    async fn poll(&mut self) -> Result<(), TailEnded> {
        loop {
            let following = self.hot.after(self.position.complete(), RECORDS);
            if following.gone > self.position.complete() {
                let found = TailPosition::after(following.gone);
                self.pending.push_str(&message::gap(self.position, found));
                (self.position, self.sent_position) = (found, found);
            }
            for record in &following.records {
                self.take(record).await?;
            }
            if following.records.len() < RECORDS {
                break;
            }
        }
        if self.pending.is_empty() {
            let silent = self.last_sent.elapsed();
            if silent >= KEEPALIVE_INTERVAL
                || (silent >= PROGRESS_INTERVAL && self.sent_position != self.position)
            {
                self.pending = message::progress(self.position);
                self.sent_position = self.position;
            }
        }
        self.send().await
    }

    /// Filters one record.
    async fn take(&mut self, record: &BufferedRecord) -> Result<(), TailEnded> {
        let seen = (self.position.sequence == record.sequence).then_some(self.position.row).flatten();
        if let Some((events, rows)) = self.wanted(record, seen) {
            let mut lines = String::new();
            json::lines(Table::Events, &events, &mut lines);
            let last = rows.last().copied();
            for (line, row) in lines.lines().zip(rows) {
                let position =
                    TailPosition { sequence: record.sequence, row: (Some(row) != last).then_some(row) };
                self.pending.push_str(&message::event(position, line));
                self.sent_position = position;
                if self.pending.len() >= MESSAGE_BYTES {
                    self.send().await?;
                }
            }
        }
        self.position = TailPosition::after(record.sequence);
        // Other tasks of this thread get their turn.
        tokio::task::consume_budget().await;
        Ok(())
    }

    /// Returns the matching events of a record after a row, with their row numbers.
    fn wanted(&mut self, record: &BufferedRecord, seen: Option<u64>) -> Option<(RecordBatch, Vec<u64>)> {
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
        record: &BufferedRecord,
        seen: Option<u64>,
    ) -> Result<Option<(RecordBatch, Vec<u64>)>, QueryError> {
        let internal =
            |error: &dyn std::fmt::Display| QueryError::new(QueryErrorKind::Internal, error.to_string());
        let batch = record.current_batch(Table::Events).map_err(|error| internal(&error))?;
        let Some(batch) = batch else { return Ok(None) };
        let wanted = self.filter.rows(&batch)?;
        let is_new = |row: u64| seen.is_none_or(|seen| row > seen);
        let mut rows = Vec::new();
        let mut mask = Vec::with_capacity(batch.num_rows());
        for ((row, is_wanted), id) in (0..).zip(wanted.values()).zip(recent::ids(&batch)) {
            let is_wanted = is_wanted && is_new(row) && !was_sent(&mut self.recent, record.sequence, id);
            mask.push(is_wanted);
            if is_wanted {
                rows.push(row);
            }
        }
        let events =
            filter_record_batch(&batch, &BooleanArray::from(mask)).map_err(|error| internal(&error))?;
        Ok(Some((events, rows)))
    }

    /// Sends the pending events. It waits for a slow client, up to a timeout.
    async fn send(&mut self) -> Result<(), TailEnded> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let message = std::mem::take(&mut self.pending);
        self.last_sent = Instant::now();
        match self.sender.send_timeout(message, SEND_TIMEOUT).await {
            Ok(()) => Ok(()),
            Err(mpsc::error::SendTimeoutError::Closed(_)) => Err(TailEnded),
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => {
                let _ = self.ending.set(TOO_SLOW);
                Err(TailEnded)
            }
        }
    }
}

/// Returns true if an event was among the stored events that were sent first. Newer records cannot be.
fn was_sent(recent: &mut Option<(Recent, u64)>, sequence: u64, id: &str) -> bool {
    match recent {
        Some((recent, newest)) if sequence <= *newest => recent.was_sent(id),
        Some(_) => {
            *recent = None;
            false
        }
        None => false,
    }
}
