//! Traces of the server itself, sent to `OTEL_EXPORTER_OTLP_ENDPOINT`: one span for each ingested request.
//!
//! Invariant: traces are never sent to this server. A collector that traces the ingestion of its own traces would
//! produce traces without end, so an endpoint that is one of its own listeners is rejected with a warning.

use super::endpoints::Endpoints;
use anyhow::Context;
use collector::pipeline::SELF_TRACING_TARGET;
use http::Uri;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use std::time::Duration;
use tokio::runtime::Handle;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::{Layer, Registry};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const PROTOCOL: &str = "OTEL_EXPORTER_OTLP_PROTOCOL";
/// The longest time for an export.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The export of the server's own traces, on or off.
pub(super) struct TraceExport {
    provider: Option<SdkTracerProvider>,
    disabled_reason: Option<String>,
}

impl TraceExport {
    /// Returns the reason why traces are not sent although an endpoint is configured.
    pub(super) fn disabled_reason(&self) -> Option<&str> {
        self.disabled_reason.as_deref()
    }

    /// Sends the remaining traces.
    pub(super) fn shutdown(self) {
        if let Some(Err(error)) = self.provider.map(|provider| provider.shutdown()) {
            tracing::debug!("our own traces did not all arrive: {error}");
        }
    }
}

/// Starts the export if an endpoint is configured.
#[allow(clippy::type_complexity)]
pub(super) fn start(
    endpoints: &Endpoints,
) -> anyhow::Result<(TraceExport, Option<Box<dyn Layer<Registry> + Send + Sync>>)> {
    let off = |disabled_reason| Ok((TraceExport { provider: None, disabled_reason }, None));
    let Some(endpoint) = std::env::var(ENDPOINT).ok().filter(|endpoint| !endpoint.is_empty()) else {
        return off(None);
    };
    let uri: Uri = endpoint.parse().with_context(|| {
        format!("{ENDPOINT} '{endpoint}' is no URL; write one as in http://127.0.0.1:4317")
    })?;
    if is_own_endpoint(&uri, endpoints) {
        return off(Some(format!("{ENDPOINT} is this very collector: our own traces are not sent")));
    }
    let exporter =
        exporter(&endpoint).with_context(|| format!("cannot send traces to {ENDPOINT} '{endpoint}'"))?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder().with_service_name("faultline").build())
        .build();
    let tracer = provider.tracer("faultline");
    // Only the server's own spans are exported: the work of the exporter itself must not become a trace.
    let ours = Targets::new().with_target(SELF_TRACING_TARGET, LevelFilter::TRACE);
    // The location in the source code is the same for all of these spans.
    let layer = tracing_opentelemetry::layer()
        .with_tracer(tracer)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_filter(ours);
    Ok((TraceExport { provider: Some(provider), disabled_reason: None }, Some(Box::new(layer))))
}

fn is_own_endpoint(uri: &Uri, endpoints: &Endpoints) -> bool {
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    uri.host().is_some_and(|host| endpoints.includes(host, port))
}

fn exporter(endpoint: &str) -> anyhow::Result<SpanExporter> {
    let protocol = std::env::var(PROTOCOL).unwrap_or_default();
    match protocol.as_str() {
        // The endpoint is set explicitly, since another variable could otherwise lead back to this server.
        "grpc" => {
            Ok(SpanExporter::builder().with_tonic().with_endpoint(endpoint).with_timeout(TIMEOUT).build()?)
        }
        "" | "http/protobuf" => Ok(SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_timeout(TIMEOUT)
            .with_http_client(RuntimeHttpClient { handle: Handle::current(), client: client() })
            .build()?),
        other => anyhow::bail!("{PROTOCOL} '{other}' is not known; use grpc or http/protobuf"),
    }
}

fn client() -> opentelemetry_http::hyper::HyperClient {
    opentelemetry_http::hyper::HyperClient::with_default_connector(TIMEOUT, None)
}

/// An HTTP client that runs requests on the runtime, because the exporter calls it from a thread of its own.
#[derive(Debug)]
struct RuntimeHttpClient {
    handle: Handle,
    client: opentelemetry_http::hyper::HyperClient,
}

#[async_trait::async_trait]
impl HttpClient for RuntimeHttpClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let client = self.client.clone();
        self.handle.spawn(async move { client.send_bytes(request).await }).await?
    }
}
