//! Spans of an MCP server: tool calls of about 270 bytes, one in five of which failed.
//!
//! A batch is encoded once. Its ids are located in the bytes and overwritten for every request, which costs the sender
//! far less than encoding.

use super::bodies::frame;
use anyhow::{Context, ensure};
use memchr::memmem;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};
use prost::Message;

const TOOLS: [&str; 8] = [
    "search_flights",
    "book_hotel",
    "get_weather",
    "list_invoices",
    "create_ticket",
    "read_file",
    "run_query",
    "send_mail",
];
/// The response of a tool whose span has no error.
const HIDDEN: &str = r#"{"success":false,"error":{"code":"RATE_LIMIT_QUOTA_PAUSE","message":"quota of 60 a minute is used up"}}"#;
/// A marker for ids. UTF-8 text cannot contain these bytes.
const TRACE_MARK: [u8; 8] = [0xF1, 0xA7, 0xF1, 0xA7, 0xF1, 0xA7, 0xF1, 0xA7];
const SPAN_MARK: [u8; 8] = [0xF2, 0xA7, 0xF2, 0xA7, 0xF2, 0xA7, 0xF2, 0xA7];

/// An encoded batch that is never the same twice.
pub(crate) struct SpanBatch {
    bytes: Vec<u8>,
    /// The offsets of the ids.
    ids: Vec<usize>,
    /// The source of the next id.
    counter: u64,
}

impl SpanBatch {
    pub(crate) fn new(spans: usize) -> anyhow::Result<Self> {
        let bytes = request(spans).encode_to_vec();
        let ids: Vec<usize> =
            [TRACE_MARK, SPAN_MARK].iter().flat_map(|mark| memmem::find_iter(&bytes, mark)).collect();
        ensure!(ids.len() == 2 * spans, "{} ids found of {spans} spans", ids.len());
        // A later run must not repeat ids that an earlier one has stored.
        let seed = jiff::Timestamp::now().as_nanosecond();
        Ok(Self { bytes, ids, counter: u64::try_from(seed).context("a time before 1970")? })
    }

    /// Returns the same batch in a gRPC frame.
    pub(crate) fn framed(self) -> Self {
        let bytes = frame(&self.bytes, false);
        let moved = bytes.len() - self.bytes.len();
        Self { bytes, ids: self.ids.iter().map(|id| id + moved).collect(), ..self }
    }

    /// Returns the batch with new ids.
    pub(crate) fn next(&mut self) -> &[u8] {
        for &id in &self.ids {
            self.counter = self.counter.wrapping_add(0x9E37_79B9_7F4A_7C15);
            // Ids are random, which matters to compression.
            let random = (self.counter ^ (self.counter >> 31)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            self.bytes[id..id + 8].copy_from_slice(&random.to_le_bytes());
        }
        &self.bytes
    }
}

fn request(spans: usize) -> ExportTraceServiceRequest {
    let spans = (0..spans as u64).map(span).collect();
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let attributes = vec![
        text("service.name", "travel-desk"),
        text("service.version", "2.4.1"),
        text("deployment.environment.name", "production"),
        text("telemetry.sdk.language", "python"),
    ];
    let resource = Some(Resource { attributes, ..Resource::default() });
    ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans { resource, scope_spans, ..ResourceSpans::default() }],
    }
}

fn span(number: u64) -> Span {
    let tool = TOOLS[(number % 8) as usize];
    let start = 1_000 * u64::try_from(demo::START_MICROS).unwrap_or(0) + number * 3_000_000;
    let attributes = vec![
        text("mcp.method.name", "tools/call"),
        text("gen_ai.tool.name", tool),
        text("mcp.session.id", &format!("s-{:08x}", number.wrapping_mul(0x9E37_79B9) as u32)),
        text("network.transport", "pipe"),
        int("jsonrpc.request.id", number),
    ];
    let mut span = Span {
        trace_id: [TRACE_MARK, [0x11; 8]].concat(),
        span_id: SPAN_MARK.to_vec(),
        parent_span_id: vec![3; 8],
        name: format!("tools/call {tool}"),
        kind: 2,
        start_time_unix_nano: start,
        end_time_unix_nano: start + 1_500_000 + number * 1_000,
        attributes,
        ..Span::default()
    };
    fail(&mut span, number);
    span
}

/// Marks failures: of twenty spans, two report a failure, one has an error code of its protocol, and one hides its
/// failure.
fn fail(span: &mut Span, number: u64) {
    let error = |message: &str| Some(Status { message: message.to_owned(), code: 2 });
    match number % 20 {
        3 | 11 => {
            span.attributes.push(text("error.type", "TimeoutError"));
            span.status = error(&format!("upstream did not answer within {} ms", 900 + number));
        }
        7 => {
            span.attributes.push(text("rpc.system", "jsonrpc"));
            span.attributes.push(int("rpc.jsonrpc.error_code", (-32602_i64).cast_unsigned()));
            span.status = error("Invalid params: departure date must be in the future");
        }
        15 => span.attributes.push(text("gen_ai.tool.call.result", HIDDEN)),
        _ => {}
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    attribute(key, Value::StringValue(value.to_owned()))
}

fn int(key: &str, value: u64) -> KeyValue {
    attribute(key, Value::IntValue(value.cast_signed()))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}
