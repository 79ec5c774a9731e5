//! Words in queries that stand for something else: `@EVENTS` is a metric, by the name of its constant in
//! `collector::metrics::names`; `@services` a piece of a query, from the style.
//!
//! So a metric that is renamed is renamed in one place, and one that does not exist is a mistake here.

use anyhow::bail;
use collector::metrics::names;
use std::collections::BTreeMap;

/// Fragments may name others, so deep and no deeper.
const DEEPEST: u8 = 4;

/// A query with every word in it replaced.
pub(super) fn filled(query: &str, fragments: &BTreeMap<String, String>) -> anyhow::Result<String> {
    filled_within(query, fragments, DEEPEST)
}

fn filled_within(query: &str, fragments: &BTreeMap<String, String>, depth: u8) -> anyhow::Result<String> {
    let mut text = String::with_capacity(query.len());
    let mut rest = query.trim();
    while let Some(place) = rest.find('@') {
        text.push_str(&rest[..place]);
        rest = &rest[place + 1..];
        let word = word_of(rest);
        rest = &rest[word.len()..];
        let metric = names::ALL.iter().find(|metric| metric.word == word);
        match (metric, fragments.get(word)) {
            (Some(metric), _) => text.push_str(metric.name),
            (None, Some(_)) if depth == 0 => bail!("fragments name each other in a circle, at @{word}"),
            (None, Some(fragment)) => text.push_str(&filled_within(fragment, fragments, depth - 1)?),
            (None, None) => bail!("nothing is called @{word}{}", suggestion(word, fragments)),
        }
    }
    text.push_str(rest);
    Ok(text)
}

/// The word at the start of a text. One in capitals ends before `_bucket` and the like, which belong to the metric.
fn word_of(text: &str) -> &str {
    let is_capital = text.starts_with(|c: char| c.is_ascii_uppercase());
    let belongs =
        |c: char| c == '_' || if is_capital { c.is_ascii_uppercase() } else { c.is_ascii_lowercase() };
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text[..end].trim_end_matches('_')
}

fn suggestion(word: &str, fragments: &BTreeMap<String, String>) -> String {
    let known = names::ALL.iter().map(|metric| metric.word).chain(fragments.keys().map(String::as_str));
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
        let filled = |query| filled(query, &fragments).map_err(|error| error.to_string());
        assert_eq!(
            filled("rate(@LOG_FSYNC_bucket{@services}[5m])").as_deref(),
            Ok("rate(faultline_log_fsync_seconds_bucket{service=~\"$service\"}[5m])")
        );
        assert_eq!(filled("@EVENT"), Err("nothing is called @EVENT; did you mean @EVENTS?".to_owned()));
    }
}
