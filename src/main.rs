//! The command line of Faultline: arguments, printing and wiring, nothing else.
//!
//! One file a subcommand. What a record means is decided in `taxonomy`; this package opens files, reads the
//! clock, once, and speaks to a person.
//!
//! Without the feature `server`, this program is `classify` and `codes` alone: it opens no socket and stores nothing.
//!
//! What always holds: results go to stdout and everything else to stderr; text from the data passes through
//! [`terminal`] before a person sees it; a reader that has seen enough (`| head`) ends the program quietly.

#![cfg_attr(
    not(feature = "server"),
    expect(
        dead_code,
        reason = "files, progress and tables are also read and drawn by commands that are not there"
    )
)]

#[cfg(feature = "server")]
mod backup;
#[cfg(feature = "server")]
mod check;
mod classify;
#[cfg(feature = "server")]
mod client;
mod codes;
mod completions;
#[cfg(feature = "server")]
mod dashboards;
#[cfg(feature = "server")]
mod dump;
#[cfg(feature = "server")]
mod health;
#[cfg(feature = "server")]
mod ingest;
mod input;
#[cfg(feature = "server")]
mod limits;
mod man;
#[cfg(feature = "server")]
mod opened;
#[cfg(feature = "server")]
mod patience;
#[cfg(feature = "server")]
mod places;
mod progress;
#[cfg(feature = "server")]
mod quantity;
#[cfg(feature = "server")]
mod query_worker;
#[cfg(feature = "server")]
mod refused;
mod registry;
#[cfg(feature = "server")]
mod restore;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "server")]
mod settings;
#[cfg(feature = "server")]
mod sql;
#[cfg(feature = "server")]
mod stop;
#[cfg(feature = "server")]
mod tail;
mod terminal;
#[cfg(feature = "server")]
mod token;

use clap::{Parser, Subcommand};
use std::io;
use std::process::ExitCode;

#[cfg(not(feature = "server"))]
const EXAMPLES: &str = "\
Examples:
  faultline classify --summary app.ndjson
  faultline codes -32002

This build classifies and explains codes. A usual build also stores, serves and queries.

NO_COLOR is honoured; colours and lines are drawn on a terminal only.";

#[cfg(feature = "server")]
const EXAMPLES: &str = "\
Examples:
  faultline classify --summary app.ndjson
  faultline ingest app.ndjson --data-dir loaded
  faultline sql --data-dir loaded 'SELECT canonical, count(*) FROM events GROUP BY canonical'
  faultline codes -32002

Exit codes:
  0  it worked
  1  something could not be done: a file, the registry, a code without an entry
  2  wrong usage, or input of which nothing could be read
  and others that the pages of serve and ingest tell

NO_COLOR is honoured; colours and lines are drawn on a terminal only.";

/// Finds the failures inside response envelopes, and says what they mean.
///
/// Servers that agents call answer in envelopes, and most of their failures travel inside replies that their
/// protocol calls a success. Faultline looks inside and classifies them in one taxonomy across dialects.
#[derive(Debug, Parser)]
#[command(version, after_help = EXAMPLES, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "server")]
    Backup(backup::Arguments),
    #[cfg(feature = "server")]
    Check(check::Arguments),
    Classify(classify::Arguments),
    Codes(codes::Arguments),
    Completions(completions::Arguments),
    #[cfg(feature = "server")]
    Dashboards(dashboards::Arguments),
    #[cfg(feature = "server")]
    Dump(dump::Arguments),
    #[cfg(feature = "server")]
    Health(health::Arguments),
    #[cfg(feature = "server")]
    Ingest(Box<ingest::Arguments>),
    Man(man::Arguments),
    /// Runs queries for a server, which starts it.
    #[cfg(feature = "server")]
    #[command(hide = true)]
    QueryWorker,
    #[cfg(feature = "server")]
    Restore(restore::Arguments),
    #[cfg(feature = "server")]
    Serve(Box<serve::Arguments>),
    #[cfg(feature = "server")]
    Sql(sql::Arguments),
    #[cfg(feature = "server")]
    Tail(tail::Arguments),
    #[cfg(feature = "server")]
    Token(token::Arguments),
}

fn main() -> ExitCode {
    match command().and_then(run) {
        Ok(code) => code,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            // What is wrong with the command line is told by who has read it; so is help.
            if let Some(usage) = error.downcast_ref::<clap::Error>() {
                usage.exit();
            }
            terminal::complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// What was asked for: by the command line, with the environment and the settings file beneath it.
#[cfg(feature = "server")]
fn command() -> anyhow::Result<Command> {
    Ok(settings::given()?.command)
}

/// What was asked for on the command line.
#[cfg(not(feature = "server"))]
fn command() -> anyhow::Result<Command> {
    Ok(Cli::try_parse()?.command)
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        #[cfg(feature = "server")]
        Command::Backup(arguments) => backup::run(&arguments),
        #[cfg(feature = "server")]
        Command::Check(arguments) => check::run(&arguments),
        Command::Classify(arguments) => classify::run(&arguments, jiff::Timestamp::now().as_microsecond()),
        Command::Codes(arguments) => codes::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        #[cfg(feature = "server")]
        Command::Dashboards(arguments) => dashboards::run(&arguments),
        #[cfg(feature = "server")]
        Command::Dump(arguments) => dump::run(&arguments),
        #[cfg(feature = "server")]
        Command::Health(arguments) => health::run(&arguments),
        #[cfg(feature = "server")]
        Command::Ingest(arguments) => ingest::run(&arguments),
        Command::Man(arguments) => man::run(&arguments),
        #[cfg(feature = "server")]
        Command::QueryWorker => query_worker::run(),
        #[cfg(feature = "server")]
        Command::Restore(arguments) => restore::run(&arguments),
        #[cfg(feature = "server")]
        Command::Serve(arguments) => serve::run(&arguments),
        #[cfg(feature = "server")]
        Command::Sql(arguments) => sql::run(&arguments),
        #[cfg(feature = "server")]
        Command::Tail(arguments) => tail::run(&arguments),
        #[cfg(feature = "server")]
        Command::Token(arguments) => token::run(&arguments),
    }
}

/// True when whoever reads our output went away: that is their choice and no failure of ours.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_pipe))
}
