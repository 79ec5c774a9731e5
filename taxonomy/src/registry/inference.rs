//! How a failure that no entry knows is placed: by the prefix of its code, by an HTTP status, by the
//! phrases in its message.

use crate::category::Category;
use aho_corasick::{AhoCorasick, MatchKind};
use std::ops::RangeInclusive;

/// Prefixes of text codes; the longest wins.
#[derive(Debug, Clone)]
pub(super) struct Prefixes(Vec<(String, Category)>);

impl Prefixes {
    pub(super) fn new(mut rows: Vec<(String, Category)>) -> Self {
        rows.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Self(rows)
    }

    /// The category of a code by its longest prefix; a bare `NOT_FOUND` counts as `NOT_FOUND_`.
    pub(super) fn category(&self, code: &str) -> Option<Category> {
        let fits = |prefix: &str| code.starts_with(prefix) || prefix.strip_suffix('_') == Some(code);
        self.0.iter().find(|(prefix, _)| fits(prefix)).map(|&(_, category)| category)
    }
}

/// HTTP statuses; single ones come before hundreds.
#[derive(Debug, Clone)]
pub(super) struct Statuses(Vec<(RangeInclusive<u16>, String)>);

impl Statuses {
    pub(super) fn new(mut rows: Vec<(RangeInclusive<u16>, String)>) -> Self {
        rows.sort_by_key(|(statuses, _)| statuses.end() - statuses.start());
        Self(rows)
    }

    pub(super) fn canonical(&self, status: u16) -> Option<&str> {
        self.0
            .iter()
            .find(|(statuses, _)| statuses.contains(&status))
            .map(|(_, canonical)| canonical.as_str())
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (&RangeInclusive<u16>, &str)> {
        self.0.iter().map(|(statuses, canonical)| (statuses, canonical.as_str()))
    }
}

/// Phrases of messages; the first row that has one in the text wins.
#[derive(Debug, Clone)]
pub(super) struct Phrases {
    /// Finds every phrase of every row in one pass.
    finder: AhoCorasick,
    /// The row that each phrase of the finder belongs to.
    row_of: Vec<usize>,
    rows: Vec<(Vec<String>, String)>,
}

impl Phrases {
    pub(super) fn new(rows: Vec<(Vec<String>, String)>) -> Result<Self, String> {
        let row_of =
            rows.iter().enumerate().flat_map(|(row, (any, _))| any.iter().map(move |_| row)).collect();
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .match_kind(MatchKind::Standard)
            .build(rows.iter().flat_map(|(any, _)| any))
            .map_err(|error| format!("the phrases cannot be searched for: {error}"))?;
        Ok(Self { finder, row_of, rows })
    }

    /// What a text says, if it says anything we know.
    pub(super) fn canonical(&self, text: &str) -> Option<&str> {
        let whole_word = |start: usize, end: usize| {
            let is_word = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
            let bytes = text.as_bytes();
            !is_word(start.checked_sub(1).and_then(|before| bytes.get(before))) && !is_word(bytes.get(end))
        };
        let row = self
            .finder
            .find_overlapping_iter(text)
            .filter(|found| whole_word(found.start(), found.end()))
            .map(|found| self.row_of[found.pattern().as_usize()])
            .min()?;
        Some(&self.rows[row].1)
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = (&[String], &str)> {
        self.rows.iter().map(|(any, canonical)| (any.as_slice(), canonical.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        let prefixes = Prefixes::new(vec![
            ("NETWORK_".to_owned(), Category::Internal),
            ("NETWORK_RATE_LIMIT_".to_owned(), Category::RateLimit),
            ("NOT_FOUND_".to_owned(), Category::NotFound),
        ]);
        assert_eq!(prefixes.category("NETWORK_RATE_LIMIT_HIT"), Some(Category::RateLimit));
        assert_eq!(prefixes.category("NETWORK_DOWN"), Some(Category::Internal));
        assert_eq!(prefixes.category("NOT_FOUND"), Some(Category::NotFound));
        assert_eq!(prefixes.category("network_down"), None, "codes are never upper-cased");
    }

    #[test]
    fn the_first_row_wins_and_words_are_whole() {
        let row = |any: &[&str], canonical: &str| {
            (any.iter().map(|&phrase| phrase.to_owned()).collect(), canonical.to_owned())
        };
        let phrases = Phrases::new(vec![
            row(&["timeout"], "A"),
            row(&["not found", "no such"], "B"),
            row(&["invalid"], "C"),
        ])
        .expect("phrases");
        assert_eq!(phrases.canonical("Invalid: not found after TIMEOUT"), Some("A"));
        assert_eq!(phrases.canonical("Invalid name, no such thing"), Some("B"));
        assert_eq!(phrases.canonical("invalidated"), None);
        assert_eq!(phrases.canonical(""), None);
    }
}
