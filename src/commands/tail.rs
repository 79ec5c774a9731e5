//! `faultline tail` shows events of a running server as they arrive.
//!
//! Invariants: every event is printed once, across reconnects, as long as the server still has it, and a note says if
//! events were missed; text from the data passes through [`terminal`]; only Ctrl-C, a closed stdout or a rejection ends
//! the command.

mod connection;
mod pretty;
mod server_location;
mod sse;

use crate::cli::signals::ShutdownSignal;
use crate::cli::terminal::{self, OutputStyle};
use crate::client::{ClientTlsArgs, ServerAddress};
use crate::config::ConfigFileArg;
use clap::ValueEnum;
use connection::{Connection, Disconnect};
use pretty::{EventFormatter, HIDDEN_MARK};
use server_location::ServerLocation;
use sse::Message;
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

--where takes a condition like that of WHERE in SQL, over the columns of events; `faultline sql
'DESCRIBE events'` lists them. An event must match filters of every kind, and any of several filters
of one kind.

On a terminal, ▒ marks a hidden failure: one in a reply that said success.

If the server stops, tail waits until it is back, and shows the events that arrived meanwhile; a
note says if some are missing. It finds a restarted server by its data directory, whatever its port.

Environment:
  FAULTLINE_DATA_DIR  the data directory, unless --data-dir or --server is given
  FAULTLINE_TOKEN     a token for the server; or FAULTLINE_TOKEN_FILE, a file that holds it

Exit codes:
  0  stopped by Ctrl-C, or because the reader of the output has gone
  1  there is no server, or it accepts no more tails
  2  wrong usage, or an invalid filter";

/// The exit code for an invalid filter.
const INVALID_FILTER: u8 = 2;
/// The first and the longest delay between two attempts; it doubles each time.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// Shows events of a running server as they arrive.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Follow the server at this web address, instead of that of a data directory.
    #[arg(long, value_name = "URL", value_parser = server, conflicts_with = "data_dir")]
    server: Option<ServerAddress>,
    #[command(flatten)]
    tls: ClientTlsArgs,
    /// The data directory of a running server [default: faultline-data].
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: Option<PathBuf>,
    #[command(flatten)]
    _config: ConfigFileArg,
    /// Show only events of this category, such as rate-limit; may be repeated.
    #[arg(long, value_name = "NAME")]
    category: Vec<String>,
    /// Show only events of this service; may be repeated.
    #[arg(long, value_name = "NAME")]
    service: Vec<String>,
    /// Show only events with this code, as sent or canonical; `NOT_FOUND_*` matches a prefix; may be repeated.
    #[arg(long, value_name = "CODE")]
    code: Vec<String>,
    /// Show only events that match this SQL condition over the columns of events.
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// Begin with this number of the newest events.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(..=1000))]
    recent: u16,
    /// The output format [default: pretty on a terminal, json otherwise].
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Do not print notes on stderr.
    #[arg(long, short)]
    quiet: bool,
}

/// The output format of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Time, severity, a mark for hidden failures, service, operation, code and message, in colours.
    Pretty,
    /// One JSON object for each event, as `faultline dump` prints them.
    Json,
}

fn server(text: &str) -> Result<ServerAddress, String> {
    ServerAddress::parse(text, "http://127.0.0.1:7070", connection::PATH)
}

/// Follows the events until Ctrl-C.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (stop, tail) = (ShutdownSignal::new(), Tail::new(arguments)?);
        tokio::select! {
            ended = tail.follow() => ended,
            () = stop.requested() => Ok(ExitCode::SUCCESS),
        }
    })
}

/// The state of a tail: the location of its server, and its connection, which has the position.
struct Tail {
    server_location: ServerLocation,
    connection: Connection,
    printer: Printer,
    quiet: bool,
}

impl Tail {
    fn new(arguments: &Arguments) -> anyhow::Result<Self> {
        let style = OutputStyle::for_stdout();
        let usual = if style.terminal { Format::Pretty } else { Format::Json };
        Ok(Self {
            server_location: ServerLocation::new(arguments),
            connection: Connection::new(arguments),
            printer: Printer { format: arguments.format.unwrap_or(usual), lines: EventFormatter::new(style) },
            quiet: arguments.quiet,
        })
    }

    async fn follow(mut self) -> anyhow::Result<ExitCode> {
        let mut was_connected = false;
        let mut retry_delay = RETRY_DELAY.0;
        loop {
            let disconnect = match self.server_location.resolve() {
                Ok(address) => self.read(&address, was_connected).await?,
                Err(reason) => Disconnect::Unreachable(reason),
            };
            match disconnect {
                Disconnect::Rejected(reason) => {
                    terminal::print_error(&reason);
                    return Ok(ExitCode::from(INVALID_FILTER));
                }
                Disconnect::Unreachable(reason) if !was_connected => anyhow::bail!(reason),
                Disconnect::Unreachable(_) => retry_delay = (retry_delay * 2).min(RETRY_DELAY.1),
                Disconnect::Closed(reason) => {
                    was_connected = true;
                    retry_delay = RETRY_DELAY.0;
                    self.print_note(&format!("{reason}; waiting for the server to come back"));
                }
            }
            tokio::time::sleep(retry_delay).await;
        }
    }

    /// Prints the events of one connection, until it ends.
    async fn read(&mut self, address: &ServerAddress, was_connected: bool) -> anyhow::Result<Disconnect> {
        let mut sse = match self.connection.open(address).await {
            Ok(sse) => sse,
            Err(disconnect) => return Ok(disconnect),
        };
        let again = if was_connected { "connected again: " } else { "" };
        let legend = match self.printer.format {
            Format::Pretty if !was_connected => {
                format!("; {HIDDEN_MARK} marks a failure in a reply that said success")
            }
            _ => String::new(),
        };
        self.print_note(&format!("{again}following {address}; Ctrl-C ends{legend}"));
        loop {
            match sse.next().await {
                Ok(Message::Event { id, json }) => {
                    self.printer.print(&json)?;
                    self.connection.set_position(id);
                }
                Ok(Message::Position { id }) => self.connection.set_position(id),
                Ok(Message::Gap { id }) => {
                    self.print_note(
                        "some events went before they could be shown; `faultline sql` finds them",
                    );
                    self.connection.set_position(id);
                }
                Ok(Message::End { reason }) => return Ok(Disconnect::Closed(reason)),
                Err(reason) => return Ok(Disconnect::Closed(reason)),
            }
        }
    }

    fn print_note(&self, text: &str) {
        if !self.quiet {
            terminal::print_note(text);
        }
    }
}

/// Prints events in the selected format.
struct Printer {
    format: Format,
    lines: EventFormatter,
}

impl Printer {
    fn print(&mut self, json: &str) -> anyhow::Result<()> {
        let mut pretty = match self.format {
            Format::Pretty => self.lines.format_event(json),
            Format::Json => {
                let mut json = json.to_owned();
                terminal::sanitize_json(&mut json);
                json
            }
        };
        pretty.push('\n');
        Ok(terminal::write_stdout(pretty.as_bytes())?)
    }
}
