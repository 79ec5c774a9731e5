//! The start of a session: the startup message, authentication, and the parameters that the server reports.

use super::PostgresServer;
use super::cancel::CancelKey;
use super::error::PgError;
use super::reader::MessageReader;
use super::scram_auth;
use super::settings::{Outcome, SERVER_VERSION, Settings};
use super::writer::MessageWriter;
use crate::engine::CATALOG;
use crate::stats::Endpoint;
use crate::worker::Session;
use auth::{Client, ConnectionPermit};
use bytes::{Buf, Bytes};
use pgwire::messages::PgWireBackendMessage as Reply;
use pgwire::messages::response::{ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

/// The maximum length of a startup message, which is that of PostgreSQL.
const MAX_LENGTH: usize = 10_000;
const CANCEL: u32 = 80_877_102;
const VERSION: i32 = 3 << 16;

/// The result of starting a session.
#[derive(Debug)]
pub(super) struct StartedSession {
    pub(super) user: String,
    pub(super) session: Session,
    pub(super) settings: Settings,
    pub(super) cancel_key: CancelKey,
    /// The authenticated client, which knows when its token is revoked.
    pub(super) client: Client,
    /// The permit of the session.
    pub(super) _permit: ConnectionPermit,
}

/// The reason why no session was started.
#[derive(Debug)]
pub(super) enum StartupError {
    /// The connection ends without another message.
    Disconnected,
    /// The connection ends with this error message.
    Rejected(PgError),
}

impl From<PgError> for StartupError {
    fn from(error: PgError) -> Self {
        Self::Rejected(error)
    }
}

impl From<io::Error> for StartupError {
    fn from(_: io::Error) -> Self {
        Self::Disconnected
    }
}

/// Authenticates a client and starts its session.
pub(super) async fn start_session(
    server: &PostgresServer,
    reader: &mut MessageReader,
    writer: &mut MessageWriter,
    needs_tls: bool,
    address: IpAddr,
) -> Result<StartedSession, StartupError> {
    let parameters = read_startup_message(server, reader, writer).await?;
    if needs_tls {
        let error = PgError::fatal("28000", "connections to this server are encrypted");
        return Err(error.hint("use sslmode=require, or better verify-full").into());
    }
    let user = parameters.get("user").filter(|user| !user.is_empty());
    let user = user.ok_or_else(|| PgError::fatal("28000", "no user is named"))?;
    // Only authenticated clients learn about the limits of sessions.
    let client = authenticate(server, reader, writer, user).await?;
    check_database(&parameters, user)?;
    let permit = server.session_permit(address)?;
    let mut started = StartedSession {
        user: user.clone(),
        session: server.service.session(Endpoint::Postgres),
        settings: Settings::default(),
        cancel_key: server.cancels.register()?,
        client,
        _permit: permit,
    };
    started.take_settings(&parameters)?;
    send_parameters(writer, &started, user)?;
    writer.ready(ReadyForQuery::new(TransactionStatus::Idle)).await?;
    Ok(started)
}

/// Reads the startup message and returns its parameters. A cancel request is carried out, and ends the connection.
async fn read_startup_message(
    server: &PostgresServer,
    reader: &mut MessageReader,
    writer: &mut MessageWriter,
) -> Result<BTreeMap<String, String>, StartupError> {
    let mut message = reader.next_startup_message(MAX_LENGTH).await?.ok_or(StartupError::Disconnected)?;
    match message.get_u32() {
        CANCEL => {
            if let (Ok(number), Ok(secret)) = (message.try_get_i32(), message.try_get_i32()) {
                server.cancels.cancel(number, secret);
            }
            Err(StartupError::Disconnected)
        }
        version if version >> 16 == 3 => {
            let parameters = parameters(message)?;
            negotiate(writer, version, &parameters)?;
            Ok(parameters)
        }
        version => {
            let (major, minor) = (version >> 16, version & 0xffff);
            let message = format!("version {major}.{minor} of the protocol is not spoken here");
            Err(PgError::fatal("0A000", message).hint("version 3.0 is").into())
        }
    }
}

/// Parses pairs of texts that end with zero bytes.
fn parameters(message: Bytes) -> Result<BTreeMap<String, String>, PgError> {
    let text = String::from_utf8(message.into())
        .map_err(|_| PgError::fatal("22021", "the startup message is no UTF-8"))?;
    let mut words = text.split('\0');
    let mut parameters = BTreeMap::new();
    while let (Some(name), Some(value)) = (words.next().filter(|name| !name.is_empty()), words.next()) {
        parameters.insert(name.to_owned(), value.to_owned());
    }
    Ok(parameters)
}

/// Tells the client which protocol version and options the server does not support.
fn negotiate(
    writer: &mut MessageWriter,
    version: u32,
    parameters: &BTreeMap<String, String>,
) -> io::Result<()> {
    let unknown: Vec<_> = parameters.keys().filter(|name| name.starts_with("_pq_.")).cloned().collect();
    if version & 0xffff == 0 && unknown.is_empty() {
        return Ok(());
    }
    writer.write(&Reply::NegotiateProtocolVersion(NegotiateProtocolVersion::new(VERSION, unknown)))
}

async fn authenticate(
    server: &PostgresServer,
    reader: &mut MessageReader,
    writer: &mut MessageWriter,
    user: &str,
) -> Result<Client, StartupError> {
    if server.authenticator.requires_token() {
        scram_auth::authenticate(server, reader, writer, user).await
    } else {
        Ok(Client::anonymous())
    }
}

/// Checks the name of the database. There is one database; clients without a configured name send the name of the user, or
/// `postgres`.
fn check_database(parameters: &BTreeMap<String, String>, user: &str) -> Result<(), PgError> {
    let Some(database) = parameters.get("database") else { return Ok(()) };
    if database == CATALOG || database == user || database == "postgres" {
        return Ok(());
    }
    Err(PgError::fatal("3D000", format!("there is no database '{database}'"))
        .hint(format!("it is called {CATALOG}")))
}

impl StartedSession {
    /// Applies the settings of the startup message, and those of `options=-c name=value` in it.
    fn take_settings(&mut self, parameters: &BTreeMap<String, String>) -> Result<(), PgError> {
        for (name, value) in parameters {
            match name.as_str() {
                "user" | "database" => {}
                "options" => self.take_options(value)?,
                "replication" if ["false", "off", "no", "0"].contains(&value.as_str()) => {}
                "replication" => return Err(PgError::fatal("0A000", "there is nothing to replicate")),
                name if name.starts_with("_pq_.") => {}
                name => self.take_setting(name, value)?,
            }
        }
        Ok(())
    }

    fn take_options(&mut self, options: &str) -> Result<(), PgError> {
        let mut words = options.split_whitespace();
        while let Some(word) = words.next() {
            let setting = match word.strip_prefix("--") {
                Some(long) => Some(long),
                None if word == "-c" => words.next(),
                None => word.strip_prefix("-c"),
            };
            let Some((name, value)) = setting.and_then(|setting| setting.split_once('=')) else {
                return Err(PgError::fatal("42601", format!("'{word}' is no option that is known")));
            };
            self.take_setting(name, value)?;
        }
        Ok(())
    }

    fn take_setting(&mut self, name: &str, value: &str) -> Result<(), PgError> {
        match self.settings.set(name, Some(value)) {
            Ok(Outcome::Time(time)) => self.session.set_time_limit(time.unwrap_or_default()),
            Ok(_) => {}
            Err(error) => return Err(error.into_fatal()),
        }
        Ok(())
    }
}

/// Sends the messages that precede the first `ReadyForQuery`: the server's parameters and the key for cancel requests.
fn send_parameters(writer: &mut MessageWriter, started: &StartedSession, user: &str) -> io::Result<()> {
    writer.write(&Reply::Authentication(Authentication::Ok))?;
    let version = format!("{SERVER_VERSION} (Faultline {})", env!("CARGO_PKG_VERSION"));
    let own = [("server_version", version), ("session_authorization", user.to_owned())];
    for (name, value) in started.settings.reported().chain(own) {
        writer.write(&Reply::ParameterStatus(ParameterStatus::new(name.to_owned(), value)))?;
    }
    let key = SecretKey::I32(started.cancel_key.secret);
    writer.write(&Reply::BackendKeyData(BackendKeyData::new(started.cancel_key.number, key)))
}
