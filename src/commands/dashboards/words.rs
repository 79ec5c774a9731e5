//! Expansion of words in queries: `@EVENTS` becomes the name of a metric, given by its constant in
//! the list of all metrics, and `@services` becomes a fragment of a query, given in the style.
//!
//! So a metric is renamed in one place, and a reference to one that does not exist is an error.

use anyhow::bail;
use metrics::Metric;
use std::collections::BTreeMap;

/// Returns the metrics of all crates.
fn all_metrics() -> impl Iterator<Item = &'static Metric> {
    let lists =
        [collector::metrics::names::ALL, store::metrics::ALL, query::metrics::ALL, auth::metrics::ALL];
    lists.into_iter().flatten()
}

/// The maximum depth to which fragments may refer to others.
const MAX_DEPTH: u8 = 4;

/// Returns a query with every such word replaced.
pub(super) fn expand(query: &str, fragments: &BTreeMap<String, String>) -> anyhow::Result<String> {
    expand_to_depth(query, fragments, MAX_DEPTH)
}

fn expand_to_depth(query: &str, fragments: &BTreeMap<String, String>, depth: u8) -> anyhow::Result<String> {
    let mut text = String::with_capacity(query.len());
    let mut rest = query.trim();
    while let Some(index) = rest.find('@') {
        text.push_str(&rest[..index]);
        rest = &rest[index + 1..];
        let word = first_word(rest);
        rest = &rest[word.len()..];
        let metric = all_metrics().find(|metric| metric.constant == word);
        match (metric, fragments.get(word)) {
            (Some(metric), _) => text.push_str(metric.name),
            (None, Some(_)) if depth == 0 => bail!("fragments name each other in a circle, at @{word}"),
            (None, Some(fragment)) => text.push_str(&expand_to_depth(fragment, fragments, depth - 1)?),
            (None, None) => bail!("nothing is called @{word}{}", suggestion(word, fragments)),
        }
    }
    text.push_str(rest);
    Ok(text)
}

/// Returns the word at the start of a text. A word in capitals ends before a suffix such as `_bucket`, which belongs to
/// the metric.
fn first_word(text: &str) -> &str {
    let is_capital = text.starts_with(|c: char| c.is_ascii_uppercase());
    let belongs =
        |c: char| c == '_' || if is_capital { c.is_ascii_uppercase() } else { c.is_ascii_lowercase() };
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text[..end].trim_end_matches('_')
}

fn suggestion(word: &str, fragments: &BTreeMap<String, String>) -> String {
    let known = all_metrics().map(|metric| metric.constant).chain(fragments.keys().map(String::as_str));
    let likeness = |known: &&str| strsim::jaro_winkler(known, word);
    let nearest = known.max_by(|left, right| likeness(left).total_cmp(&likeness(right)));
    nearest.map(|nearest| format!("; did you mean @{nearest}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_and_pieces_are_put_in() {
        let fragments = BTreeMap::from([("services".to_owned(), "service=~\"$service\"".to_owned())]);
        let expand = |query| expand(query, &fragments).map_err(|error| error.to_string());
        assert_eq!(
            expand("rate(@WAL_FSYNC_bucket{@services}[5m])").as_deref(),
            Ok("rate(faultline_wal_fsync_seconds_bucket{service=~\"$service\"}[5m])")
        );
        assert_eq!(expand("@EVENT"), Err("nothing is called @EVENT; did you mean @EVENTS?".to_owned()));
    }
}
