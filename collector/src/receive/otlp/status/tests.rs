//! Answers and statuses, decoded again by the generated types.

use super::*;
use crate::Cause;
use crate::pipeline::Rejected;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceResponse;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceResponse;
use std::time::Duration;
use tonic_types::pb;

fn partial() -> Answer {
    let rejected = vec![Rejected { line: 2, reason: "broken".to_owned() }];
    Answer { accepted: 5, rejected, rejected_count: 3, ..Answer::default() }
}

#[test]
fn success_is_empty() {
    assert_eq!(success_protobuf(&Answer::default()), b"");
    assert_eq!(success_json(Signal::Logs, &Answer::default()), "{}");
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
    for cause in Cause::ALL {
        for after in [None, Some(Duration::from_millis(1500))] {
            let refusal = Refusal { cause, detail: "x".to_owned(), retry_after: after };
            let status = pb::Status::decode(&status_protobuf(&refusal)[..]).unwrap();
            assert_eq!((status.code, &status.message), (cause.grpc_status(), &refusal.to_string()));
            let info = grpc_status(&refusal).get_details_retry_info().map(|info| info.retry_delay);
            assert_eq!(info, after.map(Some));
            let json: serde_json::Value = serde_json::from_str(&status_json(&refusal)).unwrap();
            assert_eq!(json["code"], cause.grpc_status());
            assert_eq!(json["details"][0]["retryDelay"].as_str(), after.map(|_| "1.5s"));
        }
    }
}
