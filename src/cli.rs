//! Interaction with the terminal, the shell and the operating system on behalf of the commands.

#[cfg(feature = "server")]
pub(crate) mod exit_code;
pub(crate) mod input;
pub(crate) mod progress;
#[cfg(feature = "server")]
pub(crate) mod signals;
pub(crate) mod terminal;
#[cfg(feature = "server")]
pub(crate) mod units;
