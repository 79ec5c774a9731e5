//! The session of a client after startup: simple queries, and the parts that both query protocols share. The extended
//! query protocol is in `extended.rs`.

use super::PostgresServer;
use super::columns::Columns;
use super::command::Command;
use super::error::PgError;
use super::message::Message;
use super::parser::parse_commands;
use super::planned_statement::PlannedStatement;
use super::portal::{PlannedCommand, Portal};
use super::reader::Received;
use super::settings::{Outcome, Settings};
use super::startup::StartedSession;
use super::writer::MessageWriter;
use crate::engine::deep_stack;
use crate::statement::{StatementOrigin, StatementText};
use crate::worker::Session;
use bytes::{BufMut, BytesMut};
use datafusion::common::ParamValues;
use pgwire::messages::PgWireBackendMessage as Reply;
use pgwire::messages::data::DataRow;
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::ParameterStatus;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum number of open cursors and portals of a connection.
const PORTALS: usize = 100;

/// The approximate memory of a prepared statement or a cursor, in addition to its name and its text.
pub(super) const NAME_BYTES: usize = 256;

/// The reason why a message could not be handled.
#[derive(Debug)]
pub(super) enum SessionError {
    /// The client gets an error message.
    Reported(PgError),
    /// The connection failed.
    Disconnected(io::Error),
}

impl From<PgError> for SessionError {
    fn from(error: PgError) -> Self {
        Self::Reported(error)
    }
}

impl From<io::Error> for SessionError {
    fn from(error: io::Error) -> Self {
        Self::Disconnected(error)
    }
}

/// The session of one client.
pub(super) struct PostgresSession {
    pub(super) server: Arc<PostgresServer>,
    started: StartedSession,
    pub(super) writer: MessageWriter,
    /// The prepared statements, each with the permit for its memory.
    pub(super) statements: HashMap<String, (Arc<PlannedCommand>, OwnedSemaphorePermit)>,
    /// The memory that is left for prepared statements, cursors and portals.
    kept: Arc<Semaphore>,
    pub(super) portals: HashMap<String, Portal>,
    transaction: TransactionStatus,
    /// The settings before `SET LOCAL`, which the end of the transaction restores.
    before: Option<(Settings, Duration)>,
    /// True if messages are skipped until the client sends `Sync`, as after an error.
    skip_until_sync: bool,
}

impl PostgresSession {
    pub(super) fn new(server: Arc<PostgresServer>, started: StartedSession, writer: MessageWriter) -> Self {
        let kept = Arc::new(Semaphore::new(server.retained_bytes()));
        Self {
            server,
            started,
            writer,
            statements: HashMap::new(),
            kept,
            portals: HashMap::new(),
            transaction: TransactionStatus::Idle,
            before: None,
            skip_until_sync: false,
        }
    }

    pub(super) fn writer(&mut self) -> &mut MessageWriter {
        &mut self.writer
    }

    pub(super) fn session(&self) -> &Session {
        &self.started.session
    }

    /// Handles one message. Returns false when it was the last one.
    pub(super) async fn handle(&mut self, received: Received) -> io::Result<bool> {
        let (result, is_extended) = match received {
            Received::Closed | Received::Message(Message::Terminate) => return Ok(false),
            Received::Invalid(error, is_extended) => (Err(error.into()), is_extended),
            Received::Message(message) => {
                let is_extended = message.is_followed_by_sync();
                (self.handle_unless_cancelled(message).await, is_extended)
            }
        };
        match result {
            Ok(()) => Ok(true),
            Err(SessionError::Disconnected(error)) => Err(error),
            Err(SessionError::Reported(error)) => self.send_error(&error, is_extended).await,
        }
    }

    async fn handle_unless_cancelled(&mut self, message: Message) -> Result<(), SessionError> {
        let mut requested = self.started.cancel_key.requested.clone();
        requested.mark_unchanged();
        tokio::select! {
            biased;
            result = self.handle_message(message) => result,
            Ok(()) = requested.changed() => Err(PgError::cancelled().into()),
        }
    }

    async fn handle_message(&mut self, message: Message) -> Result<(), SessionError> {
        if self.skip_until_sync && message != Message::Sync {
            return Ok(());
        }
        match message {
            Message::Query(sql) => self.query(sql).await,
            Message::Parse { name, sql, types } => self.parse(name, sql, &types).await,
            Message::Bind(bind) => self.bind(bind),
            Message::Describe(target) => self.describe(&target),
            Message::Execute { portal, most } => self.execute(portal, most).await,
            Message::Close(target) => self.close(&target),
            Message::Flush => Ok(self.writer.flush().await?),
            Message::Sync => {
                self.skip_until_sync = false;
                self.ready().await
            }
            Message::Terminate | Message::Password(_) | Message::Copy => Ok(()),
        }
    }

    /// Sends an error. Returns false when it ends the connection.
    async fn send_error(&mut self, error: &PgError, is_extended: bool) -> io::Result<bool> {
        if self.skip_until_sync && !error.fatal {
            return Ok(true);
        }
        self.writer.write(&Reply::ErrorResponse(error.response()))?;
        self.transaction = self.transaction.to_error_state();
        if error.fatal {
            return Ok(false);
        }
        if is_extended {
            self.skip_until_sync = true;
            self.writer.flush().await?;
        } else {
            self.send_ready().await?;
        }
        Ok(true)
    }

    /// Tells the client that the next query may follow, and closes objects that end with the transaction.
    async fn ready(&mut self) -> Result<(), SessionError> {
        Ok(self.send_ready().await?)
    }

    async fn send_ready(&mut self) -> io::Result<()> {
        if self.transaction == TransactionStatus::Idle {
            self.portals.retain(|_, portal| portal.hold);
        }
        self.writer.ready(ReadyForQuery::new(self.transaction)).await
    }

    async fn query(&mut self, sql: String) -> Result<(), SessionError> {
        let commands = self.read(&sql).await?;
        if commands.is_empty() {
            self.writer.write(&Reply::EmptyQueryResponse(EmptyQueryResponse::new()))?;
        }
        for (index, command) in commands.into_iter().enumerate() {
            self.check_transaction(&command)?;
            let text = self.text(sql.clone(), index, &[]);
            match command {
                Command::Query(_) => self.run_simple_query(text).await?,
                other => {
                    let planned = self.plan(other, text).await?;
                    self.run_simple(planned).await?;
                }
            }
        }
        self.ready().await
    }

    /// Returns one of the statements of a text in the form that the engine takes.
    pub(super) fn text(&self, sql: String, index: usize, types: &[u32]) -> StatementText {
        let origin =
            StatementOrigin::Postgres { user: self.started.user.clone(), index, types: types.to_vec() };
        StatementText { sql, origin }
    }

    /// Parses the commands of a text, all of which are allowed. The worker that runs one of them parses the text again,
    /// because it does not rely on this process.
    pub(super) async fn read(&self, sql: &str) -> Result<Vec<Command>, PgError> {
        let (text, limits) = (sql.to_owned(), *self.server.service.limits());
        let turn = Arc::clone(&self.server.parsing).acquire_owned().await;
        let read = async move {
            // The permit is held until the text is parsed, even if the client has disconnected.
            let _turn = turn;
            parse_commands(&text, &limits)
        };
        let read = deep_stack::run(tokio::runtime::Handle::current(), read).await;
        read.map_err(|error| PgError::of(error, sql))
    }

    /// Reserves memory of the connection.
    pub(super) fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, PgError> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Arc::clone(&self.kept).try_acquire_many_owned(bytes).map_err(|_| {
            let most = self.server.retained_bytes() >> 10;
            let message =
                format!("prepared statements and cursors of this connection take more than {most} KiB");
            PgError::error("53200", message).hint("DEALLOCATE or CLOSE some")
        })
    }

    /// Rejects commands in a failed transaction, except those that end it.
    pub(super) fn check_transaction(&self, command: &Command) -> Result<(), PgError> {
        let is_end = matches!(command, Command::Commit | Command::Rollback | Command::RollbackTo);
        if self.transaction == TransactionStatus::Error && !is_end {
            return Err(PgError::error(
                "25P02",
                "the transaction has failed, and ignores commands until it ends",
            )
            .hint("ROLLBACK"));
        }
        Ok(())
    }

    pub(super) async fn plan(
        &self,
        command: Command,
        text: StatementText,
    ) -> Result<PlannedCommand, PgError> {
        Ok(match command {
            Command::Query(_) => PlannedCommand::Rows(self.described(text).await?),
            Command::Declare { name, hold, .. } => {
                PlannedCommand::Cursor { name, hold, described: self.described(text).await? }
            }
            own => PlannedCommand::Session(own),
        })
    }

    async fn described(&self, text: StatementText) -> Result<PlannedStatement, PgError> {
        match self.session().describe(&text, None).await {
            Ok(description) => Ok(PlannedStatement::new(text, description)),
            Err(error) => Err(PgError::of(error, &text.sql)),
        }
    }

    /// Runs a statement that returns rows.
    async fn run_simple_query(&mut self, text: StatementText) -> Result<(), SessionError> {
        let started = self.session().run(&text, &ParamValues::List(Vec::new())).await;
        let started = started.map_err(|error| PgError::of(error, &text.sql))?;
        let mut portal = Portal::running(text, started)?;
        if let Some(columns) = portal.columns()? {
            self.writer.write(&Reply::RowDescription(columns.description()))?;
        }
        self.run(&mut portal, None).await.map(drop)
    }

    async fn run_simple(&mut self, planned: PlannedCommand) -> Result<(), SessionError> {
        if let PlannedCommand::Session(command) = &planned {
            if let Some(columns) = self.session_columns(command, &[])? {
                self.writer.write(&Reply::RowDescription(columns.description()))?;
            }
            return self.run_session_command(command, &[]).await;
        }
        let no_values = ParamValues::List(Vec::new());
        let mut portal = Portal::new(Arc::new(planned), no_values, Vec::new(), false);
        self.run(&mut portal, None).await.map(drop)
    }

    /// Executes a portal. Returns true when there may be more rows.
    pub(super) async fn run(
        &mut self,
        portal: &mut Portal,
        most: Option<usize>,
    ) -> Result<bool, SessionError> {
        let planned = Arc::clone(&portal.planned);
        match planned.as_ref() {
            PlannedCommand::Empty => {
                self.writer.write(&Reply::EmptyQueryResponse(EmptyQueryResponse::new()))?;
            }
            PlannedCommand::Session(command) => self.run_session_command(command, &portal.formats).await?,
            PlannedCommand::Cursor { name, hold, .. } => {
                let cursor = portal.as_cursor(*hold);
                self.open(name.clone(), cursor)?;
                self.complete("DECLARE CURSOR")?;
            }
            PlannedCommand::Rows(described) => {
                let sent = portal.send(&self.started.session, &mut self.writer, most).await?;
                if !sent.ended {
                    return Ok(true);
                }
                self.complete(&format!("{} {}", described.tag(), sent.rows))?;
            }
        }
        Ok(false)
    }

    /// Stores a portal or cursor under its name.
    pub(super) fn open(&mut self, name: String, portal: Portal) -> Result<(), PgError> {
        if !name.is_empty() && self.portals.contains_key(&name) {
            return Err(PgError::error("42P03", format!("there is a cursor '{name}' already")));
        }
        if self.portals.len() >= PORTALS {
            return Err(PgError::error("54000", format!("{PORTALS} cursors are open")).hint("close some"));
        }
        let room = self.room(NAME_BYTES + name.len() + portal.bytes())?;
        self.portals.insert(name, portal.with_room(room));
        Ok(())
    }

    pub(super) fn complete(&mut self, tag: &str) -> io::Result<()> {
        self.writer.write(&Reply::CommandComplete(CommandComplete::new(tag.to_owned())))
    }

    /// Returns the columns of a command that the session executes itself.
    pub(super) fn session_columns(
        &self,
        command: &Command,
        formats: &[i16],
    ) -> Result<Option<Columns>, PgError> {
        match command {
            Command::Show(name) => {
                let (name, _) = self.started.settings.show(name, self.session().time_limit())?;
                Ok(Some(Columns::text(name)))
            }
            Command::Fetch { name, .. } => {
                self.portals.get(name).ok_or_else(|| no_cursor(name))?.columns_in(formats)
            }
            _ => Ok(None),
        }
    }

    /// Executes a command that concerns the session itself.
    async fn run_session_command(&mut self, command: &Command, formats: &[i16]) -> Result<(), SessionError> {
        let tag = match command {
            Command::Begin => {
                self.transaction = self.transaction.to_in_transaction_state();
                "BEGIN"
            }
            Command::Commit if self.transaction == TransactionStatus::Error => {
                self.end_transaction("ROLLBACK")
            }
            Command::Commit => self.end_transaction("COMMIT"),
            Command::Rollback => self.end_transaction("ROLLBACK"),
            Command::RollbackTo => {
                self.transaction = self.transaction.to_idle_state().to_in_transaction_state();
                "ROLLBACK"
            }
            Command::NoOp(tag) => tag,
            Command::Set { name, value, local } => {
                self.set(name, value.as_deref(), *local)?;
                "SET"
            }
            Command::Reset(name) => self.reset(name.as_deref())?,
            Command::Show(name) => self.show(name)?,
            Command::Discard(all) => self.discard(*all)?,
            Command::Deallocate(name) => self.deallocate(name.as_deref())?,
            Command::Close(name) => self.close_cursor(name.as_deref())?,
            Command::Fetch { name, count } => return self.fetch(name, *count, formats).await,
            // These commands are planned before, and not executed here.
            Command::Query(_) | Command::Declare { .. } => return Ok(()),
        };
        Ok(self.complete(tag)?)
    }

    fn end_transaction(&mut self, tag: &'static str) -> &'static str {
        self.transaction = TransactionStatus::Idle;
        self.portals.retain(|_, portal| portal.hold);
        if let Some((settings, time)) = self.before.take() {
            self.started.settings = settings;
            self.started.session.set_time_limit(time);
        }
        tag
    }

    fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<(), SessionError> {
        if local && self.transaction == TransactionStatus::Idle {
            return Ok(self.note("SET LOCAL has an effect in transactions only")?);
        }
        if local && self.before.is_none() {
            self.before = Some((self.started.settings.clone(), self.started.session.time_limit()));
        }
        match self.started.settings.set(name, value)? {
            Outcome::Done => {}
            Outcome::Time(time) => self.started.session.set_time_limit(time.unwrap_or_default()),
            Outcome::Note(note) => self.note(note)?,
            Outcome::Report(name, value) => {
                self.writer.write(&Reply::ParameterStatus(ParameterStatus::new(name.to_owned(), value)))?;
            }
        }
        Ok(())
    }

    fn note(&mut self, note: &str) -> io::Result<()> {
        self.writer.write(&Reply::NoticeResponse(PgError::error("01000", note).notice()))
    }

    fn reset(&mut self, name: Option<&str>) -> Result<&'static str, SessionError> {
        match name {
            Some(name) => self.set(name, None, false)?,
            None => {
                self.started.settings = Settings::default();
                self.started.session.set_time_limit(Duration::ZERO);
            }
        }
        Ok("RESET")
    }

    fn show(&mut self, name: &str) -> Result<&'static str, SessionError> {
        let (_, value) = self.started.settings.show(name, self.session().time_limit())?;
        let mut row = BytesMut::new();
        row.put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
        row.put_slice(value.as_bytes());
        self.writer.write_row(&DataRow::new(row, 1))?;
        Ok("SHOW")
    }

    fn discard(&mut self, all: bool) -> Result<&'static str, SessionError> {
        if !all {
            return Ok("DISCARD");
        }
        if self.transaction != TransactionStatus::Idle {
            return Err(PgError::error("25001", "DISCARD ALL cannot be in a transaction").into());
        }
        self.statements.clear();
        self.portals.clear();
        self.reset(None)?;
        Ok("DISCARD ALL")
    }

    fn deallocate(&mut self, name: Option<&str>) -> Result<&'static str, SessionError> {
        let Some(name) = name else {
            self.statements.clear();
            return Ok("DEALLOCATE ALL");
        };
        if self.statements.remove(name).is_none() {
            return Err(PgError::error("26000", format!("there is no prepared statement '{name}'")).into());
        }
        Ok("DEALLOCATE")
    }

    fn close_cursor(&mut self, name: Option<&str>) -> Result<&'static str, SessionError> {
        let Some(name) = name else {
            self.portals.clear();
            return Ok("CLOSE CURSOR ALL");
        };
        self.portals.remove(name).ok_or_else(|| no_cursor(name))?;
        Ok("CLOSE CURSOR")
    }

    async fn fetch(&mut self, name: &str, count: Option<usize>, formats: &[i16]) -> Result<(), SessionError> {
        let cursor = self.portals.get_mut(name).ok_or_else(|| no_cursor(name))?;
        cursor.change_formats(formats)?;
        let sent = cursor.send(&self.started.session, &mut self.writer, count).await?;
        Ok(self.complete(&format!("FETCH {}", sent.rows))?)
    }
}

fn no_cursor(name: &str) -> PgError {
    PgError::error("34000", format!("there is no cursor '{name}'"))
}
