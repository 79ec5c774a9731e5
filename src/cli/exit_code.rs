//! Errors that end a command with one sentence on stderr and an exit code of their own.

use crate::cli::terminal;
use std::process::ExitCode;

/// The exit code if the data directory cannot be used.
const DATA_DIRECTORY: u8 = 3;
/// The exit code if the server cannot listen on an address.
const LISTEN_ADDRESS: u8 = 4;

/// An error that ends a command with an exit code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct ExitError {
    code: u8,
    message: String,
}

impl ExitError {
    pub(crate) fn data_directory(error: impl std::fmt::Display) -> Self {
        Self { code: DATA_DIRECTORY, message: error.to_string() }
    }

    pub(crate) fn listen_address(message: String) -> Self {
        Self { code: LISTEN_ADDRESS, message }
    }
}

/// Prints an [`ExitError`] and returns its exit code; other errors are passed on.
pub(crate) fn report_exit_error(result: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    match result.map_err(anyhow::Error::downcast::<ExitError>) {
        Ok(code) => Ok(code),
        Err(Ok(error)) => {
            terminal::print_error(&error.message);
            Ok(ExitCode::from(error.code))
        }
        Err(Err(error)) => Err(error),
    }
}
