//! The extended query protocol: statements are parsed, bound to values, described and executed in separate steps.

use super::columns::Columns;
use super::error::PgError;
use super::message::{Bind, Target};
use super::planned_statement::PlannedStatement;
use super::portal::{PlannedCommand, Portal};
use super::session::{NAME_BYTES, PostgresSession, SessionError};
use datafusion::common::ParamValues;
use pgwire::messages::PgWireBackendMessage as Reply;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use std::io;
use std::sync::Arc;

/// The maximum number of prepared statements of a connection.
const STATEMENTS: usize = 1_000;

impl PostgresSession {
    pub(super) async fn parse(
        &mut self,
        name: String,
        sql: String,
        types: &[u32],
    ) -> Result<(), SessionError> {
        if name.is_empty() {
            self.statements.remove("");
        }
        self.check_new_name(&name)?;
        // The text is counted for every kind of statement, because it may be kept.
        let mut bytes = NAME_BYTES + name.len() + sql.len() + size_of_val(types);
        let mut commands = self.read(&sql).await?;
        let planned = match commands.pop() {
            None => PlannedCommand::Empty,
            Some(_) if !commands.is_empty() => {
                return Err(PgError::error("42601", "a prepared statement is one statement").into());
            }
            Some(command) => {
                self.check_transaction(&command)?;
                self.plan(command, self.text(sql, 0, types)).await?
            }
        };
        bytes += planned.described().map_or(0, PlannedStatement::column_bytes);
        let room = self.room(bytes)?;
        self.statements.insert(name, (Arc::new(planned), room));
        Ok(self.writer.write(&Reply::ParseComplete(ParseComplete::new()))?)
    }

    fn check_new_name(&self, name: &str) -> Result<(), PgError> {
        if self.statements.contains_key(name) {
            return Err(PgError::error("42P05", format!("there is a prepared statement '{name}' already")));
        }
        if self.statements.len() >= STATEMENTS {
            return Err(PgError::error("54000", format!("{STATEMENTS} statements are prepared"))
                .hint("DEALLOCATE some"));
        }
        Ok(())
    }

    pub(super) fn bind(&mut self, bind: Bind) -> Result<(), SessionError> {
        let planned = Arc::clone(self.statement(&bind.statement)?);
        let values = match planned.described() {
            Some(described) => described.values(&bind.values, &bind.formats)?,
            None if bind.values.is_empty() => ParamValues::List(Vec::new()),
            None => return Err(PgError::error("08P01", "the statement has no parameters").into()),
        };
        if bind.portal.is_empty() {
            self.portals.remove("");
        }
        let portal = Portal::new(planned, values, bind.results, false);
        // Formats that do not match are an error now, and not when the portal is executed.
        portal.columns()?;
        self.open(bind.portal, portal)?;
        Ok(self.writer.write(&Reply::BindComplete(BindComplete::new()))?)
    }

    fn statement(&self, name: &str) -> Result<&Arc<PlannedCommand>, PgError> {
        let known = self.statements.get(name).map(|(planned, _)| planned);
        known.ok_or_else(|| PgError::error("26000", format!("there is no prepared statement '{name}'")))
    }

    fn portal(&self, name: &str) -> Result<&Portal, PgError> {
        self.portals.get(name).ok_or_else(|| no_portal(name))
    }

    pub(super) fn describe(&mut self, target: &Target) -> Result<(), SessionError> {
        let columns = match target {
            Target::Portal(name) => {
                let portal = self.portal(name)?;
                match portal.planned.as_ref() {
                    PlannedCommand::Session(command) => self.session_columns(command, &portal.formats)?,
                    // A cursor has columns; the statement that declares it has none.
                    PlannedCommand::Cursor { .. } if !portal.is_cursor() => None,
                    _ => portal.columns()?,
                }
            }
            Target::Statement(name) => {
                let planned = Arc::clone(self.statement(name)?);
                let parameters = planned.described().map_or(&[][..], |described| described.parameters());
                let types = parameters.iter().map(|parameter| parameter.wire().oid()).collect();
                self.writer.write(&Reply::ParameterDescription(ParameterDescription::new(types)))?;
                match planned.as_ref() {
                    PlannedCommand::Session(command) => self.session_columns(command, &[])?,
                    PlannedCommand::Rows(described) => Some(described.columns(&[])?),
                    PlannedCommand::Empty | PlannedCommand::Cursor { .. } => None,
                }
            }
        };
        Ok(self.write_columns(columns.as_ref())?)
    }

    fn write_columns(&mut self, columns: Option<&Columns>) -> io::Result<()> {
        match columns {
            Some(columns) => self.writer.write(&Reply::RowDescription(columns.description())),
            None => self.writer.write(&Reply::NoData(NoData::new())),
        }
    }

    pub(super) async fn execute(&mut self, name: String, most: i32) -> Result<(), SessionError> {
        // The portal is removed while it runs, so that one that fails is closed.
        let mut portal = self.portals.remove(&name).ok_or_else(|| no_portal(&name))?;
        if let PlannedCommand::Session(command) = portal.planned.as_ref() {
            self.check_transaction(command)?;
        }
        let most = usize::try_from(most).ok().filter(|most| *most > 0);
        if self.run(&mut portal, most).await? {
            self.writer.write(&Reply::PortalSuspended(PortalSuspended::new()))?;
        }
        // A portal that ended the transaction has closed all portals.
        self.portals.entry(name).or_insert(portal);
        Ok(())
    }

    pub(super) fn close(&mut self, target: &Target) -> Result<(), SessionError> {
        match target {
            Target::Statement(name) => drop(self.statements.remove(name)),
            Target::Portal(name) => drop(self.portals.remove(name)),
        }
        Ok(self.writer.write(&Reply::CloseComplete(CloseComplete::new()))?)
    }
}

fn no_portal(name: &str) -> PgError {
    PgError::error("34000", format!("there is no portal '{name}'"))
}
