//! The `faultline` binary: command-line arguments, output and wiring. The pipeline, the store and the query engine are
//! implemented in library crates.
//!
//! [`commands`] has one module for each subcommand, [`config`] has every setting, [`cli`] everything that uses a
//! terminal, and [`client`] the HTTP client for a running server. The meaning of a record is determined in
//! `classifier`.
//!
//! Without the cargo feature `server`, the program has only the commands that need no sockets and no tables:
//! `classify`, `codes`, `completions` and `man`.
//!
//! Invariants: results go to stdout and everything else to stderr; text from the data passes through
//! [`cli::terminal`] before it reaches a terminal; a reader that closes stdout early (`| head`) ends the program
//! quietly.

#![cfg_attr(
    not(feature = "server"),
    expect(
        dead_code,
        reason = "parts of cli and config are used only by commands that need the feature `server`"
    )
)]

mod cli;
#[cfg(feature = "server")]
mod client;
mod commands;
mod config;

use cli::terminal;
use commands::Command;
use std::process::ExitCode;

fn main() -> ExitCode {
    match parse_command().and_then(commands::run) {
        Ok(code) => code,
        Err(error) if terminal::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // clap prints its own usage errors, and help.
            if let Some(usage) = error.downcast_ref::<clap::Error>() {
                usage.exit();
            }
            terminal::print_error(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Parses the command line, with the environment and the config file as defaults.
#[cfg(feature = "server")]
fn parse_command() -> anyhow::Result<Command> {
    Ok(config::load()?.command)
}

/// Parses the command line.
#[cfg(not(feature = "server"))]
fn parse_command() -> anyhow::Result<Command> {
    let matches = commands::command_line().try_get_matches()?;
    Ok(<commands::Cli as clap::FromArgMatches>::from_arg_matches(&matches)?.command)
}
