//! The Arrow Flight SQL door.

use super::gate::SharedGate;
use crate::engine::Engine;
use axum::Router;

/// The routes of the gRPC service.
pub fn routes(_engine: Engine, _gate: SharedGate) -> Router {
    Router::new()
}
