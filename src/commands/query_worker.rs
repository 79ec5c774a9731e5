//! `faultline query-worker` is a process that runs queries for a server, which starts it.

use crate::cli::terminal;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// The log filter. Errors of libraries are reported by their callers.
const LEVEL: &str = "warn,buoyant_kernel=error,buoyant_kernel_engine=error,deltalake_core=error";

/// Runs statements until the server closes the standard input of this process.
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
