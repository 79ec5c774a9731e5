//! Tests that `docs/metrics.md`, which is generated from the lists of metrics, is up to date.

use super::super::support::check_expected;
use super::list::all_metrics;
use std::fmt::Write;

const OPENING: &str = "\
# Metrics

This page lists all metrics that `GET /metrics` exports, in the text format of Prometheus (0.0.4). A test generates it from
the lists of the crates: `collector/src/metrics/names.rs`, `store/src/metrics.rs`, `query/src/metrics.rs` and
`auth/src/metrics.rs`.

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

`GET /api/v1/status` has the same values as JSON, except those of services. The third column says where: of a word in braces,
there is one member for each value of that label. Counts by reason, outcome and the like leave out what never happened. A
histogram is an object with `count` and `sum`.
";

#[test]
fn the_page_of_metrics_is_up_to_date() {
    let mut page = OPENING.to_owned();
    let mut group = "";
    for metric in all_metrics() {
        if group != metric.group.name {
            group = metric.group.name;
            let _ = write!(
                page,
                "\n## {group}\n\n| metric | type | in the status | meaning |\n|---|---|---|---|\n"
            );
        }
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { String::new() } else { format!(" by {}", labels.join(", ")) };
        let path = if group == "services" { "–".to_owned() } else { format!("`{}`", metric.status_path()) };
        let _ = writeln!(
            page,
            "| `{}`{labels} | {} | {path} | {} |",
            metric.name,
            metric.kind.as_str(),
            metric.help
        );
    }
    check_expected("docs/metrics.md", &page);
}
