//! Counts of events by category, in the order of the closed list.
//!
//! They are serialized as an object that leaves out zeros. Parsing accepts responses that are older than this count,
//! or that name a category which this version does not know.

use classifier::Category;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// The number of events of each category.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CategoryCounts([u64; Category::ALL.len()]);

impl CategoryCounts {
    /// Adds events of a category.
    pub fn add(&mut self, category: Category, events: u64) {
        self.0[category as usize] += events;
    }

    /// Adds another count to this one.
    pub fn add_all(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    /// Returns the categories that have events, in the order of the list.
    pub fn iter(&self) -> impl Iterator<Item = (Category, u64)> {
        Category::ALL.iter().copied().zip(self.0).filter(|(_, events)| *events > 0)
    }

    /// Reports whether there are no events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|events| *events == 0)
    }
}

impl Serialize for CategoryCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(category, events)| (category.as_str(), events)))
    }
}

impl<'de> Deserialize<'de> for CategoryCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(CategoryVisitor)
    }
}

/// Parses the object. An unknown category counts as [`Category::Unknown`], so that the sum stays correct.
struct CategoryVisitor;

impl<'de> Visitor<'de> for CategoryVisitor {
    type Value = CategoryCounts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of categories and how many events each has")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<CategoryCounts, A::Error> {
        let mut counts = CategoryCounts::default();
        while let Some((word, events)) = map.next_entry::<String, u64>()? {
            counts.add(Category::from_name(&word).unwrap_or(Category::Unknown), events);
        }
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_category_has_its_own_place() {
        for (index, category) in Category::ALL.iter().enumerate() {
            assert_eq!(*category as usize, index);
        }
    }

    #[test]
    fn only_what_is_there_is_written_and_it_comes_back() {
        let mut counts = CategoryCounts::default();
        assert!(counts.is_empty());
        assert_eq!(serde_json::to_string(&counts).unwrap(), "{}");
        counts.add(Category::RateLimit, 12);
        counts.add(Category::Validation, 1);
        let text = serde_json::to_string(&counts).unwrap();
        assert_eq!(text, r#"{"VALIDATION":1,"RATE_LIMIT":12}"#);
        assert_eq!(serde_json::from_str::<CategoryCounts>(&text).unwrap(), counts);
    }

    #[test]
    fn a_category_of_another_version_is_not_lost() {
        let counts: CategoryCounts = serde_json::from_str(r#"{"WEATHER":3,"UNKNOWN":1,"TOKEN":2}"#).unwrap();
        assert_eq!(counts.iter().collect::<Vec<_>>(), [(Category::Token, 2), (Category::Unknown, 4)]);
    }
}
