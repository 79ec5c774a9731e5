//! SCRAM-SHA-256: how a client proves that it has a token, without sending it. The name of the token is its user.

use super::Door;
use super::failure::Failure;
use super::inbox::{Inbox, Received};
use super::message::Message;
use super::outbox::Outbox;
use super::startup::Turned;
use access::{Client, Scope, scram};
use bytes::{Buf, Bytes};
use pgwire::messages::PgWireBackendMessage as Reply;
use pgwire::messages::startup::Authentication;

/// Asks for a proof, and judges it.
pub(super) async fn prove(
    door: &Door,
    inbox: &mut Inbox,
    outbox: &mut Outbox,
    user: &str,
) -> Result<Client, Turned> {
    ask(outbox, Authentication::SASL(vec![scram::MECHANISM.to_owned()])).await?;
    let first = first_message(said(inbox).await?).ok_or_else(malformed)?;
    let (proof, reply) = door.gate.begin_proof(user, &first).map_err(|_| malformed())?;
    ask(outbox, Authentication::SASLContinue(reply.into())).await?;
    let last = String::from_utf8(said(inbox).await?.into()).map_err(|_| malformed())?;
    let proved = door.gate.end_proof(proof, &last, Scope::Query).await;
    let (reply, client) = proved.map_err(|denied| {
        Failure::fatal("28P01", denied.to_string())
            .hint("the user is the name of a token of the scope query, and the password the token")
    })?;
    outbox.put(&Reply::Authentication(Authentication::SASLFinal(reply.into())))?;
    Ok(client)
}

async fn ask(outbox: &mut Outbox, question: Authentication) -> Result<(), Turned> {
    outbox.put(&Reply::Authentication(question))?;
    Ok(outbox.flush().await?)
}

async fn said(inbox: &mut Inbox) -> Result<Bytes, Turned> {
    match inbox.next().await {
        Received::Message(Message::Password(said)) => Ok(said),
        Received::Closed => Err(Turned::Away),
        _ => Err(malformed().into()),
    }
}

/// The mechanism, which must be ours, a length, and the message itself.
fn first_message(mut said: Bytes) -> Option<String> {
    let end = said.iter().position(|byte| *byte == 0)?;
    let mechanism = said.split_to(end);
    said.advance(1);
    let length = usize::try_from(said.try_get_i32().ok()?).ok()?;
    (mechanism == scram::MECHANISM.as_bytes() && length == said.len()).then_some(())?;
    String::from_utf8(said.into()).ok()
}

fn malformed() -> Failure {
    Failure::fatal("08P01", "a message of SCRAM-SHA-256 was expected")
}
