//! The PostgreSQL door.

use super::gate::SharedGate;
use crate::engine::Engine;
use tokio::net::TcpListener;

/// Serves `listener` until `shutdown` is ready.
pub async fn run(
    listener: TcpListener,
    _engine: Engine,
    _gate: SharedGate,
    shutdown: impl Future<Output = ()>,
) {
    shutdown.await;
    drop(listener);
}
