//! OTLP's answers: success, partial success, and `google.rpc.Status`, in protobuf and in JSON.

use super::Signal;
use crate::Refusal;
use crate::pipeline::Answer;
use prost::Message;
use serde_json::json;
use std::fmt::Write;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

/// How many rejected records an answer tells about.
const REASONS: usize = 3;

/// `ExportTraceServiceResponse` and `ExportLogsServiceResponse`: on the wire they are the same.
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

/// Some records were rejected: how many, and why.
fn partial_success(answer: &Answer) -> Option<PartialSuccess> {
    if answer.rejected_count == 0 {
        return None;
    }
    let mut error_message = String::new();
    for rejected in answer.rejected.iter().take(REASONS) {
        let _ = write!(error_message, "record {}: {}; ", rejected.line, rejected.reason);
    }
    let _ = write!(error_message, "{} rejected in all", answer.rejected_count);
    Some(PartialSuccess { rejected: i64::try_from(answer.rejected_count).unwrap_or(i64::MAX), error_message })
}

pub(crate) fn success_protobuf(answer: &Answer) -> Vec<u8> {
    ExportResponse { partial_success: partial_success(answer) }.encode_to_vec()
}

pub(crate) fn success_json(signal: Signal, answer: &Answer) -> String {
    let Some(PartialSuccess { rejected, error_message }) = partial_success(answer) else {
        return "{}".to_owned();
    };
    let name = match signal {
        Signal::Traces => "rejectedSpans",
        Signal::Logs => "rejectedLogRecords",
    };
    // 64-bit numbers are texts in protobuf's JSON.
    json!({"partialSuccess": {name: rejected.to_string(), "errorMessage": error_message}}).to_string()
}

/// The status of a refusal; one that a retry may change says when. Its details hold the whole of it.
pub(crate) fn grpc_status(refusal: &Refusal) -> Status {
    let details = match refusal.retry_after {
        Some(after) => ErrorDetails::with_retry_info(Some(after)),
        None => ErrorDetails::new(),
    };
    let code = Code::from_i32(refusal.cause.grpc_status());
    Status::with_error_details(code, refusal.to_string(), details)
}

/// `google.rpc.Status`, as gRPC carries it in its details and OTLP over HTTP in its body.
pub(crate) fn status_protobuf(refusal: &Refusal) -> Vec<u8> {
    grpc_status(refusal).details().to_vec()
}

pub(crate) fn status_json(refusal: &Refusal) -> String {
    let mut status = json!({"code": refusal.cause.grpc_status(), "message": refusal.to_string()});
    if let (Some(after), Some(status)) = (refusal.retry_after, status.as_object_mut()) {
        let delay = format!("{}s", after.as_secs_f64());
        let retry = json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay});
        status.insert("details".to_owned(), json!([retry]));
    }
    status.to_string()
}

#[cfg(test)]
mod tests;
