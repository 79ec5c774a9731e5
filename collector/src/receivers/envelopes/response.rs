//! The responses of `/v1/envelopes`: JSON that lists the rejected lines.

use crate::counters::CategoryCounts;
use crate::pipeline::IngestResponse;
use crate::receivers::http_response;
use crate::{Rejection, RejectionReason};
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;

const JSON: &str = "application/json";
/// The remedy for a body without a readable record.
pub(super) const EXAMPLE: &str = "send one JSON object a line, as in: curl http://127.0.0.1:4318/v1/envelopes \
                                  -H 'Content-Type: application/x-ndjson' --data-binary @replies.ndjson";

#[derive(Serialize)]
struct EnvelopeResponse<'a> {
    accepted: u64,
    events: u64,
    unrecognized: u64,
    rejected: Vec<Line<'a>>,
    /// Present only if the list was truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected_count: Option<u64>,
    /// The events by category, if there are any.
    #[serde(skip_serializing_if = "CategoryCounts::is_empty")]
    categories: CategoryCounts,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error<'a>>,
}

#[derive(Serialize)]
struct Line<'a> {
    line: u64,
    reason: &'a str,
}

#[derive(Serialize)]
struct RejectionBody<'a> {
    error: Error<'a>,
}

#[derive(Serialize)]
struct Error<'a> {
    code: &'static str,
    message: &'a str,
    remedy: &'a str,
}

impl<'a> Error<'a> {
    fn of(rejection: &'a Rejection) -> Self {
        Self { code: rejection.reason.as_str(), message: &rejection.detail, remedy: rejection.remedy() }
    }
}

/// Builds the response to a processed request: 200, or 400 if records were sent and all of them were rejected.
pub(super) fn taken(response: &IngestResponse) -> Response {
    let unreadable =
        (response.accepted == 0 && response.rejected_count > 0).then(|| nothing_readable(response));
    let body = EnvelopeResponse {
        accepted: response.accepted,
        events: response.events,
        unrecognized: response.unrecognized,
        rejected: response.rejected.iter().map(|at| Line { line: at.line, reason: &at.reason }).collect(),
        rejected_count: (response.rejected_count > response.rejected.len() as u64)
            .then_some(response.rejected_count),
        categories: response.categories,
        error: unreadable.as_ref().map(Error::of),
    };
    match &unreadable {
        None => http_response::reply(StatusCode::OK, JSON, to_json(&body)),
        Some(rejection) => http_response::rejected(rejection, JSON, to_json(&body)),
    }
}

/// Returns the rejection of a body of which no record could be read, with the reason of the first record.
fn nothing_readable(response: &IngestResponse) -> Rejection {
    let first = response.rejected.first();
    let first = first.map(|first| format!(": line {}: {}", first.line, first.reason)).unwrap_or_default();
    let detail = format!("nothing in the body could be read{first}");
    Rejection::new(RejectionReason::Unreadable, detail).with_remedy(EXAMPLE)
}

pub(in crate::receivers) fn rejected(rejection: &Rejection) -> Response {
    http_response::rejected(rejection, JSON, to_json(&RejectionBody { error: Error::of(rejection) }))
}

/// Serializes a response. Structs of numbers and strings cannot fail to serialize; if one did, the body would be empty.
fn to_json(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_default()
}
