//! `faultline sql` runs queries on the error history, from the command line or at a prompt.
//!
//! A [`target`] runs the queries: a data directory, which a server may be using, or a server. Results arrive in
//! batches, and are written as they arrive ([`formats`]) or laid out as a table ([`table`]).
//!
//! Invariants: nothing is written to the data directory; interrupting a query does not end the prompt; results go to
//! stdout or to a file, and everything else to stderr.

mod cells;
mod error;
mod formats;
mod output;
mod prompt;
mod remote;
mod runner;
mod statements;
mod table;
mod target;

use crate::cli::terminal::{self, OutputStyle};
use crate::cli::units;
use crate::client::{ClientTlsArgs, ServerAddress};
use crate::config::ConfigFileArg;
use anyhow::Context;
use clap::builder::NonEmptyStringValueParser;
use formats::Format;
use output::Output;
use runner::{QueryRunner, RunOutcome};
use serde_json::Value;
use statements::Script;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use target::QueryTarget;

const EXAMPLES: &str = "\
Examples:
  faultline sql 'SELECT canonical, count(*) AS n FROM events GROUP BY canonical ORDER BY n DESC'
  faultline sql --format json 'SELECT time, message FROM errors WHERE service = $1' --param orders
  faultline sql --output errors.parquet 'SELECT * FROM errors'
  echo 'SELECT count(*) FROM traffic; SELECT count(*) FROM codes' | faultline sql
  faultline sql --file report.sql --format csv > report.csv

  faultline sql
  faultline sql --server http://127.0.0.1:7070 'SHOW TABLES'
  faultline sql --server https://faultline.example:7070 --ca ca.pem 'SELECT count(*) FROM errors'

Without a query, on a terminal, it opens a prompt: statements end with a semicolon, TAB completes,
.help lists commands. The history is kept in $XDG_STATE_HOME/faultline/history (else
~/.local/state/faultline/history).

--data-dir is read directly, even while a server uses it: queries see everything acknowledged, and
write nothing. --server queries a running server over HTTP instead, within its limits: a result that
is too long is truncated with a note, and counts as failed unless it is shown as a table.

Formats: auto is a table on a terminal and CSV when piped; with --output the extension of the file
decides (.csv, .json, .ndjson, .jsonl, .parquet, .arrow), else CSV. A table that is too wide for the
terminal is shown record by record (vertical); tables stop after 2,000 rows, records after 200. The
other formats have all rows, and are written as they arrive. In CSV an empty cell is NULL or an
empty text, and control characters other than line ends and tabs are escaped; the other formats keep
both. arrow is an Arrow IPC stream.

Environment:
  FAULTLINE_DATA_DIR  the data directory, unless --data-dir or --server is given
  FAULTLINE_TOKEN     the token for --server; or FAULTLINE_TOKEN_FILE, a file that holds it

Exit codes:
  0    success
  1    a query failed, or the data directory or the server cannot be used
  2    wrong usage
  130  stopped by Ctrl-C";

/// The exit code of a command that a signal stopped, by the convention of shells.
const INTERRUPTED: u8 = 130;
/// The exit code for wrong usage.
const USAGE: u8 = 2;

/// Queries the error history in SQL, with one query or at a prompt.
///
/// SHOW TABLES and SHOW FUNCTIONS list tables, views and functions; SELECT * FROM columns describes every column.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// One statement, or several separated by semicolons; without any, standard input, or a prompt on a terminal.
    #[arg(value_parser = NonEmptyStringValueParser::new(), conflicts_with = "file")]
    query: Option<String>,
    /// Run the statements of a file, one after the other, until one fails; `-` is stdin.
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// The value of $1, $2 and so on, in this order: a number, true, false, null, or else a text; may be repeated.
    #[arg(long = "param", short, value_name = "VALUE", allow_hyphen_values = true, value_parser = parameter)]
    params: Vec<Value>,
    /// The output format of rows.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
    /// Write rows to this file instead of stdout; the file appears when it is complete.
    #[arg(long, short, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// The data directory; a server may be using it [default: faultline-data].
    #[arg(long, value_name = "DIR", conflicts_with = "server", value_hint = clap::ValueHint::DirPath)]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    _config: ConfigFileArg,
    /// Query a running server instead of a data directory: the address of its web listener.
    #[arg(long, value_name = "URL", value_parser = server)]
    server: Option<ServerAddress>,
    #[command(flatten)]
    tls: ClientTlsArgs,
    /// A registry file with your own codes, as in examples/registry.toml; a server uses its own.
    #[arg(long, value_name = "FILE", conflicts_with = "server", value_hint = clap::ValueHint::FilePath)]
    registry: Option<PathBuf>,
    /// Longest run time of a query; a server may allow less.
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = units::parse_duration)]
    timeout: Duration,
    /// Memory of a query for sorts, joins and groups; a server uses its own limit.
    #[arg(long, value_name = "BYTES", default_value = "1GiB", value_parser = units::parse_bytes)]
    memory: u64,
    /// Do not print the note with the number of rows and the time.
    #[arg(long, short)]
    quiet: bool,
}

fn server(text: &str) -> Result<ServerAddress, String> {
    ServerAddress::parse(text, "http://127.0.0.1:7070", remote::PATH)
}

/// Parses a parameter as JSON if it is a number, true, false or null, and otherwise as a text.
#[allow(clippy::unnecessary_wraps, reason = "what clap asks for")]
fn parameter(text: &str) -> Result<Value, String> {
    Ok(match serde_json::from_str(text) {
        Ok(value @ (Value::Null | Value::Bool(_) | Value::Number(_))) => value,
        _ => Value::String(text.to_owned()),
    })
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let script = script(arguments)?;
    let style = OutputStyle::for_stdout();
    let output = Output::new(arguments.output.clone());
    let format = arguments.format.resolve(output.path(), style);
    if let Some(usage_error) = usage_error(format, script.as_ref(), &output, style) {
        terminal::print_error(&usage_error);
        return Ok(ExitCode::from(USAGE));
    }
    let target = QueryTarget::open(arguments)?;
    let mut runner = QueryRunner::new(target, arguments.format, output, style)?;
    let Some(script) = script else { return prompt::run(runner) };
    runner.has_notes = !arguments.quiet;
    Ok(match runner.run(&script, &arguments.params)? {
        RunOutcome::Success => ExitCode::SUCCESS,
        RunOutcome::Failed => ExitCode::FAILURE,
        RunOutcome::Interrupted => ExitCode::from(INTERRUPTED),
    })
}

/// Returns the statements to run, or `None` for a prompt.
fn script(arguments: &Arguments) -> anyhow::Result<Option<Script>> {
    if let Some(query) = &arguments.query {
        return Ok(Some(Script::new(None, query.clone())));
    }
    match &arguments.file {
        Some(file) if file.as_os_str() != "-" => read_file(file).map(Some),
        None if io::stdin().is_terminal() && io::stdout().is_terminal() => Ok(None),
        _ => read_stdin(arguments).map(Some),
    }
}

/// Reads a file of statements.
fn read_file(file: &Path) -> anyhow::Result<Script> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read '{name}'"))?;
    Ok(Script::new(Some(name), text))
}

fn read_stdin(arguments: &Arguments) -> anyhow::Result<Script> {
    if !arguments.quiet && io::stdin().is_terminal() {
        terminal::print_note("reading statements from the keyboard; end with Ctrl-D, or give a query");
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).context("cannot read statements from stdin")?;
    Ok(Script::new(Some("stdin".to_owned()), text))
}

/// Returns an error with a remedy if these arguments cannot be combined.
fn usage_error(
    format: Format,
    script: Option<&Script>,
    output: &Output,
    style: OutputStyle,
) -> Option<String> {
    let name = format.name();
    if format.is_binary() && style.terminal && output.path().is_none() && script.is_some() {
        return Some(format!("{name} is nothing for a terminal; add --output FILE, or redirect stdout"));
    }
    let statements = script.map_or(1, |script| script.statements().len());
    match statements {
        0 => Some(
            "there is no statement; give one as in faultline sql 'SELECT count(*) FROM events'".to_owned(),
        ),
        1 => None,
        _ if format.is_single() => {
            let path = output.path().map_or_else(|| "stdout".to_owned(), |path| path.display().to_string());
            Some(format!(
                "{path} can hold one answer as {name}, and there are {statements} statements; \
                 run them one by one, or choose csv or ndjson"
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parameters_are_numbers_truths_null_and_else_texts() {
        for (text, value) in [
            ("5", json!(5)),
            ("-1.5", json!(-1.5)),
            ("true", json!(true)),
            ("null", json!(null)),
            ("007", json!("007")),
            ("orders", json!("orders")),
            ("[1]", json!("[1]")),
            ("\"5\"", json!("\"5\"")),
            ("", json!("")),
        ] {
            assert_eq!(parameter(text), Ok(value), "{text}");
        }
    }
}
