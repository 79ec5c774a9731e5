//! The questions that are asked most, as views: one `.sql` file each.
//!
//! A file opens with what its rows are, and then a sentence for each column that it makes itself:
//!
//! ```sql
//! -- Every failure: events of kind error
//! -- share: How much of the calls failed
//! SELECT ...
//! ```

use crate::tables::columns::ABOUT_THE_DAY;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, view::ViewTable};
use datafusion::common::Result;
use datafusion::prelude::SessionContext;
use std::sync::Arc;
use store::Table;
use store::lake::layout::PARTITION;

/// A view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// Its name.
    pub name: &'static str,
    /// What its rows are.
    pub about: &'static str,
    /// The whole file.
    text: &'static str,
}

macro_rules! views {
    ($($name:literal),* $(,)?) => {
        [$(View::new($name, include_str!(concat!("views/", $name, ".sql")))),*]
    };
}

/// All views; one may build on those before it.
pub const ALL: &[View] = &views![
    "errors",
    "warnings",
    "error_groups",
    "error_rates",
    "quota_state",
    "trust_denials",
    "confirmations",
    "retry_loops",
    "conformance",
];

/// The view of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static View> {
    ALL.iter().find(|view| view.name == name)
}

impl View {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, about: first_comment(text), text }
    }

    /// What a column holds: as its file says, or as the stored column of the same name.
    #[must_use]
    pub fn about_column(&self, column: &str) -> Option<&'static str> {
        let comments = self.text.lines().map_while(|line| line.strip_prefix("-- ")).skip(1);
        let own = comments.filter_map(|line| line.split_once(": ")).find(|(name, _)| *name == column);
        let stored = [Table::Events, Table::Traffic].into_iter().flat_map(Table::columns);
        let stored = stored.filter(|known| known.name == column).map(|known| known.about);
        let day = (column == PARTITION).then_some(ABOUT_THE_DAY);
        own.map(|(_, about)| about).or_else(|| stored.into_iter().next()).or(day)
    }
}

/// The first line of a file, without its dashes.
const fn first_comment(text: &'static str) -> &'static str {
    let (_, rest) = text.split_at(3);
    let mut end = 0;
    while end < rest.len() && rest.as_bytes()[end] != b'\n' {
        end += 1;
    }
    rest.split_at(end).0
}

/// Puts the views beside the tables.
pub(crate) async fn register(context: &SessionContext, schema: &MemorySchemaProvider) -> Result<()> {
    for view in ALL {
        let plan = context.state().create_logical_plan(view.text).await?;
        let table = ViewTable::new(plan, Some(view.text.to_owned()));
        schema.register_table(view.name.to_owned(), Arc::new(table))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_opens_with_what_its_rows_are() {
        for view in ALL {
            assert!(view.text.starts_with("-- "), "{}", view.name);
            assert!(view.about.len() > 10 && !view.about.ends_with('.'), "{}: {}", view.name, view.about);
        }
    }
}
