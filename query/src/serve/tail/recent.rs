//! The newest stored events, which precede the live ones.

use super::request::TailRequest;
use crate::error::QueryError;
use crate::worker::Session;
use arrow::array::{AsArray, RecordBatch};
use std::collections::HashMap;
use store::{Table, json};

/// The newest events, oldest first.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// The events as lines of JSON.
    pub(super) lines: String,
    /// The number of events with each id.
    pub(super) ids: HashMap<String, usize>,
}

/// Queries the newest matching events, whether they are flushed or not.
pub(super) async fn newest(request: &TailRequest, session: &Session) -> Result<Recent, QueryError> {
    let names: Vec<String> =
        Table::Events.columns().iter().map(|column| format!("\"{}\"", column.name)).collect();
    let (columns, condition, most) = (names.join(", "), request.sql(), request.recent);
    let statement = format!(
        "SELECT * FROM (SELECT {columns} FROM events WHERE {condition} ORDER BY time DESC LIMIT {most}) \
         ORDER BY time"
    );
    let mut rows = session.query(&statement).await?;
    let mut recent = Recent::default();
    while let Some(batch) = rows.next().await {
        recent.add(&batch?);
    }
    Ok(recent)
}

impl Recent {
    fn add(&mut self, batch: &RecordBatch) {
        json::lines(Table::Events, batch, &mut self.lines);
        for id in ids(batch) {
            *self.ids.entry(id.to_owned()).or_default() += 1;
        }
    }

    /// Returns true if an event was among them; each occurrence counts once.
    pub(super) fn was_sent(&mut self, id: &str) -> bool {
        match self.ids.get_mut(id) {
            Some(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }
}

/// Returns the ids of the events in a batch.
pub(super) fn ids(batch: &RecordBatch) -> impl Iterator<Item = &str> {
    let ids = batch.column_by_name("event_id").and_then(|ids| ids.as_string_opt::<i32>());
    ids.into_iter().flat_map(|ids| ids.iter().map(Option::unwrap_or_default))
}
