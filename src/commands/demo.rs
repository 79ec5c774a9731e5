//! `faultline demo` runs `serve`, and generates believable traffic for it.
//!
//! The traffic comes from the world of the crate `demo`. A week of history is loaded into the data directory before any
//! endpoint responds ([`history`]), as `ingest` does, so that metrics do not count it as current traffic. Then live
//! traffic is sent to the endpoints of the server, over HTTP and gRPC like that of any client ([`live`], [`sender`]).
//!
//! Invariants: nothing is written into a directory that holds other data ([`directory`]); a second start loads only the
//! missing history; an error of the generator is logged and never ends the server.

mod batch;
mod directory;
mod history;
mod live;
mod sender;
mod welcome;

use crate::cli::exit_code;
use crate::cli::signals::ShutdownSignal;
use crate::cli::terminal;
use crate::cli::units;
use crate::commands::serve::{self, Companion, Endpoints};
use clap::builder::Resettable;
use clap::{ArgMatches, Command, FromArgMatches, ValueEnum};
use demo::World;
use directory::DemoState;
use live::LiveTraffic;
use sender::Sender;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use store::DataDirectory;
use tokio::runtime::Runtime;

const EXAMPLES: &str = "\
Examples:
  faultline demo
  faultline demo --rate 20 --history 30d
  faultline demo --story incident
  faultline demo --data-dir /tmp/shop --listen-web :0 --listen-postgres off

Then open http://127.0.0.1:7070/, or in another terminal:
  faultline sql --data-dir faultline-demo 'SELECT * FROM error_rates LIMIT 10'
  faultline tail --data-dir faultline-demo

The world is invented: nineteen services of every dialect. Most calls succeed;
two to six in a hundred fail, and about a third of the failures are hidden in
replies that their protocol calls a success. The history ends now. Started
again on the same directory, demo loads only what is missing since it was
stopped; to begin anew, remove the directory. faultline.toml is read only if
--config names it.

If the server has tokens, put one with the scope ingest into FAULTLINE_TOKEN:
live traffic is sent with it. demo does not start with --tls-cert.

Exit codes:
  0  stopped when asked, everything drained
  1  something else failed: the registry file, tokens, a thread
  2  wrong usage
  3  the data directory cannot be used, or holds data that is not the demo's
  4  an address cannot be listened on
  5  stopped at once by a second signal, or not everything was drained in time";

/// The default data directory.
const DATA_DIR: &str = "faultline-demo";
/// The default seed.
const SEED: u64 = 7;

/// Starts a server with an invented company's traffic: a week of history, then live.
///
/// Everything that `serve` has is there, and all of its flags. The history is loaded within seconds; live traffic
/// goes through the endpoints until Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    server: ServerArgs,
    /// The seed of everything that is random; the same seed gives the same world.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Calls a second in an average hour of a working day; nights and weekends are quieter. The history has at most 4.
    #[arg(long, value_name = "CALLS_PER_SECOND", default_value = "2", value_parser = parse_rate)]
    rate: f64,
    /// The length of the history; 0s for none.
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_history)]
    history: Duration,
    /// The kind of live traffic.
    #[arg(long, value_enum, default_value_t = Story::Everyday)]
    story: Story,
}

/// The kind of live traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Story {
    /// Everyday traffic.
    Everyday,
    /// One incident from its first signal to its resolution, in about ten minutes; each step is printed.
    Incident,
}

/// The flags of `serve`, with a different default of the data directory.
#[derive(Debug)]
struct ServerArgs(serve::Arguments);

impl clap::Args for ServerArgs {
    fn augment_args(command: Command) -> Command {
        let of_serve = <serve::Arguments as clap::Args>::augment_args(Command::new("serve"));
        let is_usual = |id: &str| id == "data_dir" || id.starts_with("listen_");
        let arguments = of_serve.get_arguments().cloned().map(|argument| {
            let argument = match argument.get_id().as_str() {
                "data_dir" => argument.default_value(DATA_DIR).env(Resettable::Reset),
                "config" => argument.env(Resettable::Reset),
                _ => argument,
            };
            let is_hidden = !is_usual(argument.get_id().as_str());
            argument.hide_short_help(is_hidden)
        });
        command.args(arguments)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServerArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        serve::Arguments::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl Arguments {
    /// Returns the flags of the server.
    pub(crate) fn server(&self) -> &serve::Arguments {
        &self.server.0
    }
}

/// Parses a rate that one process can send.
fn parse_rate(text: &str) -> Result<f64, String> {
    let rate = text.trim().parse::<f64>().ok().filter(|rate| (0.01..=10_000.0).contains(rate));
    rate.ok_or_else(|| "give a rate between 0.01 and 10000, as in 20 or 0.5".to_owned())
}

/// Parses the length of a history, which must be one that can be loaded within a few minutes.
fn parse_history(text: &str) -> Result<Duration, String> {
    const MOST: Duration = Duration::from_secs(90 * 24 * 60 * 60);
    let history = units::parse_duration(text)?;
    if history > MOST { Err("the history is 90d at most".to_owned()) } else { Ok(history) }
}

/// Runs until a signal requests a shutdown.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    exit_code::report_exit_error(start(arguments))
}

fn start(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let server = arguments.server();
    anyhow::ensure!(
        !server.is_encrypted(),
        "demo sends its traffic unencrypted; leave out --tls-cert and --tls-key, or use `faultline serve`"
    );
    directory::check(server.data_dir())?;
    let mut demo = Demo { arguments, state: DemoState { seed: SEED, loaded_until: 0 } };
    serve::serve(server, Some(&mut demo))
}

/// The parts that `demo` adds to the server.
struct Demo<'a> {
    arguments: &'a Arguments,
    state: DemoState,
}

impl Companion for Demo<'_> {
    fn prepare(&mut self, directory: &DataDirectory, runtime: &Runtime) -> anyhow::Result<()> {
        let stored = DemoState::read(directory);
        let seed = self.arguments.seed.or(stored.map(|stored| stored.seed)).unwrap_or(SEED);
        self.state = DemoState { seed, loaded_until: stored.map_or(0, |stored| stored.loaded_until) };
        self.state.write(directory)?;
        let plan = history::Plan {
            world: World::new(seed),
            length: self.arguments.history,
            rate: self.arguments.rate,
        };
        let loaded_until = self.state.loaded_until;
        self.state.loaded_until =
            history::load(&plan, loaded_until, self.arguments.server(), directory, runtime)?;
        self.state.write(directory)?;
        Ok(())
    }

    fn start(
        &mut self,
        endpoints: &Endpoints,
        directory: &DataDirectory,
        runtime: &Runtime,
        shutdown: &ShutdownSignal,
    ) {
        let program = std::env::args_os().next().map_or_else(|| "faultline".into(), PathBuf::from);
        let data_dir = self.arguments.server().data_dir();
        terminal::print_note(&welcome::text(endpoints, &program, data_dir, self.arguments.history));
        if endpoints.otlp_http.is_none() {
            tracing::warn!("--listen-otlp-http is off: services that write logs send nothing live");
        }
        let sender = match Sender::new(endpoints) {
            Ok(sender) => sender,
            Err(error) => return tracing::warn!("there is no live traffic: {error:#}"),
        };
        let now = jiff::Timestamp::now().as_microsecond();
        let world = World::new(self.state.seed);
        let is_incident = self.arguments.story == Story::Incident;
        let live = LiveTraffic {
            world: if is_incident { world.with_incident(now) } else { world },
            incident_at: is_incident.then_some(now),
            rate: self.arguments.rate,
            state: self.state,
            directory: directory.clone(),
            sender,
        };
        runtime.spawn(live.run(shutdown.requested()));
    }
}
