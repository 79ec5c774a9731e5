//! The most common queries as views: one `.sql` file each.
//!
//! The first line of a file describes its rows. Then comes a description of each column that the view computes itself:
//!
//! ```sql
//! -- Every failure: events of kind error
//! -- share: The share of calls that failed
//! SELECT ...
//! ```

use crate::tables::columns::DATE_COLUMN_ABOUT;
use datafusion::catalog::{MemorySchemaProvider, SchemaProvider, view::ViewTable};
use datafusion::common::Result;
use datafusion::prelude::SessionContext;
use std::sync::Arc;
use store::Table;
use store::delta::layout::PARTITION;

/// A view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct View {
    /// The name of the view.
    pub name: &'static str,
    /// The description of its rows.
    pub about: &'static str,
    /// The text of the file.
    text: &'static str,
}

macro_rules! views {
    ($($name:literal),* $(,)?) => {
        [$(View::new($name, include_str!(concat!("views/", $name, ".sql")))),*]
    };
}

/// All views; a view can use those before it.
pub const ALL: &[View] = &views![
    "errors",
    "warnings",
    "error_counts",
    "error_groups",
    "calls",
    "error_rates",
    "quota_state",
    "trust_denials",
    "confirmations",
    "retry_loops",
    "conformance",
];

/// Returns the view with a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static View> {
    ALL.iter().find(|view| view.name == name)
}

impl View {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, about: first_comment(text), text }
    }

    /// Returns the description of a column: that of the view's file, or that of the stored column of the same name.
    #[must_use]
    pub fn about_column(&self, column: &str) -> Option<&'static str> {
        let comments = self.text.lines().map_while(|line| line.strip_prefix("-- ")).skip(1);
        let own = comments.filter_map(|line| line.split_once(": ")).find(|(name, _)| *name == column);
        let stored = [Table::Events, Table::EventCounts, Table::Traffic].into_iter().flat_map(Table::columns);
        let stored = stored.filter(|known| known.name == column).map(|known| known.about);
        let day = (column == PARTITION).then_some(DATE_COLUMN_ABOUT);
        own.map(|(_, about)| about).or_else(|| stored.into_iter().next()).or(day)
    }
}

/// Returns the first line of a file, without its dashes.
const fn first_comment(text: &'static str) -> &'static str {
    let (_, rest) = text.split_at(3);
    let mut end = 0;
    while end < rest.len() && rest.as_bytes()[end] != b'\n' {
        end += 1;
    }
    rest.split_at(end).0
}

/// Registers the views in the schema that has the tables.
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
