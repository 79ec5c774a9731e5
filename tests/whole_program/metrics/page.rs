//! Tests that `docs/metrics.md`, which is generated from the list of metrics, is up to date.

use super::super::support::check_expected;
use collector::metrics::names;
use std::fmt::Write;

const OPENING: &str = "\
# Metrics

This page lists all metrics that `GET /metrics` exports, in the text format of Prometheus (0.0.4). A test generates it from
`collector/src/metrics/names.rs`.

- Records are counted when they are durable. Counters start at 0 with the process.
- A service is known from its first record, or from the start if it has records of the last day or is named by
  `--expect-service` or the registry file. For the first 100 services, the series that alerts use begin at 0 then: all
  categories, outcomes, confirmations and tokens, and every registered code of INTERNAL, RATE_LIMIT, PERMISSION and TOKEN in
  the dialects that the service has used.
- There are at most 50,000 series. Values of `service`, `code`, `operation`, `metric`, `required_trust` and `actual_trust`
  come from senders; when a metric has too many, further values are `_other`, and `faultline_capped_labels_total` counts
  them. A missing value is `_unknown`.
- A call that both sides report counts once, at the server. A call that the client saw fail, such as one that it gave up on, counts as
  failed, also if the server reports a success.
- A failure counts once, under the category of its first report. If a better report comes in a later request, the row in the view
  `errors` changes, but the counter cannot.
- The standard `process_*` metrics are exported, too.

| metric | kind | labels | meaning |
|---|---|---|---|
";

#[test]
fn the_page_of_metrics_is_up_to_date() {
    let mut page = OPENING.to_owned();
    for metric in names::ALL {
        let kind = format!("{:?}", metric.kind).to_lowercase();
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let about = metric.help;
        let _ = writeln!(page, "| `{}` | {kind} | {} | {about} |", metric.name, labels.join(", "));
    }
    check_expected("docs/metrics.md", &page);
}
