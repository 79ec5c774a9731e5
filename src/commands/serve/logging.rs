//! The server's own log: text on a terminal, JSON otherwise, always on stderr.
//!
//! The levels have a meaning: an *error* is a problem that an operator must solve; a *warning* may become one, or is a
//! problem of somebody else; *info* is a change of the server's state; *debug* is about single requests. No level shows
//! the contents of requests.

use super::endpoints::Endpoints;
use super::self_tracing::{self, TraceExport};
use clap::ValueEnum;
use std::io::{self, IsTerminal};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::reload::{self, Handle};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// The levels of libraries, whose errors are reported by their callers.
const LIBRARY_LEVELS: &str = "h2=info,hyper=info,hyper_util=info,opentelemetry=warn,buoyant_kernel=error,\
buoyant_kernel_engine=error,deltalake_core=error";

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// For people on a terminal, JSON otherwise.
    Auto,
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The log level, which can change at run time.
pub(super) struct LogLevel(Handle<EnvFilter, Registry>);

impl LogLevel {
    /// Sets the level or filter from now on.
    pub(super) fn set(&self, level: &str) -> anyhow::Result<()> {
        Ok(self.0.reload(filter(level)?)?)
    }
}

/// Starts logging, and the export of the server's own traces if it is configured.
pub(super) fn start(
    level: &str,
    format: Format,
    endpoints: &Endpoints,
) -> anyhow::Result<(LogLevel, TraceExport)> {
    let (filter, handle) = reload::Layer::new(filter(level)?);
    let (traces, layer) = self_tracing::start(endpoints)?;
    let mut layers = vec![log_layer(format).with_filter(filter).boxed()];
    layers.extend(layer);
    tracing_subscriber::registry().with(layers).init();
    if let Some(reason) = traces.disabled_reason() {
        tracing::warn!("{reason}");
    }
    Ok((LogLevel(handle), traces))
}

/// Parses a level, or a filter as in `collector=debug`.
fn filter(level: &str) -> anyhow::Result<EnvFilter> {
    let is_level = ["error", "warn", "info", "debug"].contains(&level);
    let directives = if is_level { format!("{level},{LIBRARY_LEVELS}") } else { level.to_owned() };
    EnvFilter::try_new(directives).map_err(|error| {
        anyhow::anyhow!(
            "the log level '{level}' is no filter ({error}); write one as in 'info' or 'collector=debug'"
        )
    })
}

fn log_layer(format: Format) -> Box<dyn Layer<Registry> + Send + Sync> {
    let is_terminal = io::stderr().is_terminal();
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    if format == Format::Text || (format == Format::Auto && is_terminal) {
        let colour = is_terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Box::new(layer.compact().with_target(false).with_ansi(colour))
    } else {
        Box::new(layer.json().flatten_event(true).with_ansi(false))
    }
}
