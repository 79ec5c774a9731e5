//! `GET /api/v1/schema`: tables, columns, functions and the cookbook, for SQL editors.

use super::request::{ApiRequest, Problem, Row, text};
use super::shape::{Shape, TEXTS};
use super::statement::Statement;
use crate::{functions, tables};
use datafusion::logical_expr::ScalarUDF;
use serde_json::{Value, json};

pub(super) const SHAPE: Shape = Shape::Object(&[&[
    (
        "tables",
        Shape::List(&Shape::Object(&[&[
            ("name", Shape::Text),
            ("about", Shape::Text),
            (
                "columns",
                Shape::List(&Shape::Object(&[&[
                    ("name", Shape::Text),
                    ("type", Shape::Text),
                    ("about", Shape::Text),
                ]])),
            ),
        ]])),
    ),
    ("functions", Shape::List(&Shape::Object(&[&[("name", Shape::Text), ("about", Shape::Text)]]))),
    (
        "cookbook",
        Shape::List(&Shape::Object(&[&[
            ("section", Shape::Text),
            ("title", Shape::Text),
            ("about", Shape::Text),
            ("sql", Shape::Text),
        ]])),
    ),
    ("formats", TEXTS),
]]);

/// The documentation page that contains the queries of the cookbook.
const PAGE: &str = include_str!("../../../../docs/sql.md");

pub(super) async fn respond(request: ApiRequest) -> Result<Value, Problem> {
    let columns = Statement::build(|_| {
        "SELECT table_name, column_name, data_type, about FROM columns ORDER BY table_name, position"
            .to_owned()
    });
    let [columns] = request.rows([columns]).await?;
    let tables: Vec<Value> = tables::descriptions()
        .map(|(name, about)| {
            let of_table = columns.iter().filter(|row| text(row, "table_name") == Some(name));
            json!({"name": name, "about": about, "columns": of_table.map(column).collect::<Vec<_>>()})
        })
        .collect();
    let functions: Vec<Value> = functions::own(&request.api.rules).iter().map(function).collect();
    Ok(json!({
        "tables": tables,
        "functions": functions,
        "cookbook": cookbook(PAGE),
        "formats": crate::serve::http::formats(),
    }))
}

fn column(row: &Row) -> Value {
    let of = |name: &str| text(row, name).unwrap_or_default();
    json!({"name": of("column_name"), "type": of("data_type"), "about": of("about")})
}

fn function(function: &ScalarUDF) -> Value {
    let about = function.documentation().map_or("", |documentation| documentation.description.as_str());
    json!({"name": function.name(), "about": about})
}

/// Returns the queries of a page, each with its section, its heading and the text before it.
fn cookbook(page: &str) -> Vec<Value> {
    let (mut section, mut title, mut about) = ("", "", Vec::new());
    let mut queries = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("### ") {
            (title, about) = (heading, Vec::new());
        } else if let Some(heading) = line.strip_prefix("## ") {
            (section, title, about) = (heading, "", Vec::new());
        } else if line == "```sql" {
            let sql: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            queries.push(json!({
                "section": section, "title": title, "about": about.join(" "), "sql": sql.join("\n"),
            }));
        } else if line.starts_with("```") {
            lines.by_ref().take_while(|line| *line != "```").for_each(drop);
        } else if !line.is_empty() {
            about.push(line);
        }
    }
    queries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_of_the_page_has_a_place() {
        let queries = cookbook(PAGE);
        assert_eq!(queries.len(), PAGE.lines().filter(|line| *line == "```sql").count());
        for query in &queries {
            for name in ["section", "title", "about", "sql"] {
                assert!(query[name].as_str().is_some_and(|text| !text.is_empty()), "{name} of {query}");
            }
        }
    }
}
