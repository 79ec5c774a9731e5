//! `GET /api/v1/codes`: the registry, and which of its codes occurred in a range.

use super::failures::{Precision, failures};
use super::meaning;
use super::request::{ApiRequest, Problem, list};
use super::shape::{CATEGORY, NULLABLE_FLAG, NULLABLE_TEXT, RANGE, Shape, TEXTS};
use super::statement::{ERRORS, Statement};
use serde_json::{Value, json};

pub(super) const SHAPE: Shape = Shape::Object(&[&[
    RANGE,
    (
        "codes",
        Shape::List(&Shape::Object(&[
            meaning::MEMBERS,
            &[
                ("dialect", Shape::Text),
                ("code", Shape::Text),
                ("name", Shape::Text),
                ("canonical", Shape::Text),
                ("category", CATEGORY),
                ("required_details", Shape::Nullable(&TEXTS)),
                ("origin", Shape::Text),
            ],
        ])),
    ),
    (
        "seen",
        Shape::List(&Shape::Object(&[&[
            ("canonical", Shape::Text),
            ("category", CATEGORY),
            ("errors", Shape::Whole),
        ]])),
    ),
    (
        "categories",
        Shape::List(&Shape::Object(&[&[
            ("category", CATEGORY),
            ("description", Shape::Text),
            ("severity", Shape::Text),
            ("retryable", NULLABLE_FLAG),
            ("recovery", Shape::Text),
            ("runbook", NULLABLE_TEXT),
        ]])),
    ),
]]);

pub(super) async fn respond(request: ApiRequest) -> Result<Value, Problem> {
    let codes = Statement::build(|_| {
        "SELECT dialect, code, name, canonical, category, severity, retryable, recovery, http_status, description, \
         required_details, origin, runbook FROM codes ORDER BY dialect, code"
            .to_owned()
    });
    let seen = Statement::build(|binder| {
        let range = &request.range;
        let failures = failures(binder, range, &[(range.from, range.to)], "", Precision::Periods);
        format!(
            "SELECT canonical, category, {ERRORS} AS errors FROM {failures}
             GROUP BY canonical, category HAVING {ERRORS} > 0
             ORDER BY errors DESC, canonical, category LIMIT 10000"
        )
    });
    let [codes, seen] = request.rows([codes, seen]).await?;
    let categories: Vec<Value> = request
        .api
        .rules
        .registry()
        .categories()
        .iter()
        .map(|info| {
            json!({
                "category": info.meaning.category.as_str(),
                "description": info.description,
                "severity": info.meaning.severity.as_str(),
                "retryable": info.meaning.retryable,
                "recovery": info.meaning.recovery.as_str(),
                "runbook": info.runbook,
            })
        })
        .collect();
    Ok(json!({
        "range": request.range.json(), "codes": list(codes), "seen": list(seen), "categories": categories,
    }))
}
