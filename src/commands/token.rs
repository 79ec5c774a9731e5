//! `faultline token` creates tokens.

use crate::cli::{terminal, units};
use anyhow::Context;
use auth::{Scope, Secret, Token, Tokens};
use jiff::Timestamp;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  faultline token new --scope ingest --name shipper --tokens tokens.toml
  faultline token new --scope query --name analysts --expires 90d --tokens tokens.toml

The token is printed once, alone on stdout; its hash is added to the file. A server that was started
with `--tokens tokens.toml` accepts it after SIGHUP. Without --tokens, the entry for the file is
printed on stderr.

Clients send the token as `Authorization: Bearer TOKEN`. PostgreSQL clients use the name as the user
and the token as the password. faultline sql, tail and ingest read FAULTLINE_TOKEN, or the file
FAULTLINE_TOKEN_FILE.

Scopes:
  ingest  send envelopes, spans and log records
  query   read: SQL, tails, metrics, status
  admin   everything

Exit codes:
  0  the token was created
  1  the file cannot be read or written, or has a token of that name
  2  wrong usage";

/// Creates tokens for clients.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    New(New),
}

/// Creates a token, and prints it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
struct New {
    /// The scope of the token: ingest, query or admin; may be repeated.
    #[arg(long, required = true, value_delimiter = ',')]
    scope: Vec<Scope>,
    /// The name of the token, such as that of its owner.
    #[arg(long, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    name: String,
    /// The time after which the token expires, such as 90d.
    #[arg(long, value_name = "TIME", value_parser = units::parse_duration)]
    expires: Option<Duration>,
    /// The server's file of tokens, to which the hash of the token is added.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_TOKENS_FILE", value_hint = clap::ValueHint::FilePath)]
    tokens: Option<PathBuf>,
}

/// Creates a token.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Command::New(new) = &arguments.command;
    let secret = Secret::generate()?;
    let expires = new.expires.map(|time| Timestamp::now().checked_add(time)).transpose()?;
    let token = Token::new(&new.name, &new.scope, expires, &secret)?;
    match &new.tokens {
        Some(file) => add(file, &token)?,
        None => terminal::print_note(&format!("add this to a file of tokens:\n\n{}", token.to_toml())),
    }
    terminal::write_stdout(format!("{}\n", secret.reveal()).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Adds the token to a file, which is created so that only its owner can read it.
fn add(file: &Path, token: &Token) -> anyhow::Result<()> {
    let name = file.display();
    let existing = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read '{name}'")),
    };
    let mut tokens =
        Tokens::parse_file(&existing).with_context(|| format!("'{name}' is no file of tokens"))?;
    tokens.add(token.clone()).with_context(|| format!("in '{name}'; choose another --name"))?;
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(file);
    let mut opened = opened.with_context(|| format!("cannot write '{name}'"))?;
    let gap = if existing.is_empty() || existing.ends_with("\n\n") { "" } else { "\n" };
    opened.write_all(format!("{gap}{}", token.to_toml()).as_bytes())?;
    opened.sync_all().with_context(|| format!("cannot write '{name}'"))?;
    terminal::print_note(&format!(
        "'{}' was added to {name}; send SIGHUP to a running server to load it",
        token.name
    ));
    Ok(())
}
