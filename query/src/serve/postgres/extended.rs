//! The extended protocol: statements are parsed, given values, described and executed in steps of their own.

use super::columns::Columns;
use super::conversation::{Conversation, NAME_BYTES, Trouble};
use super::described::Described;
use super::failure::Failure;
use super::message::{Bind, Target};
use super::portal::{Planned, Portal};
use datafusion::common::ParamValues;
use pgwire::messages::PgWireBackendMessage as Reply;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{BindComplete, CloseComplete, ParseComplete, PortalSuspended};
use std::io;
use std::sync::Arc;

/// Statements that a connection may have prepared.
const STATEMENTS: usize = 1_000;

impl Conversation {
    pub(super) async fn parse(&mut self, name: String, sql: String, types: &[u32]) -> Result<(), Trouble> {
        if name.is_empty() {
            self.statements.remove("");
        }
        self.check_room(&name)?;
        // Taken before it is known what it is: whatever that is, it may keep its text.
        let mut bytes = NAME_BYTES + name.len() + sql.len() + size_of_val(types);
        let mut commands = self.read(&sql).await?;
        let planned = match commands.pop() {
            None => Planned::Nothing,
            Some(_) if !commands.is_empty() => {
                return Err(Failure::error("42601", "a prepared statement is one statement").into());
            }
            Some(command) => {
                self.check_transaction(&command)?;
                self.plan(command, self.text(sql, 0, types)).await?
            }
        };
        bytes += planned.described().map_or(0, Described::column_bytes);
        let room = self.room(bytes)?;
        self.statements.insert(name, (Arc::new(planned), room));
        Ok(self.outbox.put(&Reply::ParseComplete(ParseComplete::new()))?)
    }

    fn check_room(&self, name: &str) -> Result<(), Failure> {
        if self.statements.contains_key(name) {
            return Err(Failure::error("42P05", format!("there is a prepared statement '{name}' already")));
        }
        if self.statements.len() >= STATEMENTS {
            return Err(Failure::error("54000", format!("{STATEMENTS} statements are prepared"))
                .hint("DEALLOCATE some"));
        }
        Ok(())
    }

    pub(super) fn bind(&mut self, bind: Bind) -> Result<(), Trouble> {
        let planned = Arc::clone(self.statement(&bind.statement)?);
        let values = match planned.described() {
            Some(described) => described.values(&bind.values, &bind.formats)?,
            None if bind.values.is_empty() => ParamValues::List(Vec::new()),
            None => return Err(Failure::error("08P01", "the statement has no parameters").into()),
        };
        if bind.portal.is_empty() {
            self.portals.remove("");
        }
        let portal = Portal::new(planned, values, bind.results, false);
        // Formats that do not fit are refused here, and not when it is executed.
        portal.columns()?;
        self.open(bind.portal, portal)?;
        Ok(self.outbox.put(&Reply::BindComplete(BindComplete::new()))?)
    }

    fn statement(&self, name: &str) -> Result<&Arc<Planned>, Failure> {
        let known = self.statements.get(name).map(|(planned, _)| planned);
        known.ok_or_else(|| Failure::error("26000", format!("there is no prepared statement '{name}'")))
    }

    fn portal(&self, name: &str) -> Result<&Portal, Failure> {
        self.portals.get(name).ok_or_else(|| no_portal(name))
    }

    pub(super) fn describe(&mut self, target: &Target) -> Result<(), Trouble> {
        let columns = match target {
            Target::Portal(name) => {
                let portal = self.portal(name)?;
                match portal.planned.as_ref() {
                    Planned::Own(command) => self.own_columns(command, &portal.formats)?,
                    // A cursor has columns; the statement that opens it has none.
                    Planned::Cursor { .. } if !portal.is_cursor() => None,
                    _ => portal.columns()?,
                }
            }
            Target::Statement(name) => {
                let planned = Arc::clone(self.statement(name)?);
                let parameters = planned.described().map_or(&[][..], |described| described.parameters());
                let types = parameters.iter().map(|parameter| parameter.wire().oid()).collect();
                self.outbox.put(&Reply::ParameterDescription(ParameterDescription::new(types)))?;
                match planned.as_ref() {
                    Planned::Own(command) => self.own_columns(command, &[])?,
                    Planned::Rows(described) => Some(described.columns(&[])?),
                    Planned::Nothing | Planned::Cursor { .. } => None,
                }
            }
        };
        Ok(self.put_columns(columns.as_ref())?)
    }

    fn put_columns(&mut self, columns: Option<&Columns>) -> io::Result<()> {
        match columns {
            Some(columns) => self.outbox.put(&Reply::RowDescription(columns.description())),
            None => self.outbox.put(&Reply::NoData(NoData::new())),
        }
    }

    pub(super) async fn execute(&mut self, name: String, most: i32) -> Result<(), Trouble> {
        // Taken out while it runs: one that fails is gone.
        let mut portal = self.portals.remove(&name).ok_or_else(|| no_portal(&name))?;
        if let Planned::Own(command) = portal.planned.as_ref() {
            self.check_transaction(command)?;
        }
        let most = usize::try_from(most).ok().filter(|most| *most > 0);
        if self.run(&mut portal, most).await? {
            self.outbox.put(&Reply::PortalSuspended(PortalSuspended::new()))?;
        }
        // Unless it was the one that ended the transaction, and with it all portals.
        self.portals.entry(name).or_insert(portal);
        Ok(())
    }

    pub(super) fn close(&mut self, target: &Target) -> Result<(), Trouble> {
        match target {
            Target::Statement(name) => drop(self.statements.remove(name)),
            Target::Portal(name) => drop(self.portals.remove(name)),
        }
        Ok(self.outbox.put(&Reply::CloseComplete(CloseComplete::new()))?)
    }
}

fn no_portal(name: &str) -> Failure {
    Failure::error("34000", format!("there is no portal '{name}'"))
}
