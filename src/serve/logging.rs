//! What the server says about itself: lines for people on a terminal, JSON otherwise, always on stderr.

use super::endpoints::Endpoints;
use super::own_traces::{self, OwnTraces};
use std::io::{self, IsTerminal};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// What is logged when `FAULTLINE_LOG` says nothing. What goes wrong in a library is told by those who called it.
const DEFAULT: &str =
    "info,opentelemetry=warn,buoyant_kernel=error,buoyant_kernel_engine=error,deltalake_core=error";

/// Starts logging, and the export of our own traces if it is asked for.
pub(super) fn start(endpoints: &Endpoints) -> anyhow::Result<OwnTraces> {
    let chosen = std::env::var("FAULTLINE_LOG").unwrap_or_else(|_| DEFAULT.to_owned());
    let filter = EnvFilter::try_new(&chosen).map_err(|error| {
        anyhow::anyhow!(
            "FAULTLINE_LOG '{chosen}' is no filter ({error}); write one as in 'info' or 'collector=debug'"
        )
    })?;
    let (traces, layer) = own_traces::start(endpoints)?;
    let mut layers = vec![lines().with_filter(filter).boxed()];
    layers.extend(layer);
    tracing_subscriber::registry().with(layers).init();
    if let Some(reason) = traces.refused() {
        tracing::warn!("{reason}");
    }
    Ok(traces)
}

fn lines() -> Box<dyn Layer<Registry> + Send + Sync> {
    let layer = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    if io::stderr().is_terminal() {
        let colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        Box::new(layer.compact().with_target(false).with_ansi(colour))
    } else {
        Box::new(layer.json().flatten_event(true).with_ansi(false))
    }
}
