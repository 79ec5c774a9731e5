//! `faultline serve` runs the whole pipeline in one process, on loopback, with its data in one folder.
//!
//! This module only connects the parts: the data directory, the WAL, the pipeline, the listeners, and the shutdown.
//!
//! Invariants: `endpoints.json` is written when every listener is bound, and removed when the process ends normally; a
//! stop finishes the requests in progress; an error that prevents the start is one sentence on stderr and an exit code.

mod address;
mod authentication;
mod banner;
mod endpoints;
mod file_inputs;
mod logging;
mod page;
mod reload;
mod runbook;
mod self_tracing;
mod session;
mod systemd;
mod tls;
mod web;

use crate::cli::exit_code::{self, ExitError};
use crate::cli::signals;
use crate::commands::running_pipeline::RunningPipeline;
use crate::config::ConfigFileArg;
use crate::config::limits::{IngestLimitArgs, LimitConflict};
use crate::config::query_limits::QueryLimitArgs;
use crate::config::registry;
use crate::config::storage::StorageArgs;
use address::ListenAddress;
use auth::listener::{ConnectionStats, Listener, ListenerProtocol};
use auth::tls::Tls;
use auth::{Authenticator, Origin};
use classifier::Rules;
use collector::metrics::Metrics;
use collector::receivers::{self, server};
use collector::{Budget, Pipeline};
pub(crate) use endpoints::Endpoints;
use query::QueryService;
use reload::Reloader;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use store::delta::MaintenanceMode;
use store::maintenance::Maintenance;
use store::{DataDirectory, DirectoryError};
use tokio::runtime::Runtime;
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
  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318 OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf \\
       your-server
  faultline dump --data-dir faultline-data

Settings can be in a config file (faultline.toml, or --config). Environment variables override the
file, and flags override both. SIGHUP reloads the settings: the log level, expected services,
budgets, tokens and certificates change at once, all others at the next start.

An acknowledged request is on disk and synced. The server writes its addresses to endpoints.json in
the data directory. SIGTERM or Ctrl-C stops the server after the requests in progress; a second one
stops it at once, without losing anything acknowledged.

Environment:
  FAULTLINE_CONFIG, FAULTLINE_*    most flags have a variable; docs/settings.md lists them
  OTEL_EXPORTER_OTLP_ENDPOINT  export the server's own traces to this address (not its own);
                               OTEL_EXPORTER_OTLP_PROTOCOL is grpc or http/protobuf [default]

Exit codes:
  0  stopped by a signal, all requests finished
  1  another failure: the registry file, tokens, a certificate, a thread
  2  wrong usage
  3  the data directory cannot be used: unreadable, full, or in use by another process
  4  an address cannot be listened on
  5  stopped at once by a second signal, or requests did not finish in time";

/// The exit code of a stop that did not finish all requests.
const FORCED_STOP: u8 = 5;

/// Runs the server: receives envelope logs and OTLP, and stores every failure.
///
/// Listens for OTLP over gRPC (4317) and HTTP (4318), for response envelopes on /v1/envelopes (4318), and for queries over
/// HTTP (7070), PostgreSQL (5433) and Flight SQL (8815). All listeners are on loopback by default.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    #[command(flatten)]
    config: ConfigFileArg,
    /// The data directory; created if it does not exist.
    #[arg(long, value_name = "DIR", default_value = "faultline-data", env = "FAULTLINE_DATA_DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: PathBuf,
    /// The listener for OTLP over gRPC: an address, :0 for any free port, or off.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:4317",
        env = "FAULTLINE_LISTEN_OTLP_GRPC"
    )]
    listen_otlp_grpc: ListenAddress,
    /// The listener for OTLP over HTTP, and for envelopes: an address, :0 for any free port, or off.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:4318",
        env = "FAULTLINE_LISTEN_OTLP_HTTP"
    )]
    listen_otlp_http: ListenAddress,
    /// The listener for the web page, SQL over HTTP, metrics, health and status: an address, :0 for any free port, or off.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7070", env = "FAULTLINE_LISTEN_WEB")]
    listen_web: ListenAddress,
    /// The listener for SQL over the PostgreSQL protocol: an address, :0 for any free port, or off.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:5433", env = "FAULTLINE_LISTEN_POSTGRES")]
    listen_postgres: ListenAddress,
    /// The listener for SQL over Arrow Flight: an address, :0 for any free port, or off.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8815", env = "FAULTLINE_LISTEN_FLIGHT")]
    listen_flight: ListenAddress,
    /// The file with the tokens of clients, as `faultline token new` writes it; without it, clients need no token.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_TOKENS_FILE", value_hint = clap::ValueHint::FilePath)]
    tokens: Option<PathBuf>,
    #[command(flatten)]
    tls_args: tls::TlsArgs,
    /// Allow listeners that other machines can reach although clients need no token.
    #[arg(long, env = "FAULTLINE_INSECURE")]
    insecure: bool,
    /// An origin whose web pages may use the HTTP endpoints from a browser, as in `https://grafana.example`; may be
    /// repeated. Requests that pages of any other origin make are rejected.
    #[arg(long, value_name = "ORIGIN", env = "FAULTLINE_ALLOW_ORIGINS", value_delimiter = ',')]
    allow_origin: Vec<Origin>,
    /// A registry file with your own codes, profiles and redaction rules, as in examples/registry.toml.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_REGISTRY", value_hint = clap::ValueHint::FilePath)]
    registry: Option<PathBuf>,
    /// A service whose metrics begin at 0 before its first record, so that alerts see its first failure; may be repeated.
    #[arg(long, value_name = "NAME", env = "FAULTLINE_EXPECT_SERVICES", value_delimiter = ',')]
    expect_service: Vec<String>,
    /// The rate of events that are stored individually: 10000/s for every service, orders=500/s or orders=600/min for one;
    /// may be repeated. Beyond its budget, similar events of a service share a row, which says how many it represents; all are
    /// counted. There is no budget by default.
    #[arg(long, value_name = "[SERVICE=]RATE", env = "FAULTLINE_SERVICE_BUDGETS", value_delimiter = ',')]
    service_budget: Vec<Budget>,
    /// The level of the server's own log: error, warn, info, debug, or a filter such as collector=debug.
    #[arg(long, value_name = "LEVEL", default_value = "info", env = "FAULTLINE_LOG")]
    log_level: String,
    /// The format of the server's own log; auto is text on a terminal and JSON otherwise.
    #[arg(long, value_enum, default_value_t = logging::Format::Auto, env = "FAULTLINE_LOG_FORMAT")]
    log_format: logging::Format,
    #[command(flatten)]
    file_inputs: file_inputs::FileInputArgs,
    #[command(flatten)]
    storage: StorageArgs,
    #[command(flatten)]
    query_limits: QueryLimitArgs,
    #[command(flatten)]
    limits: IngestLimitArgs,
}

impl Arguments {
    /// Checks that the limits are consistent.
    pub(crate) fn validate(&self) -> Result<(), LimitConflict> {
        self.limits.validate()?;
        self.query_limits.validate()
    }

    /// Returns the data directory.
    pub(crate) fn data_dir(&self) -> &Path {
        &self.data_dir
    }

    /// Returns true when the listeners use TLS.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.tls_args.is_given()
    }

    /// Opens the data directory as the server would, for work before it starts.
    pub(crate) fn open_pipeline(
        &self,
        directory: &DataDirectory,
        mode: MaintenanceMode,
    ) -> anyhow::Result<RunningPipeline> {
        let registry = registry::load(self.registry.as_deref())?;
        RunningPipeline::new(&self.storage, &self.limits, registry, directory, mode)
    }
}

/// The part that another command adds to a server.
pub(crate) trait Companion {
    /// Prepares the data directory before the server opens it. An error ends the start.
    fn prepare(&mut self, directory: &DataDirectory, runtime: &Runtime) -> anyhow::Result<()>;

    /// Starts the work that runs beside the server, whose endpoints are served from now on.
    fn start(
        &mut self,
        endpoints: &Endpoints,
        directory: &DataDirectory,
        runtime: &Runtime,
        shutdown: &signals::ShutdownSignal,
    );
}

/// Runs the server until a signal stops it.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    exit_code::report_exit_error(serve(arguments, None))
}

/// Runs the server together with the companion of another command.
pub(crate) fn serve(
    arguments: &Arguments,
    mut companion: Option<&mut dyn Companion>,
) -> anyhow::Result<ExitCode> {
    let started = Instant::now();
    let registry_file = registry::read_file(arguments.registry.as_deref())?;
    let registry = registry::from_file(registry_file.as_ref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let origins = arguments.allow_origin.clone();
    let authenticator = Arc::new(authentication::load_authenticator(
        arguments.tokens.as_deref(),
        arguments.insecure,
        origins,
    )?);
    let tls = arguments.tls_args.load()?;
    let listeners = runtime.block_on(Listeners::bind(arguments, &authenticator, tls.as_ref()))?;
    let endpoints = listeners.endpoints();
    let (directory, lock) = DataDirectory::claim(&arguments.data_dir).map_err(ExitError::data_directory)?;
    let (level, traces) =
        runtime.block_on(async { logging::start(&arguments.log_level, arguments.log_format, &endpoints) })?;
    tls::warn_about_unencrypted_tokens(&authenticator, &endpoints);
    if let Some(companion) = companion.as_deref_mut() {
        companion.prepare(&directory, &runtime)?;
    }
    let store = RunningPipeline::new(
        &arguments.storage,
        &arguments.limits,
        registry,
        &directory,
        MaintenanceMode::Full,
    )?;
    let limits = arguments.query_limits.limits();
    let queries = QueryService::new(store.query_options(&directory, registry_file, limits)?)?;
    // Signal handlers are installed before the addresses are published, because a stop may follow at once.
    let (signals, hangup) = runtime.block_on(async { (signals::ShutdownSignal::new(), reload::listen()) });
    let (pipeline, maintenance) = (store.pipeline.clone(), store.maintenance.clone());
    expect_services(&arguments.expect_service, &store.rules, pipeline.metrics());
    pipeline.budgets().set(&arguments.service_budget);
    pipeline.warm_up_metrics(maintenance.delta())?;
    let connections = Arc::new(ConnectionStats::default());
    let (stopping, is_stopping) = watch::channel(false);
    let watched =
        web::WebState { authenticator: &authenticator, connections: &connections, tls: tls.as_ref() };
    let web = web::routes(&store, &queries, &watched, is_stopping)?;
    let (rules, intake) = (Arc::clone(&store.rules), pipeline.clone());
    let reload = Reloader::new(hangup, level, rules, intake, Arc::clone(&authenticator), tls.clone());
    let services = EndpointServices { web, queries, authenticator, connections, stopping };
    let reading = arguments.file_inputs.start(directory.path(), &pipeline, runtime.handle())?;
    // This is the last step that can fail: the addresses of a server that does not start are not published.
    write_endpoints_file(&endpoints, &directory)?;
    banner::print_ready(arguments, &endpoints, &store, started.elapsed(), companion.is_none());
    if let Some(companion) = companion {
        companion.start(&endpoints, &directory, &runtime, &signals);
    }
    runtime.spawn(reload.watch());
    tls.map(|tls| runtime.spawn(tls::watch(tls)));
    systemd::ready();
    let drained = runtime.block_on(async {
        listeners.serve(&pipeline, services, &signals).await
            && signals.unless_forced(reading.stop()).await
            && signals.unless_forced(drain(pipeline.clone(), maintenance)).await
    });
    let code = finish(&pipeline, &endpoints, &directory, drained);
    traces.shutdown();
    drop(lock);
    // Connections that do not end must not keep the process alive.
    runtime.shutdown_background();
    Ok(code)
}

/// Writes `endpoints.json`. A full disk must not keep a server from its stored data: the server starts, rejects ingest
/// requests, and accepts them when there is space.
fn write_endpoints_file(endpoints: &Endpoints, directory: &DataDirectory) -> Result<(), ExitError> {
    match endpoints.write(directory) {
        Err(error @ DirectoryError::Full { .. }) => {
            endpoints.remove(directory);
            tracing::warn!("endpoints.json is missing: {error}");
            Ok(())
        }
        other => other.map_err(ExitError::data_directory),
    }
}

/// The services behind the listeners.
struct EndpointServices {
    web: server::Routes,
    queries: QueryService,
    authenticator: Arc<Authenticator>,
    connections: Arc<ConnectionStats>,
    /// Becomes true when the server stops, so that tails end.
    stopping: watch::Sender<bool>,
}

/// The listeners, which are bound but not served yet.
struct Listeners {
    grpc: Option<Listener>,
    http: Option<Listener>,
    web: Option<Listener>,
    postgres: Option<Listener>,
    flight: Option<Listener>,
}

impl Listeners {
    async fn bind(
        arguments: &Arguments,
        authenticator: &Authenticator,
        tls: Option<&Arc<Tls>>,
    ) -> Result<Self, ExitError> {
        let may_be_reached = arguments.insecure || authenticator.requires_token();
        let bind = async |protocol: ListenerProtocol, flag: &str, listen: &ListenAddress| {
            let socket = listen.bind(flag, may_be_reached).await?;
            Ok(socket.map(|socket| Listener { protocol, socket, tls: tls.cloned() }))
        };
        use ListenerProtocol::{Flight, OtlpGrpc, OtlpHttp, Postgres, Web};
        Ok(Self {
            grpc: bind(OtlpGrpc, "--listen-otlp-grpc", &arguments.listen_otlp_grpc).await?,
            http: bind(OtlpHttp, "--listen-otlp-http", &arguments.listen_otlp_http).await?,
            web: bind(Web, "--listen-web", &arguments.listen_web).await?,
            postgres: bind(Postgres, "--listen-postgres", &arguments.listen_postgres).await?,
            flight: bind(Flight, "--listen-flight", &arguments.listen_flight).await?,
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

    /// Serves until a signal arrives and running requests are finished; false when a second signal arrived first.
    async fn serve(
        self,
        pipeline: &Pipeline,
        services: EndpointServices,
        signals: &signals::ShutdownSignal,
    ) -> bool {
        let EndpointServices { web, queries, authenticator, connections, stopping } = services;
        let limits = *pipeline.limits();
        let routers = receivers::routers(pipeline.clone(), &authenticator);
        let flight = query::serve::flight::routes(queries.clone(), &authenticator);
        let mut receivers = tokio::task::JoinSet::new();
        use server::HalfClose::{Reader, Sender};
        let routed = [
            (self.grpc, routers.grpc, Sender),
            (self.http, routers.http, Sender),
            (self.flight, flight, Reader),
        ];
        for (listener, router, peer) in routed {
            let Some(listener) = listener else { continue };
            let shutdown = signals.requested();
            receivers.spawn(server::run(listener, router, peer, limits, Arc::clone(&connections), shutdown));
        }
        if let Some(listener) = self.postgres {
            receivers.spawn(query::serve::postgres::run(
                listener,
                queries,
                authenticator,
                Arc::clone(&connections),
                signals.requested(),
            ));
        }
        // The web listener stops last, so that health probes see that the server is no longer ready.
        let (drained, is_drained) = tokio::sync::oneshot::channel::<()>();
        let shutdown = async { drop(is_drained.await) };
        let web = self
            .web
            .map(|listener| tokio::spawn(server::run(listener, web, Reader, limits, connections, shutdown)));
        let all = async {
            signals.requested().await;
            systemd::stopping();
            tracing::info!("stopping: finishing what was begun; a second signal stops at once");
            pipeline.announce_shutdown();
            stopping.send_replace(true);
            while receivers.join_next().await.is_some() {}
            drop(drained);
            if let Some(web) = web {
                drop(web.await);
            }
        };
        signals.unless_forced(all).await
    }
}

/// Registers the services whose metrics begin at 0: those of `--expect-service` and those of the registry file, which
/// may give them a dialect.
fn expect_services(services: &[String], rules: &Rules, metrics: &Metrics) {
    let profiles = &rules.registry().operator().services;
    let named = profiles.iter().map(|profile| &profile.pattern).filter(|name| !name.ends_with('*'));
    for service in services.iter().chain(named) {
        let dialect = profiles.iter().find(|profile| profile.fits(service)).map(|profile| profile.dialect);
        metrics.expect_service(service, dialect);
    }
}

/// Waits until accepted records are durable, and flushes them.
async fn drain(pipeline: Pipeline, maintenance: Maintenance) {
    let drained = tokio::task::spawn_blocking(move || {
        pipeline.close();
        maintenance.stop();
    });
    if drained.await.is_err() {
        tracing::error!("the end was not as it should be; everything that was acknowledged is in the WAL");
    }
}

/// Logs the shutdown, and removes `endpoints.json`.
fn finish(pipeline: &Pipeline, endpoints: &Endpoints, directory: &DataDirectory, drained: bool) -> ExitCode {
    if !drained {
        tracing::warn!("stopped at once; requests that were not acknowledged may not be stored");
        return ExitCode::from(FORCED_STOP);
    }
    endpoints.remove(directory);
    banner::log_shutdown(pipeline);
    ExitCode::SUCCESS
}
