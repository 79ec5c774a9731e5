//! Tests of responses and statuses, which are decoded again with the generated types.

use super::*;
use crate::RejectionReason;
use crate::pipeline::RejectedRecord;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use std::time::Duration;
use tonic_types::pb;

fn partial() -> IngestResponse {
    let rejected = vec![RejectedRecord { line: 2, reason: "broken".to_owned() }];
    IngestResponse { accepted: 5, rejected, rejected_count: 3, ..IngestResponse::default() }
}

#[test]
fn success_is_empty() {
    assert_eq!(success_protobuf(&IngestResponse::default()), b"");
    assert_eq!(success_json(Signal::Logs, &IngestResponse::default()), "{}");
}

#[test]
fn partial_success_in_the_official_types() {
    let bytes = success_protobuf(&partial());
    let traces = ExportTraceServiceResponse::decode(&bytes[..]).unwrap().partial_success.unwrap();
    let logs = ExportLogsServiceResponse::decode(&bytes[..]).unwrap().partial_success.unwrap();
    assert_eq!((traces.rejected_spans, logs.rejected_log_records), (3, 3));
    assert_eq!(traces.error_message, "record 2: broken; 3 rejected in all");
    assert_eq!(logs.error_message, traces.error_message);
    for (signal, name) in [(Signal::Traces, "rejectedSpans"), (Signal::Logs, "rejectedLogRecords")] {
        let json: serde_json::Value = serde_json::from_str(&success_json(signal, &partial())).unwrap();
        assert_eq!(json["partialSuccess"][name], "3");
        assert_eq!(json["partialSuccess"]["errorMessage"], traces.error_message);
    }
}

#[test]
fn only_what_a_retry_can_change_says_when() {
    for reason in RejectionReason::ALL {
        for after in [None, Some(Duration::from_millis(1500))] {
            let rejection = Rejection { reason, detail: "x".to_owned(), retry_after: after, remedy: None };
            let status = pb::Status::decode(&status_protobuf(&rejection)[..]).unwrap();
            assert_eq!((status.code, &status.message), (reason.grpc_status(), &rejection.to_string()));
            let info = grpc_status(&rejection).get_details_retry_info().map(|info| info.retry_delay);
            assert_eq!(info, after.map(Some));
            let json: serde_json::Value = serde_json::from_str(&status_json(&rejection)).unwrap();
            assert_eq!(json["code"], reason.grpc_status());
            assert_eq!(json["details"][0]["retryDelay"].as_str(), after.map(|_| "1.5s"));
        }
    }
}
