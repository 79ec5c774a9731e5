//! The Arrow Flight SQL door: statements, prepared statements and catalog calls, over gRPC.
//!
//! What must always hold:
//! - Nothing is kept between two calls. A ticket, and the handle of a prepared statement, carry the statement and its
//!   parameters themselves, so that nothing has to be closed, and nothing is lost when the server restarts.
//! - Every call passes the gate before anything of it is looked at.
//! - Rows go out as they come. Whoever hangs up takes his query along.

mod catalog;
mod handle;
mod info;
mod service;
mod status;
mod wire;

use crate::engine::Engine;
use access::{Denied, Gate, Scope};
use arrow_flight::flight_service_server::FlightServiceServer;
use axum::Router;
use axum::response::Response;
use std::sync::Arc;
use tonic::Status;
use tonic::service::Routes;
use wire::Wire;

/// Where clients say who they are.
const AUTHORIZATION: &str = "authorization";

/// What every call needs.
#[derive(Debug, Clone)]
struct Door {
    engine: Engine,
    gate: Arc<Gate>,
}

/// The routes of the gRPC service, for those whom the gate lets in.
pub fn routes(engine: Engine, gate: &Arc<Gate>) -> Router {
    // A statement and its parameters, in a handle, in a ticket.
    let most = 4 * engine.limits().statement_bytes;
    let door = Door { engine, gate: Arc::clone(gate) };
    let server = FlightServiceServer::new(Wire(door)).max_decoding_message_size(most);
    access::guarded(Routes::new(server).into_axum_router(), gate, Scope::Query, |denied, _| refused(denied))
}

fn refused(denied: &Denied) -> Response {
    let message = denied.to_string();
    let status = match denied.is_unauthenticated() {
        true => Status::unauthenticated(message),
        false => Status::permission_denied(message),
    };
    status.into_http()
}

#[cfg(test)]
mod tests;
