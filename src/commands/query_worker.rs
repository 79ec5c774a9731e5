//! `faultline query-worker`: a process that runs queries for a server, and is started by it.

use crate::cli::terminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// What a library has to say is told by those who called it.
const LEVEL: &str = "warn,buoyant_kernel=error,buoyant_kernel_engine=error,deltalake_core=error";

/// Runs statements until the server closes our standard input.
pub(crate) fn run() -> anyhow::Result<ExitCode> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_env_filter(EnvFilter::new(LEVEL))
        .with_ansi(false)
        .without_time()
        .init();
    match query::worker::process::run() {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(error) => {
            terminal::print_error(&error.to_string());
            Ok(ExitCode::FAILURE)
        }
    }
}
