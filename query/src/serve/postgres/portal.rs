//! A result that is fetched in parts: a portal of the extended protocol, or a cursor.

use super::columns::{BatchEncoder, Columns};
use super::command::Command;
use super::error::PgError;
use super::planned_statement::PlannedStatement;
use super::session::SessionError;
use super::writer::MessageWriter;
use crate::engine::Rows;
use crate::statement::StatementText;
use crate::worker::{RunningQuery, Session};
use datafusion::common::ParamValues;
use pgwire::messages::data::DataRow;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// A command that was parsed and, if it returns rows, planned.
#[derive(Debug)]
pub(super) enum PlannedCommand {
    /// The text had no statement.
    Empty,
    Rows(PlannedStatement),
    /// Declares a cursor, which may outlive its transaction.
    Cursor {
        name: String,
        hold: bool,
        described: PlannedStatement,
    },
    /// A command that concerns the session itself.
    Session(Command),
}

impl PlannedCommand {
    /// Returns the statement that returns rows, if there is one.
    pub(super) fn described(&self) -> Option<&PlannedStatement> {
        match self {
            Self::Rows(described) | Self::Cursor { described, .. } => Some(described),
            Self::Empty | Self::Session(_) => None,
        }
    }
}

/// A statement with its values, and the progress of its result.
pub(super) struct Portal {
    pub(super) planned: Arc<PlannedCommand>,
    values: ParamValues,
    /// The formats of its columns.
    pub(super) formats: Vec<i16>,
    /// True if the portal outlives its transaction.
    pub(super) hold: bool,
    /// True if the rows of the portal are fetched with `FETCH`.
    is_cursor: bool,
    progress: Progress,
    /// The permit for its part of the memory of the connection.
    room: Option<OwnedSemaphorePermit>,
}

enum Progress {
    New,
    Running(Box<Running>),
    Ended,
}

struct Running {
    rows: Rows,
    columns: Columns,
    batch: Option<BatchEncoder>,
}

/// The progress after a part of a result was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) rows: usize,
    /// True if the result has ended.
    pub(super) ended: bool,
}

impl Portal {
    pub(super) fn new(
        planned: Arc<PlannedCommand>,
        values: ParamValues,
        formats: Vec<i16>,
        hold: bool,
    ) -> Self {
        let (is_cursor, progress, room) = (false, Progress::New, None);
        Self { planned, values, formats, hold, is_cursor, progress, room }
    }

    /// Creates a portal for a statement that is already running.
    pub(super) fn running(text: StatementText, started: RunningQuery) -> Result<Self, PgError> {
        let RunningQuery { description, rows } = started;
        let described = PlannedStatement::new(text, description);
        let columns = described.columns(&[])?;
        let mut portal = Self::new(
            Arc::new(PlannedCommand::Rows(described)),
            ParamValues::List(Vec::new()),
            Vec::new(),
            false,
        );
        portal.progress = Progress::Running(Box::new(Running { rows, columns, batch: None }));
        Ok(portal)
    }

    /// Returns the approximate memory of the portal. Its statement counts again, because the portal keeps it when it is
    /// deallocated.
    pub(super) fn bytes(&self) -> usize {
        let statement = self.planned.described().map_or(0, PlannedStatement::bytes);
        let values = match &self.values {
            ParamValues::List(values) => values.iter().map(|value| value.value.size()).sum(),
            ParamValues::Map(_) => 0,
        };
        statement + values + size_of_val(self.formats.as_slice())
    }

    /// Adds the permit for its memory.
    pub(super) fn with_room(mut self, room: OwnedSemaphorePermit) -> Self {
        self.room = Some(room);
        self
    }

    /// Returns the cursor that the statement declares; its rows are text.
    pub(super) fn as_cursor(&self, hold: bool) -> Self {
        let planned = Arc::clone(&self.planned);
        Self { is_cursor: true, ..Self::new(planned, self.values.clone(), Vec::new(), hold) }
    }

    pub(super) fn is_cursor(&self) -> bool {
        self.is_cursor
    }

    /// Returns the columns; `None` for a command that returns no rows.
    pub(super) fn columns(&self) -> Result<Option<Columns>, PgError> {
        self.columns_in(&self.formats)
    }

    /// Returns the columns in these formats.
    pub(super) fn columns_in(&self, formats: &[i16]) -> Result<Option<Columns>, PgError> {
        self.planned.described().map(|described| described.columns(formats)).transpose()
    }

    /// Changes the formats of the following rows, which every `FETCH` may do.
    pub(super) fn change_formats(&mut self, formats: &[i16]) -> Result<(), PgError> {
        if self.formats == formats {
            return Ok(());
        }
        let columns = self.columns_in(formats)?;
        if let (Progress::Running(running), Some(columns)) = (&mut self.progress, columns) {
            running.batch = running.batch.take().map(|batch| batch.continued(&columns));
            running.columns = columns;
        }
        self.formats = formats.to_vec();
        Ok(())
    }

    /// Sends the next rows, or all remaining ones.
    pub(super) async fn send(
        &mut self,
        session: &Session,
        writer: &mut MessageWriter,
        most: Option<usize>,
    ) -> Result<Sent, SessionError> {
        let mut sent = Sent { rows: 0, ended: false };
        self.start(session).await?;
        while most.is_none_or(|most| sent.rows < most) {
            let Some(row) = self.next().await else {
                self.progress = Progress::Ended;
                return Ok(Sent { ended: true, ..sent });
            };
            writer.write_row(&row?)?;
            writer.flush_if_full().await?;
            sent.rows += 1;
        }
        Ok(sent)
    }

    async fn start(&mut self, session: &Session) -> Result<(), PgError> {
        let (Progress::New, Some(described)) = (&self.progress, self.planned.described()) else {
            return Ok(());
        };
        let started = session.run(&described.text, &self.values).await;
        let rows = started.map_err(|error| PgError::of(error, &described.text.sql))?.rows;
        // The columns stay as they were described, even if the tables have changed since.
        let columns = described.columns(&self.formats)?;
        self.progress = Progress::Running(Box::new(Running { rows, columns, batch: None }));
        Ok(())
    }

    async fn next(&mut self) -> Option<Result<DataRow, PgError>> {
        let Progress::Running(running) = &mut self.progress else { return None };
        loop {
            if let Some(row) = running.batch.as_mut().and_then(BatchEncoder::next) {
                return Some(row);
            }
            running.batch = match running.rows.next().await? {
                Ok(batch) => match running.columns.encode(&batch) {
                    Ok(encoding) => Some(encoding),
                    Err(error) => return Some(Err(error)),
                },
                Err(error) => {
                    let sql = self.planned.described().map_or("", |described| &described.text.sql);
                    return Some(Err(PgError::of(error, sql)));
                }
            };
        }
    }
}
