//! The metrics of a server, read as text.

use super::super::server::Server;
use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

/// The series of one scrape, as text.
pub(super) struct Scraped {
    pub(super) text: String,
}

impl Scraped {
    /// Scrapes a server; the result must be valid for promtool.
    #[track_caller]
    pub(super) fn of(server: &Server) -> Self {
        let text = String::from_utf8(server.get("/metrics").is(200).body).expect("UTF-8");
        check(&text);
        Self { text }
    }

    /// Returns the value of a series, written as in `name{label="value"}`.
    pub(super) fn value(&self, series: &str) -> Option<f64> {
        let line = self
            .text
            .lines()
            .find(|line| line.strip_prefix(series).is_some_and(|rest| rest.starts_with(' ')))?;
        line.rsplit(' ').next()?.parse().ok()
    }

    /// Returns all series of a metric, with their values.
    pub(super) fn series(&self, metric: &str) -> Vec<(&str, f64)> {
        let of_metric = |line: &&str| {
            line.strip_prefix(metric).is_some_and(|rest| rest.starts_with('{') || rest.starts_with(' '))
        };
        self.text
            .lines()
            .filter(of_metric)
            .filter_map(|line| {
                let (series, value) = line.rsplit_once(' ')?;
                Some((series, value.parse().ok()?))
            })
            .collect()
    }

    /// Returns a metric summed by some of its labels.
    pub(super) fn sums(&self, metric: &str, labels: &[&str]) -> BTreeMap<Vec<String>, f64> {
        let mut sums = BTreeMap::new();
        for (series, value) in self.series(metric).into_iter().filter(|(_, value)| *value != 0.0) {
            let key = labels.iter().map(|label| label_of(series, label)).collect();
            *sums.entry(key).or_default() += value;
        }
        sums
    }

    /// Returns the names of the metrics, and their kinds.
    pub(super) fn names(&self) -> BTreeMap<&str, &str> {
        let types = self.text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        types.filter_map(|line| line.split_once(' ')).collect()
    }

    /// Returns the number of series.
    pub(super) fn len(&self) -> usize {
        self.text.lines().filter(|line| !line.starts_with('#')).count()
    }
}

/// Returns the value of a label; only for values without quotes.
fn label_of(series: &str, label: &str) -> String {
    let start = series.find(&format!("{label}=\"")).expect("the label") + label.len() + 2;
    series[start..].split('"').next().expect("a value").to_owned()
}

/// Runs `promtool check metrics`.
#[track_caller]
pub(super) fn check(text: &str) {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool is missing: install the Debian package prometheus, as tests/run does");
    promtool.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("promtool reads");
    let output = promtool.wait_with_output().expect("promtool ends");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "promtool says:\n{said}");
}
