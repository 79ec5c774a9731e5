//! Identities by which spans, log records and their calls are recognized when they are sent again.
//!
//! Invariant: an identity depends only on what is sent, never on when or in which request it arrives.

use classifier::telemetry::{LogRecord, Resource, Span, Value};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed, xxh3_128, xxh3_128_with_seed};

/// The ids of a span, or of the span that a log record belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanIds {
    pub(super) trace_id: [u8; 16],
    pub(super) span_id: [u8; 8],
    pub(super) parent_span_id: Option<[u8; 8]>,
    /// A hash of the service and the name of the span.
    pub(super) layer: u64,
    /// A hash of the service.
    pub(super) service: u64,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
}

impl SpanIds {
    pub(super) fn of_span(span: &Span<'_>, resource: &Resource<'_>) -> Option<Self> {
        let service = resource.attributes.iter().find(|attribute| attribute.key == "service.name");
        let service = service.and_then(|service| service.value.as_text()).unwrap_or_default();
        let service = xxh3_64(service.as_bytes());
        Some(Self {
            trace_id: span.trace_id?,
            span_id: span.span_id?,
            parent_span_id: span.parent_span_id,
            layer: xxh3_64_with_seed(span.name.as_bytes(), service),
            service,
            start_ns: span.start_ns,
            end_ns: span.end_ns,
        })
    }

    pub(super) fn of_log(record: &LogRecord<'_>) -> Option<Self> {
        let (trace_id, span_id) = record.trace_id.zip(record.span_id)?;
        Some(Self { trace_id, span_id, parent_span_id: None, layer: 0, service: 0, start_ns: 0, end_ns: 0 })
    }
}

/// The mask that turns the identity of a span into that of "this span was counted".
const CALL_IDENTITY_MASK: u128 = 0x8f1b_2c5d_93a6_47e0_b1d4_6e83_5f07_c92a;

/// The two signals that can report the failure of a span.
pub(super) const SPAN_SIGNAL: u64 = 1;
pub(super) const LOG_SIGNAL: u64 = 2;

/// Returns the identity of "this signal reports that this span failed with this code".
pub(super) fn report_identity(signal: u64, span: u128, canonical: &str) -> u128 {
    span ^ xxh3_128_with_seed(canonical.as_bytes(), signal)
}

/// Returns the identity of the call that a span represents.
pub(super) fn call_identity(span: u128) -> u64 {
    low_64_bits(span ^ CALL_IDENTITY_MASK)
}

/// Returns the low eight bytes of an identity, which are short enough to store all of them in the WAL.
pub(super) fn low_64_bits(identity: u128) -> u64 {
    (identity & u128::from(u64::MAX)) as u64
}

/// Returns the identity of the calls in a log record. Log records of a span have none, because they are counted with
/// the span. As for events, two records are equal only if their time and body are.
pub(super) fn log_identity(record: &LogRecord<'_>, resource: &Resource<'_>, body: &[u8]) -> Option<u64> {
    let time_ns = if record.time_ns > 0 { record.time_ns } else { record.observed_ns };
    if record.span_id.is_some() || body.is_empty() || time_ns == 0 {
        return None;
    }
    let service = resource.attributes.iter().find(|attribute| attribute.key == "service.name");
    let service = service.and_then(|service| service.value.as_text()).unwrap_or_default();
    Some(low_64_bits(xxh3_128_with_seed(body, time_ns) ^ xxh3_128(service.as_bytes())))
}

/// Returns the text of a log body.
pub(super) fn body_text<'a>(body: Option<&'a Value<'a>>) -> &'a str {
    match body {
        Some(Value::Text(text) | Value::Json(text)) => text,
        _ => "",
    }
}

/// Returns the identity of a span.
pub(super) fn span_identity(trace: &[u8; 16], span: &[u8; 8]) -> u128 {
    let mut bytes = [0; 24];
    bytes[..16].copy_from_slice(trace);
    bytes[16..].copy_from_slice(span);
    xxh3_128(&bytes)
}
