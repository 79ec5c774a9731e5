//! The first words with a client: who it is, and what it is told about us.

use super::cancel::Registered;
use super::failure::Failure;
use super::inbox::Inbox;
use super::outbox::Outbox;
use super::proof;
use super::settings::{Outcome, SERVER_VERSION, Settings};
use super::{Door, Slot};
use crate::engine::CATALOG;
use crate::stats::Via;
use crate::worker::Session;
use access::Client;
use bytes::{Buf, Bytes};
use pgwire::messages::PgWireBackendMessage as Reply;
use pgwire::messages::response::{ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey,
};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;

/// The longest message before startup, as PostgreSQL has it.
const LONGEST: usize = 10_000;
const CANCEL: u32 = 80_877_102;
const VERSION: i32 = 3 << 16;

/// A client that was let in.
#[derive(Debug)]
pub(super) struct Guest {
    pub(super) user: String,
    pub(super) session: Session,
    pub(super) settings: Settings,
    pub(super) place: Registered,
    /// Who it is; says when its token stops being enough.
    pub(super) client: Client,
    /// One of the connections that there may be.
    pub(super) _slot: Slot,
}

/// Why there is no guest.
#[derive(Debug)]
pub(super) enum Turned {
    /// There is nothing more to say.
    Away,
    /// It is told why.
    Down(Failure),
}

impl From<Failure> for Turned {
    fn from(failure: Failure) -> Self {
        Self::Down(failure)
    }
}

impl From<io::Error> for Turned {
    fn from(_: io::Error) -> Self {
        Self::Away
    }
}

/// Lets a client in, or not.
pub(super) async fn welcome(
    door: &Door,
    inbox: &mut Inbox,
    outbox: &mut Outbox,
    is_encrypted: bool,
    address: IpAddr,
) -> Result<Guest, Turned> {
    let asked = opening(door, inbox, outbox).await?;
    if door.tls.is_some() && !is_encrypted {
        let failure = Failure::fatal("28000", "connections to this server are encrypted");
        return Err(failure.hint("use sslmode=require, or better verify-full").into());
    }
    let user = asked.get("user").filter(|user| !user.is_empty());
    let user = user.ok_or_else(|| Failure::fatal("28000", "no user is named"))?;
    // Whoever may not come in is not told how full it is.
    let client = authenticate(door, inbox, outbox, user).await?;
    check_database(&asked, user)?;
    let slot = door.slot(address)?;
    let mut guest = Guest {
        user: user.clone(),
        session: door.service.session(Via::Postgres),
        settings: Settings::default(),
        place: door.cancels.register()?,
        client,
        _slot: slot,
    };
    guest.take_settings(&asked)?;
    greet(outbox, &guest, user)?;
    outbox.ready(ReadyForQuery::new(TransactionStatus::Idle)).await?;
    Ok(guest)
}

/// What the startup message says; whoever only wants to cancel is heard, and gone.
async fn opening(
    door: &Door,
    inbox: &mut Inbox,
    outbox: &mut Outbox,
) -> Result<BTreeMap<String, String>, Turned> {
    let mut message = inbox.next_opening(LONGEST).await?.ok_or(Turned::Away)?;
    match message.get_u32() {
        CANCEL => {
            if let (Ok(number), Ok(secret)) = (message.try_get_i32(), message.try_get_i32()) {
                door.cancels.cancel(number, secret);
            }
            Err(Turned::Away)
        }
        version if version >> 16 == 3 => {
            let asked = parameters(message)?;
            negotiate(outbox, version, &asked)?;
            Ok(asked)
        }
        version => {
            let (major, minor) = (version >> 16, version & 0xffff);
            let message = format!("version {major}.{minor} of the protocol is not spoken here");
            Err(Failure::fatal("0A000", message).hint("version 3.0 is").into())
        }
    }
}

/// Pairs of texts that end with zero bytes.
fn parameters(message: Bytes) -> Result<BTreeMap<String, String>, Failure> {
    let text = String::from_utf8(message.into())
        .map_err(|_| Failure::fatal("22021", "the startup message is no UTF-8"))?;
    let mut words = text.split('\0');
    let mut asked = BTreeMap::new();
    while let (Some(name), Some(value)) = (words.next().filter(|name| !name.is_empty()), words.next()) {
        asked.insert(name.to_owned(), value.to_owned());
    }
    Ok(asked)
}

/// Says which version and which options are not known.
fn negotiate(outbox: &mut Outbox, version: u32, asked: &BTreeMap<String, String>) -> io::Result<()> {
    let unknown: Vec<_> = asked.keys().filter(|name| name.starts_with("_pq_.")).cloned().collect();
    if version & 0xffff == 0 && unknown.is_empty() {
        return Ok(());
    }
    outbox.put(&Reply::NegotiateProtocolVersion(NegotiateProtocolVersion::new(VERSION, unknown)))
}

async fn authenticate(
    door: &Door,
    inbox: &mut Inbox,
    outbox: &mut Outbox,
    user: &str,
) -> Result<Client, Turned> {
    if door.gate.asks() { proof::prove(door, inbox, outbox, user).await } else { Ok(Client::anonymous()) }
}

/// There is one database. Clients that are given none name the user, or the one that is always there.
fn check_database(asked: &BTreeMap<String, String>, user: &str) -> Result<(), Failure> {
    let Some(database) = asked.get("database") else { return Ok(()) };
    if database == CATALOG || database == user || database == "postgres" {
        return Ok(());
    }
    Err(Failure::fatal("3D000", format!("there is no database '{database}'"))
        .hint(format!("it is called {CATALOG}")))
}

impl Guest {
    /// What a client sets with its first message, and with `options=-c name=value`.
    fn take_settings(&mut self, asked: &BTreeMap<String, String>) -> Result<(), Failure> {
        for (name, value) in asked {
            match name.as_str() {
                "user" | "database" => {}
                "options" => self.take_options(value)?,
                "replication" if ["false", "off", "no", "0"].contains(&value.as_str()) => {}
                "replication" => return Err(Failure::fatal("0A000", "there is nothing to replicate")),
                name if name.starts_with("_pq_.") => {}
                name => self.take_setting(name, value)?,
            }
        }
        Ok(())
    }

    fn take_options(&mut self, options: &str) -> Result<(), Failure> {
        let mut words = options.split_whitespace();
        while let Some(word) = words.next() {
            let setting = match word.strip_prefix("--") {
                Some(long) => Some(long),
                None if word == "-c" => words.next(),
                None => word.strip_prefix("-c"),
            };
            let Some((name, value)) = setting.and_then(|setting| setting.split_once('=')) else {
                return Err(Failure::fatal("42601", format!("'{word}' is no option that is known")));
            };
            self.take_setting(name, value)?;
        }
        Ok(())
    }

    fn take_setting(&mut self, name: &str, value: &str) -> Result<(), Failure> {
        match self.settings.set(name, Some(value)) {
            Ok(Outcome::Time(time)) => self.session.set_time(time.unwrap_or_default()),
            Ok(_) => {}
            Err(failure) => return Err(failure.made_fatal()),
        }
        Ok(())
    }
}

/// What a client is told before it may begin.
fn greet(outbox: &mut Outbox, guest: &Guest, user: &str) -> io::Result<()> {
    outbox.put(&Reply::Authentication(Authentication::Ok))?;
    let version = format!("{SERVER_VERSION} (Faultline {})", env!("CARGO_PKG_VERSION"));
    let own = [("server_version", version), ("session_authorization", user.to_owned())];
    for (name, value) in guest.settings.reported().chain(own) {
        outbox.put(&Reply::ParameterStatus(ParameterStatus::new(name.to_owned(), value)))?;
    }
    let key = SecretKey::I32(guest.place.secret);
    outbox.put(&Reply::BackendKeyData(BackendKeyData::new(guest.place.number, key)))
}
