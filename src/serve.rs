//! `faultline serve`: the whole pipeline in one process, on loopback, with its data in one folder.
//!
//! Only wiring: the data directory, the log, the pipeline, the listeners, and the way out.
//!
//! What always holds: `endpoints.json` is written when every listener is bound, and gone when the process has
//! ended well; a stop drains what was begun; whatever keeps it from starting is one sentence on stderr and an
//! exit code of its own.

mod address;
mod banner;
mod encryption;
mod endpoints;
mod files;
mod logging;
mod notify;
mod own_traces;
mod pages;
mod reload;
mod runbook;
mod tokens;

use crate::limits::{Conflict, Limits};
use crate::opened::{Opened, Room};
use crate::patience::Patience;
use crate::refused::{self, Refused};
use crate::{registry, stop};
use access::tls::{Listener, Tls};
use access::{Gate, Origin};
use address::Listen;
use collector::metrics::Metrics;
use collector::receive::{self, server};
use collector::{Budget, Pipeline};
use endpoints::Endpoints;
use query::QueryService;
use reload::Reload;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use store::keeper::Keeper;
use store::lake::Maintenance;
use store::{DataDirectory, DirectoryError};
use taxonomy::Rules;
use tokio::sync::watch;

const EXAMPLES: &str = "\
Examples:
  faultline serve
  faultline serve --data-dir /var/lib/faultline --registry registry.toml
  faultline serve --listen-otlp-http 127.0.0.1:0 --listen-otlp-grpc off
  faultline serve --files '/var/log/app/*.log*' --files orders='/srv/orders/out.log*'
  your-server | faultline serve --stdin --tee
  faultline serve --listen-web 0.0.0.0:7070 --tokens tokens.toml \\
                  --tls-cert server.crt --tls-key server.key

  curl -H 'Content-Type: application/x-ndjson' --data-binary @examples/app.ndjson \\
       http://127.0.0.1:4318/v1/envelopes
  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317 your-server
  faultline dump --data-dir faultline-data

Settings can stand in a file, faultline.toml or --settings; flags win over the environment, and that
over the file. SIGHUP reads them again: the log level, expected services, budgets, tokens and
certificates change at once, the rest with the next start.

A yes to a sender means that what it sent is on disk, synced. The addresses are written to
endpoints.json in the data directory. SIGTERM or Ctrl-C stops taking and finishes what was begun; a
second one stops at once (nothing that was answered with a yes is lost).

Environment:
  FAULTLINE_SETTINGS, FAULTLINE_*  most flags have a variable; docs/settings.md lists them
  OTEL_EXPORTER_OTLP_ENDPOINT  where to send our own traces (never to ourselves);
                               OTEL_EXPORTER_OTLP_PROTOCOL is grpc or http/protobuf [default]

Exit codes:
  0  stopped when asked, everything drained
  1  something else could not be done: the registry file, tokens, a certificate, a thread
  2  wrong usage
  3  the data directory cannot be used: unreadable, full, or another process has it
  4  an address cannot be listened on
  5  stopped at once by a second signal, or not everything could be drained in time";

/// Stopped without having drained.
const FORCED: u8 = 5;

/// Takes envelope logs and OTLP in, and keeps every failure.
///
/// Listens for OTLP over gRPC (4317) and HTTP (4318), for response envelopes on /v1/envelopes (4318), and
/// answers /healthz, /readyz and /api/v1/status (7070). Everything is on loopback unless told otherwise.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A file of settings; faultline.toml if it is there.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_SETTINGS", value_hint = clap::ValueHint::FilePath)]
    settings: Option<PathBuf>,
    /// Where everything is kept; made if it is not there.
    #[arg(long, value_name = "DIR", default_value = "faultline-data", env = "FAULTLINE_DATA_DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: PathBuf,
    /// OTLP over gRPC: an address, :0 for any free port, or off.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:4317",
        env = "FAULTLINE_LISTEN_OTLP_GRPC"
    )]
    listen_otlp_grpc: Listen,
    /// OTLP over HTTP, and envelopes: an address, :0 for any free port, or off.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:4318",
        env = "FAULTLINE_LISTEN_OTLP_HTTP"
    )]
    listen_otlp_http: Listen,
    /// SQL over HTTP, health and status: an address, :0 for any free port, or off.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070", env = "FAULTLINE_LISTEN_WEB")]
    listen_web: Listen,
    /// SQL over the PostgreSQL protocol: an address, :0 for any free port, or off.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5433", env = "FAULTLINE_LISTEN_POSTGRES")]
    listen_postgres: Listen,
    /// SQL over Arrow Flight: an address, :0 for any free port, or off.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8815", env = "FAULTLINE_LISTEN_FLIGHT")]
    listen_flight: Listen,
    /// The tokens that clients must have, as `faultline token new` makes them; without, everyone on this machine may.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_TOKENS_FILE", value_hint = clap::ValueHint::FilePath)]
    tokens: Option<PathBuf>,
    #[command(flatten)]
    encryption: encryption::Encryption,
    /// Listen on addresses that other machines reach, though nobody has to prove who they are.
    #[arg(long, env = "FAULTLINE_INSECURE")]
    insecure: bool,
    /// An origin whose web pages may use the HTTP endpoints from a browser, as in `https://grafana.example`; may be
    /// repeated. Requests that pages of any other origin make are rejected.
    #[arg(long, value_name = "ORIGIN", env = "FAULTLINE_ALLOW_ORIGINS", value_delimiter = ',')]
    allow_origin: Vec<Origin>,
    /// Your own codes, profiles and redaction, as in examples/registry.toml.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_REGISTRY", value_hint = clap::ValueHint::FilePath)]
    registry: Option<PathBuf>,
    /// A service whose metrics begin at 0 before it is heard of, so that alerts see its first failure; may be repeated.
    #[arg(long, value_name = "NAME", env = "FAULTLINE_EXPECT_SERVICES", value_delimiter = ',')]
    expect_service: Vec<String>,
    /// How many events of a service are stored one by one: 10000/s for every service, orders=500/s or orders=600/min for
    /// one; may be repeated. Past its budget, events of a service that are alike share a row, which says how many it
    /// represents; all are counted. No budget unless one is set.
    #[arg(long, value_name = "[SERVICE=]RATE", env = "FAULTLINE_SERVICE_BUDGETS", value_delimiter = ',')]
    service_budget: Vec<Budget>,
    /// How much to log: error, warn, info, debug, or a filter as in collector=debug.
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "FAULTLINE_LOG")]
    log_level: String,
    /// How to log; auto is text on a terminal and JSON otherwise.
    #[arg(long, value_enum, default_value_t = logging::Format::Auto, env = "FAULTLINE_LOG_FORMAT")]
    log_format: logging::Format,
    #[command(flatten)]
    read: files::Read,
    #[command(flatten)]
    room: Room,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    limits: Limits,
}

impl Arguments {
    /// Whether what was set fits together.
    pub(crate) fn check(&self) -> Result<(), Conflict> {
        self.limits.fit_together()?;
        self.patience.check()
    }
}

/// Runs until a signal comes.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    refused::or_exit_code(serve(arguments))
}

fn serve(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let registry_file = registry::read(arguments.registry.as_deref())?;
    let registry = registry::of_file(registry_file.as_ref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let origins = arguments.allow_origin.clone();
    let gate = Arc::new(tokens::gate(arguments.tokens.as_deref(), arguments.insecure, origins)?);
    let tls = arguments.encryption.load()?;
    let sockets = runtime.block_on(Sockets::bind(arguments, &gate, tls.as_ref()))?;
    let endpoints = sockets.endpoints();
    let (directory, lock) = DataDirectory::claim(&arguments.data_dir).map_err(Refused::directory)?;
    let (level, traces) =
        runtime.block_on(async { logging::start(&arguments.log_level, arguments.log_format, &endpoints) })?;
    encryption::warn_of_open_tokens(&gate, &endpoints);
    let store = Opened::new(&arguments.room, &arguments.limits, registry, &directory, Maintenance::Full)?;
    let limits = arguments.patience.limits();
    let queries = QueryService::new(store.query_options(&directory, registry_file, limits)?)?;
    // Before anyone can know that we are here: whoever does may ask us to stop.
    let (stop, hangup) = runtime.block_on(async { (stop::Stop::new(), reload::listen()) });
    let (pipeline, keeper) = (store.pipeline.clone(), store.keeper.clone());
    expect_services(&arguments.expect_service, &store.rules, pipeline.metrics());
    pipeline.budgets().set(&arguments.service_budget);
    pipeline.remember_services(keeper.lake())?;
    let connections = Arc::new(server::Connections::default());
    let (stopping, is_stopping) = watch::channel(false);
    let watched = pages::Watched { gate: &gate, connections: &connections, tls: tls.as_ref() };
    let web = pages::routes(&store, &queries, &watched, is_stopping)?;
    let (rules, intake) = (Arc::clone(&store.rules), pipeline.clone());
    let reload = Reload::new(hangup, level, rules, intake, Arc::clone(&gate), tls.clone());
    let doors = Doors { web, queries, gate, connections, stopping };
    let reading = arguments.read.start(directory.path(), &pipeline, runtime.handle())?;
    // Last of all that can fail: nobody is told of a server that does not come.
    announce(&endpoints, &directory)?;
    banner::show(arguments, &endpoints, &store, began.elapsed());
    runtime.spawn(reload.watch());
    tls.map(|tls| runtime.spawn(encryption::watch(tls)));
    notify::ready();
    let drained = runtime.block_on(async {
        sockets.serve(&pipeline, doors, &stop).await
            && stop.unless_forced(reading.stop()).await
            && stop.unless_forced(drain(pipeline.clone(), keeper)).await
    });
    let code = finish(&pipeline, &endpoints, &directory, drained);
    traces.end();
    drop(lock);
    // Connections that would not end must not keep the process.
    runtime.shutdown_background();
    Ok(code)
}

/// Writes the addresses down. A full disk must not keep a server from what it has stored: it starts, refuses, and
/// takes requests when there is room.
fn announce(endpoints: &Endpoints, directory: &DataDirectory) -> Result<(), Refused> {
    match endpoints.write(directory) {
        Err(error @ DirectoryError::Full { .. }) => {
            endpoints.remove(directory);
            tracing::warn!("endpoints.json is missing: {error}");
            Ok(())
        }
        other => other.map_err(Refused::directory),
    }
}

/// What answers on the listeners.
struct Doors {
    web: server::Routes,
    queries: QueryService,
    gate: Arc<Gate>,
    connections: Arc<server::Connections>,
    /// Told when we stop, for those who would follow for ever.
    stopping: watch::Sender<bool>,
}

/// The listeners, bound and not yet served.
struct Sockets {
    grpc: Option<Listener>,
    http: Option<Listener>,
    web: Option<Listener>,
    postgres: Option<Listener>,
    flight: Option<Listener>,
}

impl Sockets {
    async fn bind(arguments: &Arguments, gate: &Gate, tls: Option<&Arc<Tls>>) -> Result<Self, Refused> {
        let may_be_reached = arguments.insecure || gate.asks();
        let bind = async |flag: &str, listen: &Listen| {
            let socket = listen.bind(flag, may_be_reached).await?;
            Ok(socket.map(|socket| Listener { socket, tls: tls.cloned() }))
        };
        Ok(Self {
            grpc: bind("--listen-otlp-grpc", &arguments.listen_otlp_grpc).await?,
            http: bind("--listen-otlp-http", &arguments.listen_otlp_http).await?,
            web: bind("--listen-web", &arguments.listen_web).await?,
            postgres: bind("--listen-postgres", &arguments.listen_postgres).await?,
            flight: bind("--listen-flight", &arguments.listen_flight).await?,
        })
    }

    fn endpoints(&self) -> Endpoints {
        let all = [&self.grpc, &self.http, &self.web, &self.postgres, &self.flight];
        let address = |listener: &Option<Listener>| listener.as_ref()?.socket.local_addr().ok();
        Endpoints {
            otlp_grpc: address(&self.grpc),
            otlp_http: address(&self.http),
            web: address(&self.web),
            postgres: address(&self.postgres),
            flight: address(&self.flight),
            tls: all.into_iter().flatten().any(|listener| listener.tls.is_some()),
        }
    }

    /// Serves until a signal comes and what was begun is done; false when a second signal came first.
    async fn serve(self, pipeline: &Pipeline, doors: Doors, stop: &stop::Stop) -> bool {
        let Doors { web, queries, gate, connections, stopping } = doors;
        let limits = *pipeline.limits();
        let routers = receive::routers(pipeline.clone(), &gate);
        let flight = query::serve::flight::routes(queries.clone(), &gate);
        let mut receivers = tokio::task::JoinSet::new();
        use server::Peer::{Reader, Sender};
        let routed = [
            (self.grpc, routers.grpc, Sender),
            (self.http, routers.http, Sender),
            (self.flight, flight, Reader),
        ];
        for (listener, router, peer) in routed {
            let Some(listener) = listener else { continue };
            let shutdown = stop.asked();
            receivers.spawn(server::run(listener, router, peer, limits, Arc::clone(&connections), shutdown));
        }
        if let Some(listener) = self.postgres {
            receivers.spawn(query::serve::postgres::run(listener, queries, gate, stop.asked()));
        }
        // Goes last, so that whoever asks sees that we are no longer ready.
        let (drained, is_drained) = tokio::sync::oneshot::channel::<()>();
        let shutdown = async { drop(is_drained.await) };
        let web = self
            .web
            .map(|listener| tokio::spawn(server::run(listener, web, Reader, limits, connections, shutdown)));
        let all = async {
            stop.asked().await;
            notify::stopping();
            tracing::info!("stopping: finishing what was begun; a second signal stops at once");
            pipeline.announce_stop();
            stopping.send_replace(true);
            while receivers.join_next().await.is_some() {}
            drop(drained);
            if let Some(web) = web {
                drop(web.await);
            }
        };
        stop.unless_forced(all).await
    }
}

/// The services that the metrics know from the start: those that are named here or in the operator's file, which may
/// give them a dialect.
fn expect_services(services: &[String], rules: &Rules, metrics: &Metrics) {
    let profiles = &rules.registry().operator().services;
    let named = profiles.iter().map(|profile| &profile.pattern).filter(|name| !name.ends_with('*'));
    for service in services.iter().chain(named) {
        let dialect = profiles.iter().find(|profile| profile.fits(service)).map(|profile| profile.dialect);
        metrics.expect(service, dialect);
    }
}

/// Waits for what was taken to be durable, and seals it.
async fn drain(pipeline: Pipeline, keeper: Keeper) {
    let drained = tokio::task::spawn_blocking(move || {
        pipeline.close();
        keeper.stop();
    });
    if drained.await.is_err() {
        tracing::error!("the end was not as it should be; everything that was answered is in the log");
    }
}

/// Says what was done, and takes the addresses away.
fn finish(pipeline: &Pipeline, endpoints: &Endpoints, directory: &DataDirectory, drained: bool) -> ExitCode {
    if !drained {
        tracing::warn!("stopped at once; requests without an answer may not be stored");
        return ExitCode::from(FORCED);
    }
    endpoints.remove(directory);
    banner::farewell(pipeline);
    ExitCode::SUCCESS
}
