//! Tests of metrics in protobuf and in JSON: both give the same points, and count all other points.

use super::super::{json, test_data};
use super::*;
use crate::receivers::record_consumer::test_consumer::TestConsumer;
use classifier::telemetry::{SpanKind, Value};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::exponential_histogram_data_point::Buckets;
use opentelemetry_proto::tonic::metrics::v1::metric::Data as Sent;
use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint, Metric,
    NumberDataPoint, ResourceMetrics, ScopeMetrics,
};
use prost::Message as _;

fn request(metrics: Vec<Metric>) -> ExportMetricsServiceRequest {
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    let resource = test_data::resource("shop");
    let one = ResourceMetrics { resource, scope_metrics, ..ResourceMetrics::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![one] }
}

fn metric(name: &str, data: Sent) -> Metric {
    Metric { name: name.to_owned(), unit: "s".to_owned(), data: Some(data), ..Metric::default() }
}

fn histogram() -> Sent {
    let point = HistogramDataPoint {
        attributes: vec![test_data::attribute("gen_ai.tool.name", test_data::text("merge"))],
        start_time_unix_nano: 5,
        time_unix_nano: 9,
        count: 7,
        sum: Some(0.25),
        bucket_counts: vec![4, 2, 1],
        explicit_bounds: vec![0.01, 0.1],
        ..HistogramDataPoint::default()
    };
    Sent::Histogram(Histogram { data_points: vec![point], aggregation_temporality: 2 })
}

fn gauge(points: usize) -> Sent {
    Sent::Gauge(Gauge { data_points: vec![NumberDataPoint::default(); points] })
}

/// Returns the `Debug` text of the call point that [`histogram`] must be decoded to.
fn expected(side: SpanKind) -> String {
    let text = |key: &'static str, text: &'static str| Attribute {
        key: key.into(),
        value: Value::Text(text.into()),
    };
    let mut durations = CallDurations { calls: 7, sum_us: 250_000, ..CallDurations::default() };
    (durations.bucket_counts[3], durations.bucket_counts[6]) = (4, 2);
    let point = CallPoint {
        side,
        is_cumulative: true,
        start_ns: 5,
        time_ns: 9,
        attributes: &[text("gen_ai.tool.name", "merge")],
        durations,
    };
    format!("{point:#?} {:#?}", Resource { attributes: &[text("service.name", "shop")] })
}

/// Decodes a request in both formats, and checks that the results agree.
fn recorded(request: &ExportMetricsServiceRequest) -> TestConsumer {
    let (mut binary, mut text) = (TestConsumer::default(), TestConsumer::default());
    read(&request.encode_to_vec(), &mut binary).unwrap();
    json::read_metrics(&serde_json::to_vec(request).unwrap(), &mut text).unwrap();
    assert_eq!(binary, text);
    binary
}

#[test]
fn histograms_of_calls_are_read_and_the_rest_is_counted() {
    let records = recorded(&request(vec![
        metric("mcp.server.operation.duration", histogram()),
        metric("process.cpu.time", gauge(3)),
        metric("mcp.client.operation.duration", histogram()),
        metric("mcp.server.session.duration", histogram()),
        metric("mcp.server.operation.duration", gauge(2)),
        Metric { name: "empty".to_owned(), ..Metric::default() },
    ]));
    assert_eq!(records.signals, [expected(SpanKind::Server), expected(SpanKind::Client)]);
    assert_eq!((records.ignored, records.rejected.len()), (6, 0));
}

#[test]
fn exponential_histograms_are_read() {
    let point = ExponentialHistogramDataPoint {
        count: 7,
        sum: Some(0.02),
        scale: 0,
        zero_count: 1,
        positive: Some(Buckets { offset: -10, bucket_counts: vec![2, 4] }),
        ..ExponentialHistogramDataPoint::default()
    };
    let data = ExponentialHistogram { data_points: vec![point], aggregation_temporality: 1 };
    let records =
        recorded(&request(vec![metric("mcp.server.operation.duration", Sent::ExponentialHistogram(data))]));
    let text = records.signals[0].split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("is_cumulative: false"), "{text}");
    assert!(text.contains("calls: 7, sum_us: 20000, bucket_counts: [ 1, 2, 4, 0,"), "{text}");
}

#[test]
fn a_malformed_metric_costs_only_itself() {
    let good = metric("mcp.server.operation.duration", histogram()).encode_to_vec();
    let bad = [0x0a, 0x7f, 1];
    let wrap = |bytes: &[u8]| {
        let length = bytes.len();
        assert!(length < 1 << 14);
        [&[0x12, (length & 0x7f) as u8 | 0x80, (length >> 7) as u8], bytes].concat()
    };
    let metrics: Vec<u8> = [&good[..], &bad, &good].iter().flat_map(|metric| wrap(metric)).collect();
    let mut body = wrap(&wrap(&metrics));
    // A resource is in field 1 of the request, its scopes are in field 2.
    body[0] = 0x0a;
    let mut records = TestConsumer::default();
    let read = read(&body, &mut records);
    assert!(read.is_ok(), "{read:?}");
    assert_eq!((records.signals.len(), records.rejected.len()), (2, 1), "{records:?}");
    assert_eq!((records.rejected[0].0, records.rejected[0].1), (2, "malformed"));
}

#[test]
fn a_body_that_is_cut_anywhere_is_refused_or_read_in_part() {
    let body = request(vec![metric("mcp.server.operation.duration", histogram())]).encode_to_vec();
    for end in 0..body.len() {
        let mut records = TestConsumer::default();
        let _ = read(&body[..end], &mut records);
        assert!(records.signals.is_empty(), "cut at {end}");
    }
}
