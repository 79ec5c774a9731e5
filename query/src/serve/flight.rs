//! The Arrow Flight SQL door: statements, prepared statements and catalog calls, over gRPC.
//!
//! What must always hold:
//! - Nothing is kept between two calls. A ticket, and the handle of a prepared statement, carry the statement and its
//!   parameters themselves, so that nothing has to be closed, and nothing is lost when the server restarts.
//! - Every call passes `admitted` before anything of it is looked at.
//! - Rows go out as they come. Whoever hangs up takes his query along.

mod catalog;
mod handle;
mod info;
mod service;
mod status;
mod wire;

use super::gate::{Credentials, SharedGate};
use crate::engine::Engine;
use arrow_flight::flight_service_server::FlightServiceServer;
use axum::Router;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::sync::Arc;
use tonic::metadata::MetadataMap;
use tonic::service::Routes;
use tonic::service::interceptor::InterceptedService;
use tonic::{Request, Status};
use wire::Wire;

/// Where clients say who they are.
const AUTHORIZATION: &str = "authorization";

/// What every call needs.
#[derive(Debug, Clone)]
struct Door {
    engine: Engine,
    gate: SharedGate,
}

/// The routes of the gRPC service.
pub fn routes(engine: Engine, gate: SharedGate) -> Router {
    // A statement and its parameters, in a handle, in a ticket.
    let most = 4 * engine.limits().statement_bytes;
    let door = Door { engine, gate: Arc::clone(&gate) };
    let server = FlightServiceServer::new(Wire(door)).max_decoding_message_size(most);
    let admit = move |request: Request<()>| match admitted(&gate, request.metadata()) {
        Ok(()) => Ok(request),
        Err(status) => Err(status),
    };
    Routes::new(InterceptedService::new(server, admit)).into_axum_router()
}

/// Asks the gate, for every call.
fn admitted(gate: &SharedGate, metadata: &MetadataMap) -> Result<(), Status> {
    let said = metadata.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let admit = |credentials: Credentials<'_>| {
        gate.admit(credentials).map_err(|denied| Status::unauthenticated(denied.to_string()))
    };
    if let Some(token) = said.strip_prefix("Bearer ") {
        return admit(Credentials::Bearer(token));
    }
    match said.strip_prefix("Basic ").and_then(name_and_password) {
        Some((user, password)) => admit(Credentials::Password { user: &user, password: &password }),
        None => admit(Credentials::None),
    }
}

/// Reads `Basic` credentials.
fn name_and_password(encoded: &str) -> Option<(String, String)> {
    let text = String::from_utf8(BASE64_STANDARD.decode(encoded.trim()).ok()?).ok()?;
    text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests;
