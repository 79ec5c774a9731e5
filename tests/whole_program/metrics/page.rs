//! `docs/metrics.md` is generated from the list of metrics.

use super::super::support::check_expected;
use collector::metrics::names;
use std::fmt::Write;

const OPENING: &str = "\
# Metrics

Everything that `GET /metrics` exports, in the text format of Prometheus (0.0.4). This page is written by a test from
`collector/src/metrics/names.rs`.

- Only what is stored durably is counted, when it is. What is counted starts at 0 with the process.
- A service is known from its first record, from a restart on by what is stored of the last day, or from the start by
  `--expect-service` and the operator's file. For the first 100, the series that alerts watch begin at 0 then: all
  categories, outcomes, confirmations and tokens, and of the dialects that the service has spoken, every registered code
  of INTERNAL, RATE_LIMIT, PERMISSION and TOKEN.
- There are at most 50,000 series. Values of `service`, `code`, `operation`, `metric` and the two of trust come from
  what was sent; past their bound they are `_other`, and `faultline_capped_labels_total` says so. What was not sent is
  `_unknown`.
- A call that both sides report counts once, at the server.
- Besides, there are the `process_*` metrics that every process of Prometheus's world has.

| metric | kind | labels | what it says |
|---|---|---|---|
";

#[test]
fn the_page_of_metrics_is_up_to_date() {
    let mut page = OPENING.to_owned();
    for metric in names::ALL {
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let about = metric.about;
        let _ = writeln!(page, "| `{}` | {kind} | {} | {about} |", metric.name, labels.join(", "));
    }
    check_expected("docs/metrics.md", &page);
}
