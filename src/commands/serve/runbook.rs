//! `/runbook` serves the instructions for alerts as a page; alerts link to its headings.

use axum::Router;
use axum::http::{HeaderName, header};
use axum::response::Html;
use axum::routing::get;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

const TEXT: &str = include_str!("../../../dashboards/RUNBOOK.md");

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;\
color:#1c2024;background:#fff}h2{margin-top:3rem;border-top:1px solid #d0d4da;padding-top:1rem}\
:target{background:#fff3c4}pre{background:#f4f5f7;padding:.8rem;overflow-x:auto}code{font-size:.92em}\
table{border-collapse:collapse}td,th{border:1px solid #d0d4da;padding:.2rem .6rem;text-align:left}\
@media(prefers-color-scheme:dark){body{color:#e4e6ea;background:#16181c}pre{background:#22252b}:target{background:#5a4a12}}";

/// Returns the route of the runbook.
pub(super) fn routes() -> Router {
    let page = page();
    let headers: [(HeaderName, &str); 1] = [(
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    )];
    Router::new().route("/runbook", get(async move || (headers, Html(page.clone()))))
}

fn page() -> String {
    let mut body = String::new();
    html::push_html(&mut body, with_anchors(Parser::new_ext(TEXT, Options::ENABLE_TABLES)).into_iter());
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Faultline runbook</title>\
         <meta name=\"viewport\" content=\"width=device-width\"><style>{STYLE}</style></head>\
         <body>\n{body}</body></html>\n"
    )
}

/// Gives each heading an anchor from its text in lower case, as other Markdown renderers do. The heading of an alert
/// also has an anchor with the alert's exact name, because dashboards link to that and cannot convert it to lower case.
fn with_anchors(parser: Parser<'static>) -> Vec<Event<'static>> {
    let mut events: Vec<_> = parser.collect();
    let mut heading = None;
    let mut alerts = Vec::new();
    for index in 0..events.len() {
        match &events[index] {
            Event::Start(Tag::Heading { .. }) => heading = Some((index, String::new())),
            Event::Text(text) | Event::Code(text) => {
                if let Some((_, name)) = &mut heading {
                    name.push_str(text);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                if let Some((start, name)) = heading.take()
                    && let Event::Start(Tag::Heading { id, .. }) = &mut events[start]
                {
                    *id = Some(CowStr::from(anchor(&name)));
                    alerts.extend(name.starts_with("Faultline").then_some((start, name)));
                }
            }
            _ => {}
        }
    }
    for (start, name) in alerts.into_iter().rev() {
        events.insert(start + 1, Event::InlineHtml(CowStr::from(format!("<a id=\"{name}\"></a>"))));
    }
    events
}

fn anchor(name: &str) -> String {
    let kept = name.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_can_be_linked_to() {
        assert_eq!(anchor("FaultlineQuotaExhausted"), "faultlinequotaexhausted");
        assert_eq!(anchor("How to `read` this"), "how-to-read-this");
        let heading = "<h2 id=\"faultlinequotaexhausted\"><a id=\"FaultlineQuotaExhausted\"></a>FaultlineQuotaExhausted</h2>";
        assert!(page().contains(heading));
    }
}
