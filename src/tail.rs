//! `faultline tail`: events of a running server, as they come.
//!
//! What always holds: every event is printed once, across reconnects, as far as the server still has it, and a note
//! says so when it does not; text from the data passes through [`terminal`]; only Ctrl-C, a closed stdout or a refusal
//! ends it.

mod connection;
mod line;
mod messages;
mod source;

use crate::client::{Address, Trust};
use crate::settings::SettingsFile;
use crate::stop::Stop;
use crate::terminal::{self, Look};
use clap::ValueEnum;
use connection::{Connection, Lost};
use line::Lines;
use messages::Message;
use source::Source;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  faultline tail
  faultline tail --category rate-limit --category token --service orders
  faultline tail --code 'NOT_FOUND_*' --recent 100
  faultline tail --where \"severity = 'critical' OR duration_us > 1000000\"
  faultline tail --server http://127.0.0.1:7070 --format json | head -n 1

--where takes a condition as it stands behind WHERE in SQL, over the columns of events; `faultline sql
'DESCRIBE events'` lists them. Filters of different kinds must all hold; of several of one kind, any.

When the server goes away, its return is waited for, and what came meanwhile is shown; a note says so
when some of it cannot be. A restarted server is found again by its data directory, whatever its port.

Environment:
  FAULTLINE_DATA_DIR  the data directory, unless --data-dir or --server is given
  FAULTLINE_TOKEN     a token for the server; or FAULTLINE_TOKEN_FILE, a file that holds it

Exit codes:
  0  ended by Ctrl-C, or nobody reads the output any more
  1  there is no server, or it takes no more readers
  2  wrong usage, or a filter that makes no sense";

/// A filter that makes no sense.
const USAGE: u8 = 2;
/// Between two attempts: doubles up to the second.
const PAUSE: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// Shows events as they come, from a running server.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The web address of a server, instead of a data directory.
    #[arg(long, value_name = "URL", value_parser = server, conflicts_with = "data_dir")]
    server: Option<Address>,
    #[command(flatten)]
    trust: Trust,
    /// The data directory of a running server [default: faultline-data].
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    _settings: SettingsFile,
    /// Only events of this category, as in rate-limit; may be repeated.
    #[arg(long, value_name = "NAME")]
    category: Vec<String>,
    /// Only events of this service; may be repeated.
    #[arg(long, value_name = "NAME")]
    service: Vec<String>,
    /// Only this code, as sent or canonical; `NOT_FOUND_*` means all that begin so; may be repeated.
    #[arg(long, value_name = "CODE")]
    code: Vec<String>,
    /// Only events for which this is true, in SQL over the columns of events.
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// Begin with so many of the newest events.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(..=1000))]
    recent: u16,
    /// One line an event for people, or JSON [default: pretty on a terminal, json otherwise].
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Leave out the notes on stderr.
    #[arg(long, short)]
    quiet: bool,
}

/// How events are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Time, severity, service, operation, code and message, in colours.
    Pretty,
    /// One JSON object a line, as `faultline dump` prints them.
    Json,
}

fn server(text: &str) -> Result<Address, String> {
    Address::read(text, "http://127.0.0.1:7070", connection::PATH)
}

/// Follows until Ctrl-C.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (stop, tail) = (Stop::new(), Tail::new(arguments)?);
        tokio::select! {
            ended = tail.follow() => ended,
            () = stop.asked() => Ok(ExitCode::SUCCESS),
        }
    })
}

/// What is followed, and how far.
struct Tail {
    source: Source,
    connection: Connection,
    printer: Printer,
    is_quiet: bool,
}

impl Tail {
    fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        let look = Look::of_stdout();
        let usual = if look.terminal { Format::Pretty } else { Format::Json };
        Ok(Self {
            source: Source::new(arguments),
            connection: Connection::new(arguments),
            printer: Printer { format: arguments.format.unwrap_or(usual), lines: Lines::new(look) },
            is_quiet: arguments.quiet,
        })
    }

    async fn follow(mut self) -> anyhow::Result<ExitCode> {
        let mut was_there = false;
        let mut pause = PAUSE.0;
        loop {
            let lost = match self.source.find() {
                Ok(address) => self.read(&address, was_there).await?,
                Err(reason) => Lost::Away(reason),
            };
            match lost {
                Lost::Refused(reason) => {
                    terminal::complain(&reason);
                    return Ok(ExitCode::from(USAGE));
                }
                Lost::Away(reason) if !was_there => anyhow::bail!(reason),
                Lost::Away(_) => pause = (pause * 2).min(PAUSE.1),
                Lost::Broken(reason) => {
                    was_there = true;
                    pause = PAUSE.0;
                    self.note(&format!("{reason}; waiting for the server to come back"));
                }
            }
            tokio::time::sleep(pause).await;
        }
    }

    /// Prints what comes over one connection, until it ends.
    async fn read(&mut self, address: &Address, was_there: bool) -> anyhow::Result<Lost> {
        let mut messages = match self.connection.open(address).await {
            Ok(messages) => messages,
            Err(lost) => return Ok(lost),
        };
        let again = if was_there { "connected again: " } else { "" };
        self.note(&format!("{again}following {address}; Ctrl-C ends"));
        loop {
            match messages.next().await {
                Ok(Message::Event { id, json }) => {
                    self.printer.print(&json)?;
                    self.connection.seen(id);
                }
                Ok(Message::Place { id }) => self.connection.seen(id),
                Ok(Message::Gap { id }) => {
                    self.note("some events went before they could be shown; `faultline sql` finds them");
                    self.connection.seen(id);
                }
                Ok(Message::End { reason }) => return Ok(Lost::Broken(reason)),
                Err(reason) => return Ok(Lost::Broken(reason)),
            }
        }
    }

    fn note(&self, text: &str) {
        if !self.is_quiet {
            terminal::note(text);
        }
    }
}

/// Prints events.
struct Printer {
    format: Format,
    lines: Lines,
}

impl Printer {
    fn print(&mut self, json: &str) -> anyhow::Result<()> {
        let mut line = match self.format {
            Format::Pretty => self.lines.of(json),
            Format::Json => {
                let mut json = json.to_owned();
                terminal::harmless_json(&mut json);
                json
            }
        };
        line.push('\n');
        Ok(terminal::print(line.as_bytes())?)
    }
}
