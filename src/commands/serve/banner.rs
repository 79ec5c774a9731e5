//! Messages when the server starts and when it stops.

use super::endpoints::Endpoints;
use super::{Arguments, RunningPipeline};
use crate::cli::terminal::{format_count, print_note, sanitize};
use collector::{Pipeline, Source};
use std::io::{self, IsTerminal};
use std::net::SocketAddr;
use std::time::Duration;

/// Shows the addresses on a terminal, with commands to try if `has_examples`; otherwise it logs them.
pub(super) fn print_ready(
    arguments: &Arguments,
    endpoints: &Endpoints,
    store: &RunningPipeline,
    startup_time: Duration,
    has_examples: bool,
) {
    let replay = &store.replay;
    let folder = arguments.data_dir.display().to_string();
    if !io::stderr().is_terminal() {
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            otlp_grpc = endpoints.otlp_grpc.map(tracing::field::display),
            otlp_http = endpoints.otlp_http.map(tracing::field::display),
            web = endpoints.web.map(tracing::field::display),
            postgres = endpoints.postgres.map(tracing::field::display),
            flight = endpoints.flight.map(tracing::field::display),
            tls = endpoints.tls,
            data_dir = folder,
            replayed_records = replay.records,
            replayed_events = store.replayed,
            stored_events = store.events,
            ready_in_ms = u64::try_from(startup_time.as_millis()).unwrap_or(u64::MAX),
            "ready"
        );
    } else {
        let addresses = ready_text(&folder, endpoints, store, startup_time);
        let examples = if has_examples { examples(&folder, endpoints) } else { String::new() };
        print_note(&format!("{addresses}{examples}"));
    }
    if replay.damaged > 0 || replay.unreadable_segments > 0 {
        tracing::warn!(
            records = replay.damaged,
            unreadable_segments = replay.unreadable_segments,
            bytes = replay.damaged_bytes,
            "part of the log is damaged; everything else was replayed. Check the disk"
        );
    }
}

fn ready_text(
    folder: &str,
    endpoints: &Endpoints,
    store: &RunningPipeline,
    startup_time: Duration,
) -> String {
    let row = |name: &str, address: Option<SocketAddr>, path: &str| {
        let address_text = address.map_or_else(|| "off".to_owned(), |address| format!("{address}{path}"));
        format!("  {name:<11}{address_text}\n")
    };
    format!(
        "Faultline {}, ready in {} ms{}\n\n{}{}{}{}{}{}  data       {} ({})\n",
        env!("CARGO_PKG_VERSION"),
        startup_time.as_millis(),
        if endpoints.tls { "; every listener speaks TLS" } else { "" },
        row("OTLP gRPC", endpoints.otlp_grpc, ""),
        row("OTLP HTTP", endpoints.otlp_http, "/v1/traces, /v1/logs"),
        row("envelopes", endpoints.otlp_http, "/v1/envelopes"),
        row("web", endpoints.web, "/api/v1/sql, /api/v1/status, /readyz"),
        row("PostgreSQL", endpoints.postgres, ""),
        row("Flight SQL", endpoints.flight, ""),
        sanitize(folder),
        format_count(store.events, "event"),
    )
}

/// Returns commands to try.
fn examples(folder: &str, endpoints: &Endpoints) -> String {
    let mut examples = String::from("\nTry, in another terminal:\n");
    if let Some(address) = endpoints.otlp_http {
        examples.push_str(&format!(
            "  curl -H 'Content-Type: application/x-ndjson' --data-binary @examples/app.ndjson {}://{address}/v1/envelopes\n",
            endpoints.scheme()
        ));
    }
    examples.push_str(&format!("  faultline dump --data-dir {}\n\nCtrl-C stops it.", sanitize(folder)));
    examples
}

/// Logs the counts of the run.
pub(super) fn log_shutdown(pipeline: &Pipeline) {
    let counters = Source::ALL.map(|source| pipeline.counters().of(source));
    let sum = |of: fn(&collector::counters::SourceCounters) -> u64| counters.into_iter().map(of).sum::<u64>();
    tracing::info!(
        requests = sum(|source| source.requests.get()),
        accepted = sum(|source| source.accepted.get()),
        events = sum(|source| source.events.get()),
        rejected_requests =
            sum(|source| source.rejected_requests.iter().map(collector::counters::Counter::get).sum()),
        "stopped; everything that was acknowledged is on disk"
    );
}
