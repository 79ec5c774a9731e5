//! Encodes OTLP responses: success, partial success, and `google.rpc.Status`, in protobuf and in JSON.

use super::{Signal, call_histogram};
use crate::Rejection;
use crate::pipeline::IngestResponse;
use prost::Message;
use serde_json::json;
use std::fmt::Write;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// The number of rejected records that a response describes.
const REASONS: usize = 3;

/// `ExportTraceServiceResponse`, and those of logs and metrics, which have the same encoding.
#[derive(Clone, PartialEq, Message)]
struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// Returns the number of rejected and ignored records, and the reasons; `None` if there are none.
fn partial_success(response: &IngestResponse) -> Option<PartialSuccess> {
    let rejected = response.rejected_count.saturating_add(response.ignored);
    if rejected == 0 {
        return None;
    }
    let mut error_message = String::new();
    for rejected in response.rejected.iter().take(REASONS) {
        let _ = write!(error_message, "record {}: {}; ", rejected.line, rejected.reason);
    }
    if response.rejected_count > 0 {
        let _ = write!(error_message, "{} rejected in all", response.rejected_count);
    }
    if response.ignored > 0 {
        let separator = if error_message.is_empty() { "" } else { "; " };
        let (ignored, names) = (response.ignored, call_histogram::names());
        let _ = write!(
            error_message,
            "{separator}{ignored} data points are of metrics that Faultline does not store; it reads {names}"
        );
    }
    Some(PartialSuccess { rejected: i64::try_from(rejected).unwrap_or(i64::MAX), error_message })
}

pub(crate) fn success_protobuf(response: &IngestResponse) -> Vec<u8> {
    ExportResponse { partial_success: partial_success(response) }.encode_to_vec()
}

pub(crate) fn success_json(signal: Signal, response: &IngestResponse) -> String {
    let Some(PartialSuccess { rejected, error_message }) = partial_success(response) else {
        return "{}".to_owned();
    };
    let name = match signal {
        Signal::Traces => "rejectedSpans",
        Signal::Logs => "rejectedLogRecords",
        Signal::Metrics => "rejectedDataPoints",
    };
    // 64-bit numbers are strings in protobuf's JSON.
    json!({"partialSuccess": {name: rejected.to_string(), "errorMessage": error_message}}).to_string()
}

/// Returns the gRPC status of a rejection, with `RetryInfo` if it can be retried. Its details contain the complete
/// `google.rpc.Status`.
pub(crate) fn grpc_status(rejection: &Rejection) -> Status {
    let details = match rejection.retry_after {
        Some(after) => ErrorDetails::with_retry_info(Some(after)),
        None => ErrorDetails::new(),
    };
    let code = Code::from_i32(rejection.reason.grpc_status());
    Status::with_error_details(code, rejection.to_string(), details)
}

/// Returns the `google.rpc.Status`, which is in the details of a gRPC status and in the body of OTLP over HTTP.
pub(crate) fn status_protobuf(rejection: &Rejection) -> Vec<u8> {
    grpc_status(rejection).details().to_vec()
}

pub(crate) fn status_json(rejection: &Rejection) -> String {
    let mut status = json!({"code": rejection.reason.grpc_status(), "message": rejection.to_string()});
    if let (Some(after), Some(status)) = (rejection.retry_after, status.as_object_mut()) {
        let delay = format!("{}s", after.as_secs_f64());
        let retry = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay});
        status.insert("details".to_owned(), json!([retry]));
    }
    status.to_string()
}

#[cfg(test)]
mod tests;
