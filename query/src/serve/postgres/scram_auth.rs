//! Authentication with SCRAM-SHA-256: the client proves that it has a token without sending it. The user is the name of the
//! token.

use super::PostgresServer;
use super::error::PgError;
use super::message::Message;
use super::reader::{MessageReader, Received};
use super::startup::StartupError;
use super::writer::MessageWriter;
use auth::{Client, Scope, scram};
use bytes::{Buf, Bytes};
use pgwire::messages::PgWireBackendMessage as Reply;
use pgwire::messages::startup::Authentication;

/// Requests a proof from the client, and verifies it.
pub(super) async fn authenticate(
    server: &PostgresServer,
    reader: &mut MessageReader,
    writer: &mut MessageWriter,
    user: &str,
) -> Result<Client, StartupError> {
    send(writer, Authentication::SASL(vec![scram::MECHANISM.to_owned()])).await?;
    let first = first_message(response(reader).await?).ok_or_else(malformed)?;
    let (proof, reply) = server.authenticator.begin_scram(user, &first).map_err(|_| malformed())?;
    send(writer, Authentication::SASLContinue(reply.into())).await?;
    let last = String::from_utf8(response(reader).await?.into()).map_err(|_| malformed())?;
    let proved = server.authenticator.finish_scram(proof, &last, Scope::Query).await;
    let (reply, client) = proved.map_err(|denial| {
        PgError::fatal("28P01", denial.to_string())
            .hint("the user is the name of a token of the scope query, and the password the token")
    })?;
    writer.write(&Reply::Authentication(Authentication::SASLFinal(reply.into())))?;
    Ok(client)
}

async fn send(writer: &mut MessageWriter, request: Authentication) -> Result<(), StartupError> {
    writer.write(&Reply::Authentication(request))?;
    Ok(writer.flush().await?)
}

async fn response(reader: &mut MessageReader) -> Result<Bytes, StartupError> {
    match reader.next().await {
        Received::Message(Message::Password(response)) => Ok(response),
        Received::Closed => Err(StartupError::Disconnected),
        _ => Err(malformed().into()),
    }
}

/// Parses the first message: the mechanism, a length, and the SCRAM message.
fn first_message(mut response: Bytes) -> Option<String> {
    let end = response.iter().position(|byte| *byte == 0)?;
    let mechanism = response.split_to(end);
    response.advance(1);
    let length = usize::try_from(response.try_get_i32().ok()?).ok()?;
    (mechanism == scram::MECHANISM.as_bytes() && length == response.len()).then_some(())?;
    String::from_utf8(response.into()).ok()
}

fn malformed() -> PgError {
    PgError::fatal("08P01", "a message of SCRAM-SHA-256 was expected")
}
