//! Looks up a code by itself, without a message, details or a status, for people who want to know what it means.

use super::{LookupInput, resolve};
use crate::category::Category;
use crate::code::Code;
use crate::dialect::Dialect;
use crate::registry::{Meaning, Registry};
use std::borrow::Cow;

/// The meaning of a code by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupResult<'r> {
    /// The cross-dialect code.
    pub canonical: Cow<'r, str>,
    /// The meaning of the canonical code.
    pub meaning: Meaning,
    /// True if something supports the meaning: an entry, a range, a prefix or the words of the code.
    pub is_known: bool,
}

impl Registry {
    /// Returns the meaning of a code, in one dialect or in any, as far as the code alone tells. A number is passed as
    /// its digits. A payload contains more information, so the event of a failure may have another meaning.
    #[must_use]
    pub fn look_up(&self, dialect: Option<Dialect>, code: &str) -> LookupResult<'_> {
        let input = LookupInput {
            declared_dialect: dialect.filter(|dialect| Dialect::REGISTERED.contains(dialect)),
            ..LookupInput::new(dialect.unwrap_or(Dialect::Unknown), Code::from_text(code.trim()))
        };
        let classification = resolve(self, &input);
        let is_entry = classification.entry.is_some();
        let is_known = is_entry || classification.meaning.category != Category::Unknown;
        LookupResult { canonical: classification.canonical, meaning: classification.meaning, is_known }
    }

    /// Returns the category of a code of any dialect, or of a canonical code. If dialects disagree about a number, it
    /// has a category only if all of them mean the same one.
    #[must_use]
    pub fn category_of(&self, code: &str) -> Category {
        let result = self.look_up(None, code);
        if result.is_known {
            return result.meaning.category;
        }
        let mut categories = self.find(code.trim()).map(|entry| entry.meaning.category);
        let first = categories.next().unwrap_or(Category::Unknown);
        if categories.all(|category| category == first) { first } else { Category::Unknown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(dialect: Option<Dialect>, code: &str) -> Option<String> {
        let registry = Registry::builtin().expect("the registry");
        let result = registry.look_up(dialect, code);
        result.is_known.then(|| result.canonical.into_owned())
    }

    #[test]
    fn a_number_is_its_dialects() {
        assert_eq!(canonical(Some(Dialect::Erlmcp), "-32001").as_deref(), Some("NOT_FOUND_RESOURCE"));
        assert_eq!(canonical(None, "-32601"), canonical(Some(Dialect::Jsonrpc), "-32601.0"));
        assert_eq!(canonical(None, "-32001"), None, "two dialects disagree");
    }

    #[test]
    fn an_unregistered_code_is_known_by_its_beginning_or_its_words() {
        assert_eq!(canonical(None, "VALIDATION_NEW_THING").as_deref(), Some("VALIDATION_NEW_THING"));
        assert_eq!(canonical(Some(Dialect::AgentSkills), "WEIRD_THING"), None);
        assert_eq!(canonical(None, ""), None);
    }

    #[test]
    fn the_category_of_every_entry_is_found_or_disputed() {
        let registry = Registry::builtin().expect("the registry");
        for entry in registry.entries().iter().filter(|entry| !entry.code.contains('/')) {
            let own = registry.look_up(Some(entry.dialect), &entry.code);
            assert_eq!(own.canonical, entry.canonical, "{} of {}", entry.code, entry.dialect);
            assert_eq!(registry.category_of(&entry.canonical), entry.meaning.category, "{}", entry.canonical);
        }
    }
}
