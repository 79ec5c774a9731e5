//! The command line and its subcommands. Each has a module with its arguments and its `run` function.

#[cfg(feature = "server")]
mod backup;
#[cfg(feature = "server")]
mod check;
mod classify;
mod codes;
mod completions;
#[cfg(feature = "server")]
mod dashboards;
#[cfg(feature = "server")]
mod demo;
#[cfg(feature = "server")]
mod dump;
#[cfg(feature = "server")]
mod health;
#[cfg(feature = "server")]
mod ingest;
mod man;
#[cfg(feature = "server")]
mod query_worker;
#[cfg(feature = "server")]
mod restore;
#[cfg(feature = "server")]
mod running_pipeline;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "server")]
mod sql;
#[cfg(feature = "server")]
mod tail;
#[cfg(feature = "server")]
mod token;

use clap::{CommandFactory, Parser, Subcommand};
use std::process::ExitCode;

#[cfg(not(feature = "server"))]
const EXAMPLES: &str = "\
Examples:
  faultline classify --summary app.ndjson
  faultline codes -32002

This build classifies and explains codes. The full build also stores, serves and queries events.

Colours and lines are drawn only on a terminal; NO_COLOR turns colours off.";

#[cfg(feature = "server")]
const EXAMPLES: &str = "\
Examples:
  faultline classify --summary app.ndjson
  faultline ingest app.ndjson --data-dir loaded
  faultline sql --data-dir loaded 'SELECT canonical, count(*) FROM events GROUP BY canonical'
  faultline codes -32002

Exit codes:
  0  success
  1  failure: a file or the registry cannot be read, or a code has no entry
  2  wrong usage, or no part of the input could be parsed
  serve and ingest have more; their own help lists them

Colours and lines are drawn only on a terminal; NO_COLOR turns colours off.";

/// Finds the failures inside response envelopes, and explains them.
///
/// Servers that agents call reply in envelopes, and most of their failures travel inside replies that the
/// protocol reports as a success. Faultline looks inside and classifies them in one taxonomy across dialects.
#[derive(Debug, Parser)]
#[command(name = "faultline", version, after_help = EXAMPLES, arg_required_else_help = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Returns the command line for parsing and for its help. The paragraphs below the flags are one line each, so that they
/// are wrapped once, at the width of the terminal.
pub(crate) fn command_line() -> clap::Command {
    join_paragraphs(Cli::command())
}

/// Joins the lines of paragraphs in the text below the flags, here and in all subcommands.
fn join_paragraphs(command: clap::Command) -> clap::Command {
    let below = command.get_after_help().map(ToString::to_string);
    let command = command.mut_subcommands(join_paragraphs);
    match below {
        Some(below) => command.after_help(joined(&below)),
        None => command,
    }
}

/// Joins lines that continue a paragraph. Indented lines are examples and lists, and a line after a heading starts anew.
fn joined(text: &str) -> String {
    let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
    let mut joined = String::with_capacity(text.len());
    let mut previous = "";
    for line in text.lines() {
        let continues = is_prose(previous) && is_prose(line) && !previous.ends_with(':');
        if !joined.is_empty() {
            joined.push(if continues { ' ' } else { '\n' });
        }
        joined.push_str(line);
        previous = line;
    }
    joined
}

/// A subcommand with its arguments.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
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
    Demo(Box<demo::Arguments>),
    #[cfg(feature = "server")]
    Dump(dump::Arguments),
    #[cfg(feature = "server")]
    Health(health::Arguments),
    #[cfg(feature = "server")]
    Ingest(Box<ingest::Arguments>),
    Man(man::Arguments),
    /// Runs queries for a server; the server starts it.
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

/// Runs a subcommand, and returns the exit code of the process.
pub(crate) fn run(command: Command) -> anyhow::Result<ExitCode> {
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
        Command::Demo(arguments) => demo::run(&arguments),
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
