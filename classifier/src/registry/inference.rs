//! Rules for failures without an entry: the category by the prefix of the code, the canonical code by the HTTP status,
//! and the party at fault.

use crate::category::Category;
use crate::fault::Fault;
use std::ops::RangeInclusive;

/// Prefixes of text codes. The longest one wins.
#[derive(Debug, Clone)]
pub(super) struct Prefixes(Vec<(String, Category)>);

impl Prefixes {
    pub(super) fn new(mut rows: Vec<(String, Category)>) -> Self {
        rows.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Self(rows)
    }

    /// Returns the category of a code by its longest prefix. A bare `NOT_FOUND` counts as `NOT_FOUND_`.
    pub(super) fn category(&self, code: &str) -> Option<Category> {
        let fits = |prefix: &str| code.starts_with(prefix) || prefix.strip_suffix('_') == Some(code);
        self.0.iter().find(|(prefix, _)| fits(prefix)).map(|&(_, category)| category)
    }
}

/// HTTP statuses and their canonical codes. Single statuses come before hundreds.
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

/// Prefixes of canonical codes and the party at fault for these codes. The longest one wins.
#[derive(Debug, Clone)]
pub(super) struct Faults(Vec<(String, Fault)>);

impl Faults {
    pub(super) fn new(mut rows: Vec<(String, Fault)>) -> Self {
        rows.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Self(rows)
    }

    pub(super) fn find(&self, canonical: &str) -> Option<Fault> {
        self.0.iter().find(|(prefix, _)| canonical.starts_with(prefix.as_str())).map(|&(_, fault)| fault)
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
    fn the_longest_prefix_says_whose_fault_it_is() {
        let faults = Faults::new(vec![
            ("INTERNAL".to_owned(), Fault::Server),
            ("INTERNAL_UPSTREAM".to_owned(), Fault::Upstream),
        ]);
        assert_eq!(faults.find("INTERNAL_UPSTREAM_FAILURE"), Some(Fault::Upstream));
        assert_eq!(faults.find("INTERNAL_ERROR"), Some(Fault::Server));
        assert_eq!(faults.find("UNKNOWN_ERROR"), None);
    }
}
