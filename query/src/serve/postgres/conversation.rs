//! What is said after startup: simple queries, and what both protocols share. `extended.rs` has the other one.

use super::Door;
use super::columns::Columns;
use super::command::Command;
use super::described::Described;
use super::failure::Failure;
use super::inbox::Received;
use super::message::Message;
use super::outbox::Outbox;
use super::portal::{Planned, Portal};
use super::settings::{Outcome, Settings};
use super::startup::Guest;
use crate::engine::deep_stack;
use crate::statement::{Origin, StatementText};
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

/// Cursors and portals that a connection may have open.
const PORTALS: usize = 100;

/// What a prepared statement or a cursor takes beside its name and its text, about.
pub(super) const NAME_BYTES: usize = 256;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// The client is told.
    Failure(Failure),
    /// There is nobody to tell.
    Gone(io::Error),
}

impl From<Failure> for Trouble {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

/// A conversation with one client.
pub(super) struct Conversation {
    pub(super) door: Arc<Door>,
    guest: Guest,
    pub(super) outbox: Outbox,
    /// Each with its part of the memory of the connection.
    pub(super) statements: HashMap<String, (Arc<Planned>, OwnedSemaphorePermit)>,
    /// What the connection may still keep.
    kept: Arc<Semaphore>,
    pub(super) portals: HashMap<String, Portal>,
    transaction: TransactionStatus,
    /// What was set before `SET LOCAL`.
    before: Option<(Settings, Duration)>,
    /// After an error, everything is passed over until the client says `Sync`.
    silent: bool,
}

impl Conversation {
    pub(super) fn new(door: Arc<Door>, guest: Guest, outbox: Outbox) -> Self {
        let kept = Arc::new(Semaphore::new(door.kept_bytes()));
        Self {
            door,
            guest,
            outbox,
            statements: HashMap::new(),
            kept,
            portals: HashMap::new(),
            transaction: TransactionStatus::Idle,
            before: None,
            silent: false,
        }
    }

    pub(super) fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    pub(super) fn session(&self) -> &Session {
        &self.guest.session
    }

    /// Answers one message; false when that was the last one.
    pub(super) async fn answer(&mut self, received: Received) -> io::Result<bool> {
        let (answered, is_extended) = match received {
            Received::Closed | Received::Message(Message::Terminate) => return Ok(false),
            Received::Bad(failure, is_extended) => (Err(failure.into()), is_extended),
            Received::Message(message) => {
                let is_extended = message.is_followed_by_sync();
                (self.unless_cancelled(message).await, is_extended)
            }
        };
        match answered {
            Ok(()) => Ok(true),
            Err(Trouble::Gone(error)) => Err(error),
            Err(Trouble::Failure(failure)) => self.apologize(&failure, is_extended).await,
        }
    }

    async fn unless_cancelled(&mut self, message: Message) -> Result<(), Trouble> {
        let mut alarm = self.guest.place.alarm.clone();
        alarm.mark_unchanged();
        tokio::select! {
            biased;
            answered = self.heard(message) => answered,
            Ok(()) = alarm.changed() => Err(Failure::cancelled().into()),
        }
    }

    async fn heard(&mut self, message: Message) -> Result<(), Trouble> {
        if self.silent && message != Message::Sync {
            return Ok(());
        }
        match message {
            Message::Query(sql) => self.query(sql).await,
            Message::Parse { name, sql, types } => self.parse(name, sql, &types).await,
            Message::Bind(bind) => self.bind(bind),
            Message::Describe(target) => self.describe(&target),
            Message::Execute { portal, most } => self.execute(portal, most).await,
            Message::Close(target) => self.close(&target),
            Message::Flush => Ok(self.outbox.flush().await?),
            Message::Sync => {
                self.silent = false;
                self.ready().await
            }
            Message::Terminate | Message::Password(_) | Message::Copy => Ok(()),
        }
    }

    /// Says what went wrong; false when it ends the connection.
    async fn apologize(&mut self, failure: &Failure, is_extended: bool) -> io::Result<bool> {
        if self.silent && !failure.fatal {
            return Ok(true);
        }
        self.outbox.put(&Reply::ErrorResponse(failure.response()))?;
        self.transaction = self.transaction.to_error_state();
        if failure.fatal {
            return Ok(false);
        }
        if is_extended {
            self.silent = true;
            self.outbox.flush().await?;
        } else {
            self.ready_again().await?;
        }
        Ok(true)
    }

    /// Says that the next may come; what ends with a transaction has ended.
    async fn ready(&mut self) -> Result<(), Trouble> {
        Ok(self.ready_again().await?)
    }

    async fn ready_again(&mut self) -> io::Result<()> {
        if self.transaction == TransactionStatus::Idle {
            self.portals.retain(|_, portal| portal.hold);
        }
        self.outbox.ready(ReadyForQuery::new(self.transaction)).await
    }

    async fn query(&mut self, sql: String) -> Result<(), Trouble> {
        let commands = self.read(&sql).await?;
        if commands.is_empty() {
            self.outbox.put(&Reply::EmptyQueryResponse(EmptyQueryResponse::new()))?;
        }
        for (index, command) in commands.into_iter().enumerate() {
            self.check_transaction(&command)?;
            let text = self.text(sql.clone(), index, &[]);
            match command {
                Command::Query(_) => self.simple_rows(text).await?,
                other => {
                    let planned = self.plan(other, text).await?;
                    self.simple(planned).await?;
                }
            }
        }
        self.ready().await
    }

    /// One of the statements of a text, as it is passed on.
    pub(super) fn text(&self, sql: String, index: usize, types: &[u32]) -> StatementText {
        let origin = Origin::Postgres { user: self.guest.user.clone(), index, types: types.to_vec() };
        StatementText { sql, origin }
    }

    /// The commands of a text, all of them allowed. Statements that give rows are read again where they run.
    pub(super) async fn read(&self, sql: &str) -> Result<Vec<Command>, Failure> {
        let (reader, limits) = (Arc::clone(&self.door.reader), *self.door.service.limits());
        let (text, user) = (sql.to_owned(), self.guest.user.clone());
        let turn = Arc::clone(&self.door.reading).acquire_owned().await;
        let read = async move {
            // Held until the text is read, even if nobody waits for it any more.
            let _turn = turn;
            reader.read(&text, &user, &limits)
        };
        let read = deep_stack::run(tokio::runtime::Handle::current(), read).await;
        read.map_err(|error| Failure::of(error, sql))
    }

    /// A part of what the connection may keep.
    pub(super) fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit, Failure> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Arc::clone(&self.kept).try_acquire_many_owned(bytes).map_err(|_| {
            let most = self.door.kept_bytes() >> 10;
            let message =
                format!("prepared statements and cursors of this connection take more than {most} KiB");
            Failure::error("53200", message).hint("DEALLOCATE or CLOSE some")
        })
    }

    /// After an error, a transaction only waits for its end.
    pub(super) fn check_transaction(&self, command: &Command) -> Result<(), Failure> {
        let is_end = matches!(command, Command::Commit | Command::Rollback | Command::RollbackTo);
        if self.transaction == TransactionStatus::Error && !is_end {
            return Err(
                Failure::error("25P02", "the transaction has failed, and waits for its end").hint("ROLLBACK")
            );
        }
        Ok(())
    }

    pub(super) async fn plan(&self, command: Command, text: StatementText) -> Result<Planned, Failure> {
        Ok(match command {
            Command::Query(_) => Planned::Rows(self.described(text).await?),
            Command::Declare { name, hold, .. } => {
                Planned::Cursor { name, hold, described: self.described(text).await? }
            }
            own => Planned::Own(own),
        })
    }

    async fn described(&self, text: StatementText) -> Result<Described, Failure> {
        match self.session().describe(&text, None).await {
            Ok(description) => Ok(Described::new(text, description)),
            Err(error) => Err(Failure::of(error, &text.sql)),
        }
    }

    /// Runs a statement that gives rows.
    async fn simple_rows(&mut self, text: StatementText) -> Result<(), Trouble> {
        let started = self.session().run(&text, &ParamValues::List(Vec::new())).await;
        let started = started.map_err(|error| Failure::of(error, &text.sql))?;
        let mut portal = Portal::running(text, started)?;
        if let Some(columns) = portal.columns()? {
            self.outbox.put(&Reply::RowDescription(columns.description()))?;
        }
        self.run(&mut portal, None).await.map(drop)
    }

    async fn simple(&mut self, planned: Planned) -> Result<(), Trouble> {
        if let Planned::Own(command) = &planned {
            if let Some(columns) = self.own_columns(command, &[])? {
                self.outbox.put(&Reply::RowDescription(columns.description()))?;
            }
            return self.own(command, &[]).await;
        }
        let no_values = ParamValues::List(Vec::new());
        let mut portal = Portal::new(Arc::new(planned), no_values, Vec::new(), false);
        self.run(&mut portal, None).await.map(drop)
    }

    /// Does what a portal asks for. True when there may be more.
    pub(super) async fn run(&mut self, portal: &mut Portal, most: Option<usize>) -> Result<bool, Trouble> {
        let planned = Arc::clone(&portal.planned);
        match planned.as_ref() {
            Planned::Nothing => self.outbox.put(&Reply::EmptyQueryResponse(EmptyQueryResponse::new()))?,
            Planned::Own(command) => self.own(command, &portal.formats).await?,
            Planned::Cursor { name, hold, .. } => {
                let cursor = portal.as_cursor(*hold);
                self.open(name.clone(), cursor)?;
                self.done("DECLARE CURSOR")?;
            }
            Planned::Rows(described) => {
                let sent = portal.send(&self.guest.session, &mut self.outbox, most).await?;
                if !sent.ended {
                    return Ok(true);
                }
                self.done(&format!("{} {}", described.tag(), sent.rows))?;
            }
        }
        Ok(false)
    }

    /// Keeps a portal or cursor under its name.
    pub(super) fn open(&mut self, name: String, portal: Portal) -> Result<(), Failure> {
        if !name.is_empty() && self.portals.contains_key(&name) {
            return Err(Failure::error("42P03", format!("there is a cursor '{name}' already")));
        }
        if self.portals.len() >= PORTALS {
            return Err(Failure::error("54000", format!("{PORTALS} cursors are open")).hint("close some"));
        }
        let room = self.room(NAME_BYTES + name.len() + portal.bytes())?;
        self.portals.insert(name, portal.with_room(room));
        Ok(())
    }

    pub(super) fn done(&mut self, tag: &str) -> io::Result<()> {
        self.outbox.put(&Reply::CommandComplete(CommandComplete::new(tag.to_owned())))
    }

    /// The columns of what the connection itself answers.
    pub(super) fn own_columns(&self, command: &Command, formats: &[i16]) -> Result<Option<Columns>, Failure> {
        match command {
            Command::Show(name) => {
                let (name, _) = self.guest.settings.show(name, self.session().time())?;
                Ok(Some(Columns::text(name)))
            }
            Command::Fetch { name, .. } => {
                self.portals.get(name).ok_or_else(|| no_cursor(name))?.columns_in(formats)
            }
            _ => Ok(None),
        }
    }

    /// Does what concerns the connection itself.
    async fn own(&mut self, command: &Command, formats: &[i16]) -> Result<(), Trouble> {
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
            Command::Said(tag) => tag,
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
            // Planned, not done here.
            Command::Query(_) | Command::Declare { .. } => return Ok(()),
        };
        Ok(self.done(tag)?)
    }

    fn end_transaction(&mut self, tag: &'static str) -> &'static str {
        self.transaction = TransactionStatus::Idle;
        self.portals.retain(|_, portal| portal.hold);
        if let Some((settings, time)) = self.before.take() {
            self.guest.settings = settings;
            self.guest.session.set_time(time);
        }
        tag
    }

    fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<(), Trouble> {
        if local && self.transaction == TransactionStatus::Idle {
            return Ok(self.note("SET LOCAL means something in transactions only")?);
        }
        if local && self.before.is_none() {
            self.before = Some((self.guest.settings.clone(), self.guest.session.time()));
        }
        match self.guest.settings.set(name, value)? {
            Outcome::Done => {}
            Outcome::Time(time) => self.guest.session.set_time(time.unwrap_or_default()),
            Outcome::Note(note) => self.note(note)?,
            Outcome::Report(name, value) => {
                self.outbox.put(&Reply::ParameterStatus(ParameterStatus::new(name.to_owned(), value)))?;
            }
        }
        Ok(())
    }

    fn note(&mut self, note: &str) -> io::Result<()> {
        self.outbox.put(&Reply::NoticeResponse(Failure::error("01000", note).notice()))
    }

    fn reset(&mut self, name: Option<&str>) -> Result<&'static str, Trouble> {
        match name {
            Some(name) => self.set(name, None, false)?,
            None => {
                self.guest.settings = Settings::default();
                self.guest.session.set_time(Duration::ZERO);
            }
        }
        Ok("RESET")
    }

    fn show(&mut self, name: &str) -> Result<&'static str, Trouble> {
        let (_, value) = self.guest.settings.show(name, self.session().time())?;
        let mut row = BytesMut::new();
        row.put_u32(u32::try_from(value.len()).unwrap_or(u32::MAX));
        row.put_slice(value.as_bytes());
        self.outbox.put_row(&DataRow::new(row, 1))?;
        Ok("SHOW")
    }

    fn discard(&mut self, all: bool) -> Result<&'static str, Trouble> {
        if !all {
            return Ok("DISCARD");
        }
        if self.transaction != TransactionStatus::Idle {
            return Err(Failure::error("25001", "DISCARD ALL cannot be in a transaction").into());
        }
        self.statements.clear();
        self.portals.clear();
        self.reset(None)?;
        Ok("DISCARD ALL")
    }

    fn deallocate(&mut self, name: Option<&str>) -> Result<&'static str, Trouble> {
        let Some(name) = name else {
            self.statements.clear();
            return Ok("DEALLOCATE ALL");
        };
        if self.statements.remove(name).is_none() {
            return Err(Failure::error("26000", format!("there is no prepared statement '{name}'")).into());
        }
        Ok("DEALLOCATE")
    }

    fn close_cursor(&mut self, name: Option<&str>) -> Result<&'static str, Trouble> {
        let Some(name) = name else {
            self.portals.clear();
            return Ok("CLOSE CURSOR ALL");
        };
        self.portals.remove(name).ok_or_else(|| no_cursor(name))?;
        Ok("CLOSE CURSOR")
    }

    async fn fetch(&mut self, name: &str, count: Option<usize>, formats: &[i16]) -> Result<(), Trouble> {
        let cursor = self.portals.get_mut(name).ok_or_else(|| no_cursor(name))?;
        cursor.change_formats(formats)?;
        let sent = cursor.send(&self.guest.session, &mut self.outbox, count).await?;
        Ok(self.done(&format!("FETCH {}", sent.rows))?)
    }
}

fn no_cursor(name: &str) -> Failure {
    Failure::error("34000", format!("there is no cursor '{name}'"))
}
