//! The command line of Faultline: arguments, printing and wiring, nothing else.
//!
//! One file a subcommand. What a record means is decided in `taxonomy`; this package opens files, reads the
//! clock, once, and speaks to a person.
//!
//! What always holds: results go to stdout and everything else to stderr; text from the data passes through
//! [`terminal`] before a person sees it; a reader that has seen enough (`| head`) ends the program quietly.

mod backup;
mod check;
mod classify;
mod client;
mod codes;
mod completions;
mod dashboards;
mod dump;
mod health;
mod ingest;
mod input;
mod limits;
mod opened;
mod patience;
mod places;
mod progress;
mod quantity;
mod refused;
mod registry;
mod restore;
mod serve;
mod settings;
mod sql;
mod stop;
mod tail;
mod terminal;
mod token;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

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
    Backup(backup::Arguments),
    Check(check::Arguments),
    Classify(classify::Arguments),
    Codes(codes::Arguments),
    Completions(completions::Arguments),
    Dashboards(dashboards::Arguments),
    Dump(dump::Arguments),
    Health(health::Arguments),
    Ingest(ingest::Arguments),
    Restore(restore::Arguments),
    Serve(Box<serve::Arguments>),
    Sql(sql::Arguments),
    Tail(tail::Arguments),
    Token(token::Arguments),
}

fn main() -> ExitCode {
    match given().and_then(|given| run(given.command)) {
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

/// What was asked for.
struct Given {
    command: Command,
    /// Every flag of the command and its value, wherever that came from.
    values: BTreeMap<String, Vec<OsString>>,
}

/// Reads the command line and the environment; for `serve`, with a settings file underneath.
fn given() -> anyhow::Result<Given> {
    let mut matches = Cli::command().try_get_matches()?;
    if let Some(file) = settings_file(&matches) {
        matches = settings::Settings::load(&file)?.beneath(Cli::command()).try_get_matches()?;
    }
    let values = matches.subcommand().map(|(_, flags)| values(flags)).unwrap_or_default();
    let command = Cli::from_arg_matches(&matches)?.command;
    if let Command::Serve(arguments) = &command {
        arguments.check()?;
    }
    Ok(Given { command, values })
}

fn settings_file(given: &ArgMatches) -> Option<PathBuf> {
    let serve = given.subcommand_matches("serve")?;
    settings::file(serve.get_one::<PathBuf>(settings::FLAG))
}

fn values(flags: &ArgMatches) -> BTreeMap<String, Vec<OsString>> {
    let value = |id: &clap::Id| {
        let raw = flags.try_get_raw(id.as_str()).ok().flatten()?;
        Some((id.to_string(), raw.map(OsString::from).collect()))
    };
    flags.ids().filter_map(value).collect()
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Backup(arguments) => backup::run(&arguments),
        Command::Check(arguments) => check::run(&arguments),
        Command::Classify(arguments) => classify::run(&arguments, jiff::Timestamp::now().as_microsecond()),
        Command::Codes(arguments) => codes::run(&arguments),
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Dashboards(arguments) => dashboards::run(&arguments),
        Command::Dump(arguments) => dump::run(&arguments),
        Command::Health(arguments) => health::run(&arguments),
        Command::Ingest(arguments) => ingest::run(&arguments),
        Command::Restore(arguments) => restore::run(&arguments),
        Command::Serve(arguments) => serve::run(&arguments),
        Command::Sql(arguments) => sql::run(&arguments),
        Command::Tail(arguments) => tail::run(&arguments),
        Command::Token(arguments) => token::run(&arguments),
    }
}

/// True when whoever reads our output went away: that is their choice and no failure of ours.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let is_pipe = |error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe;
    error.chain().any(|cause| cause.downcast_ref::<io::Error>().is_some_and(is_pipe))
}
