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
mod ipc;
mod service;
mod status;
mod wire;

use crate::worker::QueryService;
use access::{Denied, Gate, Scope};
use arrow_flight::flight_service_server::FlightServiceServer;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
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
    service: QueryService,
    gate: Arc<Gate>,
}

/// The routes of the gRPC service, for those whom the gate lets in.
pub fn routes(service: QueryService, gate: &Arc<Gate>) -> Router {
    // A statement and its parameters, in a handle, in a ticket.
    let most = 4 * service.limits().statement_bytes;
    let door = Door { service, gate: Arc::clone(gate) };
    let server = FlightServiceServer::new(Wire(door)).max_decoding_message_size(most);
    let deny = |denied: &Denied, request: &Request| refused(denied, request);
    access::guarded(Routes::new(server).into_axum_router(), gate, Scope::Query, deny)
}

fn refused(denied: &Denied, request: &Request) -> Response {
    let message = format!("{denied}; {}", denied.remedy());
    let (status, code) = match denied.is_unauthenticated() {
        true => (Status::unauthenticated(message), StatusCode::UNAUTHORIZED),
        false => (Status::permission_denied(message), StatusCode::FORBIDDEN),
    };
    let mut response: Response = status.into_http();
    // gRPC says no in its own status; whoever does not speak it must not take that for a yes.
    let media = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !media.is_some_and(|media| media.starts_with("application/grpc")) {
        *response.status_mut() = code;
    }
    response
}

#[cfg(test)]
mod tests;
