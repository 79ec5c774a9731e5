//! An answer that is fetched piece by piece: a portal of the extended protocol, or a cursor.

use super::columns::{Columns, Encoding};
use super::command::Command;
use super::conversation::Trouble;
use super::described::Described;
use super::failure::Failure;
use super::outbox::Outbox;
use crate::engine::Rows;
use crate::statement::StatementText;
use crate::worker::{Session, Started};
use datafusion::common::ParamValues;
use pgwire::messages::data::DataRow;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// A statement that was read and planned.
#[derive(Debug)]
pub(super) enum Planned {
    /// There was nothing in it.
    Nothing,
    Rows(Described),
    /// A cursor to be opened; whether it outlives its transaction.
    Cursor {
        name: String,
        hold: bool,
        described: Described,
    },
    /// Something of the connection's own.
    Own(Command),
}

impl Planned {
    /// The statement that gives rows, if it is one.
    pub(super) fn described(&self) -> Option<&Described> {
        match self {
            Self::Rows(described) | Self::Cursor { described, .. } => Some(described),
            Self::Nothing | Self::Own(_) => None,
        }
    }
}

/// A statement with its values, and what has been fetched of it.
pub(super) struct Portal {
    pub(super) planned: Arc<Planned>,
    values: ParamValues,
    /// The formats of its columns.
    pub(super) formats: Vec<i16>,
    /// Whether it outlives its transaction.
    pub(super) hold: bool,
    /// Whether its rows are fetched with `FETCH`.
    is_cursor: bool,
    progress: Progress,
    /// Its part of the memory of its connection.
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
    batch: Option<Encoding>,
}

/// What was sent of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) rows: usize,
    /// Whether that was all.
    pub(super) ended: bool,
}

impl Portal {
    pub(super) fn new(planned: Arc<Planned>, values: ParamValues, formats: Vec<i16>, hold: bool) -> Self {
        let (is_cursor, progress, room) = (false, Progress::New, None);
        Self { planned, values, formats, hold, is_cursor, progress, room }
    }

    /// A statement that runs already.
    pub(super) fn running(text: StatementText, started: Started) -> Result<Self, Failure> {
        let Started { description, rows } = started;
        let described = Described::new(text, description);
        let columns = described.columns(&[])?;
        let mut portal =
            Self::new(Arc::new(Planned::Rows(described)), ParamValues::List(Vec::new()), Vec::new(), false);
        portal.progress = Progress::Running(Box::new(Running { rows, columns, batch: None }));
        Ok(portal)
    }

    /// What it keeps, about. Its statement counts once more: it stays with the portal when it is deallocated.
    pub(super) fn bytes(&self) -> usize {
        let statement = self.planned.described().map_or(0, Described::bytes);
        let values = match &self.values {
            ParamValues::List(values) => values.iter().map(|value| value.value.size()).sum(),
            ParamValues::Map(_) => 0,
        };
        statement + values + size_of_val(self.formats.as_slice())
    }

    /// Holds its part of the memory of its connection.
    pub(super) fn with_room(mut self, room: OwnedSemaphorePermit) -> Self {
        self.room = Some(room);
        self
    }

    /// The cursor that a statement declares; its rows are text.
    pub(super) fn as_cursor(&self, hold: bool) -> Self {
        let planned = Arc::clone(&self.planned);
        Self { is_cursor: true, ..Self::new(planned, self.values.clone(), Vec::new(), hold) }
    }

    pub(super) fn is_cursor(&self) -> bool {
        self.is_cursor
    }

    /// The columns; none for what gives no rows.
    pub(super) fn columns(&self) -> Result<Option<Columns>, Failure> {
        self.columns_in(&self.formats)
    }

    /// The columns, in other formats.
    pub(super) fn columns_in(&self, formats: &[i16]) -> Result<Option<Columns>, Failure> {
        self.planned.described().map(|described| described.columns(formats)).transpose()
    }

    /// The formats of what follows; every `FETCH` may ask for others.
    pub(super) fn change_formats(&mut self, formats: &[i16]) -> Result<(), Failure> {
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

    /// Sends the next rows, or all that are left.
    pub(super) async fn send(
        &mut self,
        session: &Session,
        outbox: &mut Outbox,
        most: Option<usize>,
    ) -> Result<Sent, Trouble> {
        let mut sent = Sent { rows: 0, ended: false };
        self.start(session).await?;
        while most.is_none_or(|most| sent.rows < most) {
            let Some(row) = self.next().await else {
                self.progress = Progress::Ended;
                return Ok(Sent { ended: true, ..sent });
            };
            outbox.put_row(&row?)?;
            outbox.flush_much().await?;
            sent.rows += 1;
        }
        Ok(sent)
    }

    async fn start(&mut self, session: &Session) -> Result<(), Failure> {
        let (Progress::New, Some(described)) = (&self.progress, self.planned.described()) else {
            return Ok(());
        };
        let started = session.run(&described.text, &self.values).await;
        let rows = started.map_err(|error| Failure::of(error, &described.text.sql))?.rows;
        // The columns are as they were described, even if the tables have changed since.
        let columns = described.columns(&self.formats)?;
        self.progress = Progress::Running(Box::new(Running { rows, columns, batch: None }));
        Ok(())
    }

    async fn next(&mut self) -> Option<Result<DataRow, Failure>> {
        let Progress::Running(running) = &mut self.progress else { return None };
        loop {
            if let Some(row) = running.batch.as_mut().and_then(Encoding::next) {
                return Some(row);
            }
            running.batch = match running.rows.next().await? {
                Ok(batch) => match running.columns.encode(&batch) {
                    Ok(encoding) => Some(encoding),
                    Err(failure) => return Some(Err(failure)),
                },
                Err(error) => {
                    let sql = self.planned.described().map_or("", |described| &described.text.sql);
                    return Some(Err(Failure::of(error, sql)));
                }
            };
        }
    }
}
