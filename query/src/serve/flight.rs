//! The Arrow Flight SQL endpoint: statements, prepared statements and catalog calls, over gRPC.
//!
//! Invariants:
//! - The server keeps no state between two calls. Tickets and handles of prepared statements contain the statement and its
//!   parameters, so that nothing has to be closed and nothing is lost when the server restarts.
//! - Every call is authorized before its content is read.
//! - Rows are sent as they are produced. When a client disconnects, its query stops.

mod catalog;
mod handle;
mod info;
mod ipc;
mod server;
mod service;
mod status;

use crate::worker::QueryService;
use arrow_flight::flight_service_server::FlightServiceServer;
use auth::{Authenticator, Denial, Scope};
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use server::FlightServer;
use std::sync::Arc;
use tonic::Status;
use tonic::service::Routes;

/// The metadata key of the credentials.
const AUTHORIZATION: &str = "authorization";

/// The state that every call needs.
#[derive(Debug, Clone)]
struct FlightSqlEndpoint {
    service: QueryService,
    authenticator: Arc<Authenticator>,
}

/// Returns the routes of the gRPC service, behind the authentication middleware.
pub fn routes(service: QueryService, authenticator: &Arc<Authenticator>) -> Router {
    // A ticket contains a handle, which contains a statement and its parameters.
    let most = 4 * service.limits().statement_bytes;
    let endpoint = FlightSqlEndpoint { service, authenticator: Arc::clone(authenticator) };
    let server = FlightServiceServer::new(FlightServer(endpoint)).max_decoding_message_size(most);
    let deny = |denial: &Denial, request: &Request| denial_response(denial, request);
    auth::require_scope(Routes::new(server).into_axum_router(), authenticator, Scope::Query, deny)
}

fn denial_response(denial: &Denial, request: &Request) -> Response {
    let message = format!("{denial}; {}", denial.remedy());
    let (status, code) = match denial.is_unauthenticated() {
        true => (Status::unauthenticated(message), StatusCode::UNAUTHORIZED),
        false => (Status::permission_denied(message), StatusCode::FORBIDDEN),
    };
    let mut response: Response = status.into_http();
    // gRPC has a status of its own and an HTTP status of 200, which other clients must not take for success.
    let media = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !media.is_some_and(|media| media.starts_with("application/grpc")) {
        *response.status_mut() = code;
    }
    response
}

#[cfg(test)]
mod tests;
