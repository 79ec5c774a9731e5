//! All metrics of the server together: as text on `/metrics`, and as JSON on `/api/v1/status`.

use super::health::CollectorMetrics;
use super::{proto_values, status_json};
use crate::pipeline::Pipeline;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use metrics::{Metric, MetricSource, Samples};
use prometheus::core::{Collector, Desc};
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::MetricFamily;
use prometheus::{Registry, TEXT_FORMAT, TextEncoder};
use serde_json::Value;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use store::maintenance::Maintenance;

/// All metrics of the server.
pub struct ServerMetrics {
    pipeline: Pipeline,
    /// The collector itself, and the parts that other crates registered.
    sources: Vec<Box<dyn MetricSource>>,
}

impl ServerMetrics {
    /// Combines the metrics of the collector with those of other parts.
    #[must_use]
    pub fn new(pipeline: Pipeline, maintenance: Maintenance, others: Vec<Box<dyn MetricSource>>) -> Self {
        let collector = CollectorMetrics { pipeline: pipeline.clone(), maintenance };
        let mut sources: Vec<Box<dyn MetricSource>> = vec![Box::new(collector)];
        sources.extend(others);
        Self { pipeline, sources }
    }

    /// Returns the values of all metrics except those of services, as JSON by group.
    pub(crate) fn to_json(&self) -> Value {
        status_json::to_json(&self.samples())
    }

    fn samples(&self) -> Samples {
        let mut samples = Samples::default();
        for source in &self.sources {
            source.collect(&mut samples);
        }
        samples
    }

    fn collect_services(&self) -> Vec<MetricFamily> {
        let mut registry = self.pipeline.metrics().current();
        registry.expire(self.pipeline.now());
        registry.collect()
    }
}

/// The metrics of the server as the Prometheus client collects them.
struct Exporter {
    metrics: Arc<ServerMetrics>,
    descriptions: Vec<Desc>,
}

impl Exporter {
    fn new(metrics: Arc<ServerMetrics>) -> prometheus::Result<Self> {
        let describe = |metric: &Metric| {
            let labels = metric.labels.iter().map(|label| (*label).to_owned()).collect();
            Desc::new(metric.name.to_owned(), metric.help.to_owned(), labels, HashMap::new())
        };
        let declared = metrics.sources.iter().flat_map(|source| source.metrics());
        let descriptions = declared.map(describe).collect::<Result<_, _>>()?;
        Ok(Self { metrics, descriptions })
    }
}

impl Collector for Exporter {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = self.metrics.collect_services();
        families.extend(self.metrics.samples().metrics().iter().map(proto_values::family));
        families
    }
}

/// Returns the route.
///
/// # Errors
/// Returns an error if a metric is declared twice or has an invalid name, which would be a bug.
pub fn routes(metrics: Arc<ServerMetrics>) -> prometheus::Result<Router> {
    let registry = Registry::new();
    registry.register(Box::new(Exporter::new(metrics)?))?;
    registry.register(Box::new(ProcessCollector::for_self()))?;
    Ok(Router::new().route("/metrics", get(scrape)).with_state(registry))
}

async fn scrape(State(registry): State<Registry>, headers: HeaderMap) -> Response {
    let accepted = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let compressed = accepted.split(',').any(|coding| coding.trim().split(';').next() == Some("gzip"));
    // Encoding tens of thousands of series takes some milliseconds, which must not block other connections.
    let encoded = tokio::task::spawn_blocking(move || encode(&registry, compressed)).await;
    let Ok(Ok(body)) = encoded else {
        return (StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n").into_response();
    };
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(TEXT_FORMAT));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    if compressed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    response
}

fn encode(registry: &Registry, compressed: bool) -> prometheus::Result<Bytes> {
    let text = TextEncoder::new().encode_to_string(&registry.gather())?;
    if !compressed {
        return Ok(text.into());
    }
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(text.as_bytes())?;
    Ok(gzip.finish()?.into())
}
