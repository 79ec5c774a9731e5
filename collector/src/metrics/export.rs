//! The `/metrics` endpoint: all metrics in the text format of Prometheus.

use super::health::{EndpointMetrics, Families, HealthCollector, to_f64};
use super::names;
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
use prometheus::core::{Collector, Desc};
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::MetricFamily;
use prometheus::{Registry, TEXT_FORMAT, TextEncoder};
use std::collections::HashMap;
use std::io::Write;
use store::maintenance::Maintenance;

/// Combines all metrics for export.
pub struct Exporter {
    health: HealthCollector,
    descriptions: Vec<Desc>,
}

impl Exporter {
    /// Creates an exporter that reads from the given parts.
    ///
    /// # Errors
    /// Returns an error if a metric has an invalid name, which would be a bug.
    pub fn new(
        pipeline: Pipeline,
        maintenance: Maintenance,
        wal_limit: u64,
        endpoints: EndpointMetrics,
    ) -> prometheus::Result<Self> {
        let describe = |metric: &names::Metric| {
            let labels = metric.labels.iter().map(|label| (*label).to_owned()).collect();
            Desc::new(metric.name.to_owned(), metric.help.to_owned(), labels, HashMap::new())
        };
        let descriptions = names::ALL.iter().map(describe).collect::<Result<_, _>>()?;
        Ok(Self { health: HealthCollector { pipeline, maintenance, wal_limit, endpoints }, descriptions })
    }

    fn collect_services(&self) -> Vec<MetricFamily> {
        let pipeline = &self.health.pipeline;
        let mut registry = pipeline.metrics().current();
        registry.expire(pipeline.now());
        let mut families = Families(registry.collect());
        families.scalar(&names::SERIES, to_f64(registry.series() as u64));
        families.scalar(&names::SERIES_LIMIT, to_f64(registry.series_limits.max_series() as u64));
        let capped = registry.capped().into_iter().map(|(metric, times)| (vec![metric], to_f64(times)));
        families.labeled(&names::CAPPED_LABELS, capped);
        families.0
    }
}

impl Collector for Exporter {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let mut families = self.collect_services();
        families.extend(self.health.collect());
        families
    }
}

/// Returns the route.
///
/// # Errors
/// Returns an error if a metric is registered twice, which would be a bug.
pub fn routes(exporter: Exporter) -> prometheus::Result<Router> {
    let registry = Registry::new();
    registry.register(Box::new(exporter))?;
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
