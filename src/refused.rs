//! What ends a command with one sentence on stderr and an exit code of its own.

use crate::terminal;
use std::process::ExitCode;

/// The data directory cannot be used.
const DIRECTORY: u8 = 3;
/// An address cannot be listened on.
const ADDRESS: u8 = 4;

/// Something that ends a command with an exit code of its own.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refused {
    code: u8,
    message: String,
}

impl Refused {
    pub(crate) fn directory(error: impl std::fmt::Display) -> Self {
        Self { code: DIRECTORY, message: error.to_string() }
    }

    pub(crate) fn address(message: String) -> Self {
        Self { code: ADDRESS, message }
    }
}

/// Says why a command was refused; other errors are passed on.
pub(crate) fn or_exit_code(ended: anyhow::Result<ExitCode>) -> anyhow::Result<ExitCode> {
    match ended.map_err(anyhow::Error::downcast::<Refused>) {
        Ok(code) => Ok(code),
        Err(Ok(refused)) => {
            terminal::complain(&refused.message);
            Ok(ExitCode::from(refused.code))
        }
        Err(Err(error)) => Err(error),
    }
}
