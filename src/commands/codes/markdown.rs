//! The whole registry as a page of documentation, `docs/codes.md`; a test fails when that file is not up to date.

use classifier::Registry;
use classifier::registry::{DialectInfo, Entry, EntryOrigin};
use std::fmt::Write;

const HEADER: &str = "\
# Codes

Made from the registry by `faultline codes --format markdown`; do not edit. To add a code, add an entry to a
file in `classifier/registry/` and run `tests/update-expected`.

A code that has an entry means what its entry says. One that has none is placed by, in this order: a category
that the payload names, the range or the longest prefix it falls under, an HTTP status, the words of its
message. The last two are guesses, and their events are marked `inferred`. Strong words beat a generic code, and a number
that one project registers counts only where something else supports it.
";

/// Returns the page for the built-in registry.
pub(super) fn write(registry: &Registry) -> String {
    let mut page = String::from(HEADER);
    categories(&mut page, registry);
    for dialect in registry.dialects() {
        section(&mut page, registry, dialect);
    }
    inference(&mut page, registry);
    page
}

/// Appends one row of a table.
fn row(page: &mut String, cells: &[&str]) {
    page.push('|');
    for cell in cells {
        // A bar in the text would end the cell.
        let cell = cell.replace('|', "\\|");
        let _ = if cell.is_empty() { write!(page, " |") } else { write!(page, " {cell} |") };
    }
    page.push('\n');
}

fn heading(page: &mut String, cells: &[&str]) {
    row(page, cells);
    row(page, &vec!["---"; cells.len()]);
}

fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{text}`") }
}

fn yes_or_no(value: Option<bool>) -> &'static str {
    value.map_or("payload decides", |value| if value { "yes" } else { "no" })
}

fn categories(page: &mut String, registry: &Registry) {
    page.push_str(
        "\n## Categories\n\nThese are the defaults for codes whose entries do not say otherwise.\n\n",
    );
    heading(page, &["Category", "Meaning", "Severity", "Retry helps", "Recovery", "Runbook"]);
    for info in registry.categories() {
        let meaning = info.meaning;
        row(
            page,
            &[
                &quoted(meaning.category.as_str()),
                &info.description,
                meaning.severity.as_str(),
                yes_or_no(meaning.retryable),
                meaning.recovery.as_str(),
                &quoted(&info.runbook),
            ],
        );
    }
}

fn section(page: &mut String, registry: &Registry, dialect: &DialectInfo) {
    let DialectInfo { dialect, title, description } = dialect;
    let _ = write!(page, "\n## {dialect}: {title}\n\n{description}\n\n");
    heading(
        page,
        &[
            "Code",
            "Canonical",
            "When it is sent",
            "Message and details",
            "Severity",
            "Retry helps",
            "Recovery",
            "HTTP",
        ],
    );
    for entry in registry.entries().iter().filter(|entry| entry.dialect == *dialect) {
        code(page, entry);
    }
    let ranges: Vec<_> = registry.ranges().iter().filter(|range| range.dialect == *dialect).collect();
    if ranges.is_empty() {
        return;
    }
    page.push_str("\nNumbers without an entry:\n\n");
    heading(page, &["From", "To", "Name", "Category"]);
    for range in ranges {
        let (low, high) = (range.numbers.start().to_string(), range.numbers.end().to_string());
        row(page, &[&low, &high, &range.name, &quoted(range.category.as_str())]);
    }
}

fn code(page: &mut String, entry: &Entry) {
    let named = entry.name != entry.code && !entry.code.contains('/');
    let name = if named { format!("`{}` {}", entry.code, entry.name) } else { quoted(&entry.code) };
    let seen = if entry.origin == EntryOrigin::Field { " (seen in the field)" } else { "" };
    let message = entry.message.as_ref().map(|message| quoted(message.text())).unwrap_or_default();
    let details: Vec<String> = entry
        .details
        .iter()
        .map(|field| format!("`{}`{}", field.name, if field.optional { "?" } else { "" }))
        .collect();
    let status = entry.http_status.map(|status| status.to_string()).unwrap_or_default();
    row(
        page,
        &[
            &name,
            &quoted(&entry.canonical),
            &format!("{}{seen}", entry.description),
            [message, details.join(", ")].join(" ").trim(),
            entry.meaning.severity.as_str(),
            yes_or_no(entry.meaning.retryable),
            entry.meaning.recovery.as_str(),
            &status,
        ],
    );
}

fn inference(page: &mut String, registry: &Registry) {
    page.push_str("\n## Statuses\n\nThese classify a failure whose code is unknown.\n\n");
    heading(page, &["Status", "Canonical"]);
    for (statuses, canonical) in registry.statuses() {
        let (first, last) = (statuses.start(), statuses.end());
        let text = if first == last { first.to_string() } else { format!("{first} to {last}") };
        row(page, &[&text, &quoted(canonical)]);
    }
    page.push_str(
        "\n## Words\n\nThe words of a message classify a failure without a usable code or status. Every wording that is \
         found adds its weight, and the category with the most weight wins. All wordings are in \
         `classifier/registry/evidence/`; these are the first of each row.\n\n",
    );
    heading(page, &["The message contains", "Canonical"]);
    for (phrases, canonical) in registry.phrases() {
        row(page, &[&first_phrases(phrases), &quoted(canonical)]);
    }
    page.push_str("\n## Audit events\n\nThese report steps of a confirmation; they are no failures.\n\n");
    heading(page, &["Event", "Meaning"]);
    for audit in registry.audits() {
        row(page, &[&quoted(&audit.event), &audit.description]);
    }
}

/// Returns the first phrases of a row, and the number of further ones.
fn first_phrases(phrases: &[String]) -> String {
    const SHOWN: usize = 6;
    let shown = phrases.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    match phrases.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
