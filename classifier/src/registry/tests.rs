//! Validates the data files, and valid and invalid operators' files.

use super::*;
use crate::category::{Recovery, Severity};

fn builtin() -> Registry {
    Registry::builtin().expect("the embedded registry")
}

#[test]
fn every_dialect_has_its_codes() {
    let registry = builtin();
    let count = |dialect| registry.entries().iter().filter(|entry| entry.dialect == dialect).count();
    assert_eq!(Dialect::REGISTERED.map(count), [54, 8, 17, 132, 17]);
    assert_eq!(registry.dialects().len(), Dialect::REGISTERED.len());
    assert_eq!(registry.categories().len(), Category::ALL.len());
    assert_eq!(registry.ranges().len(), 21);
    assert_eq!(registry.audits().len(), 4);
}

#[test]
fn every_entry_is_complete() {
    for entry in builtin().entries() {
        let code = &entry.code;
        assert!(entry.description.ends_with('.') && entry.description.len() <= 110, "{code}");
        assert!(!entry.name.is_empty(), "{code}");
        let kebab = |c: char| c.is_ascii_lowercase() || c == '-';
        assert!(!entry.runbook.is_empty() && entry.runbook.chars().all(kebab), "{code}: {}", entry.runbook);
        let capitals = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        assert!(entry.canonical.chars().all(capitals), "{code}: {}", entry.canonical);
        assert!(!entry.words.is_empty(), "{code} has no words to be recognised by");
    }
}

#[test]
fn names_of_templates_and_inference_lead_somewhere() {
    let registry = builtin();
    let known = |canonical: &str| registry.entries().iter().any(|entry| entry.canonical == canonical);
    for (_, canonical) in registry.statuses() {
        assert!(known(canonical), "{canonical}");
    }
    for (_, canonical) in registry.phrases() {
        assert!(known(canonical), "{canonical}");
    }
    for correction in registry.entries().iter().flat_map(|entry| &entry.corrections) {
        assert!(known(&correction.canonical), "{}", correction.canonical);
    }
}

#[test]
fn meanings_follow_the_category_unless_an_entry_says_otherwise() {
    let registry = builtin();
    let meaning = |dialect, code: &str| registry.entry(dialect, code).expect(code).meaning;
    let pause = meaning(Dialect::McpAql, "RATE_LIMIT_QUOTA_PAUSE");
    assert_eq!((pause.retryable, pause.recovery), (Some(false), Recovery::Confirm));
    let confirmation = meaning(Dialect::McpAql, "CONFIRMATION_REQUIRED");
    assert_eq!(confirmation.category, Category::Permission);
    let warning = meaning(Dialect::McpAql, "RATE_LIMIT_QUOTA_WARNING");
    assert_eq!((warning.severity, warning.retryable), (Severity::Warning, None));
    assert_eq!(meaning(Dialect::McpReference, "3001").category, Category::RateLimit);
    assert_eq!(meaning(Dialect::Erlmcp, "-32054").category, Category::Permission);
    assert_eq!(registry.meaning("INTERNAL_NEVER_HEARD_OF").category, Category::Internal);
}

#[test]
fn the_narrowest_range_counts() {
    let registry = builtin();
    let range =
        |dialect, number| registry.range(dialect, number).map(|range| (range.dialect, range.category));
    assert_eq!(range(None, 1050), Some((Dialect::Erlmcp, Category::Permission)));
    assert_eq!(range(Some(Dialect::McpReference), 1050), Some((Dialect::McpReference, Category::Protocol)));
    assert_eq!(range(None, -32650), Some((Dialect::Jsonrpc, Category::Protocol)));
    assert_eq!(range(None, 9), None);
}

#[test]
fn a_good_operators_file_is_taken() {
    let file = r#"
[[code]]
code = 4711
category = "CONFLICT"
description = "The order is locked."
message_template = "Order '{order}' is locked"
severity = "warning"
retryable = true
recovery = "back_off"
service = "orders"
dialect = "mcp-reference"

[profiles.services]
orders = "mcp-reference"
"edge-*" = "jsonrpc"

[profiles.sources]
"erl.log" = "erlmcp"

[fields]
service = ["svc", "component"]
"#;
    let registry = Registry::with_operator_file("own.toml", file).expect("a good file");
    let own = registry.operator();
    let entry = &own.entries[0].entry;
    assert_eq!((entry.code.as_str(), entry.canonical.as_str()), ("4711", "CONFLICT_4711"));
    assert_eq!((entry.meaning.severity, entry.meaning.retryable), (Severity::Warning, Some(true)));
    assert_eq!((own.entries[0].line, entry.origin), (2, EntryOrigin::Operator));
    assert_eq!(own.profile(Some("orders"), None), Some(Dialect::McpReference));
    assert_eq!(own.profile(Some("edge-7"), Some("erl.log")), Some(Dialect::Jsonrpc));
    assert_eq!(own.profile(None, Some("erl.log")), Some(Dialect::Erlmcp));
    assert_eq!(own.profile(Some("other"), None), None);
    assert_eq!(own.fields.len(), 2);
}

/// Checks that a file is rejected on a line for a reason.
#[track_caller]
fn refused(file: &str, line: usize, reason: &str) {
    let error = Registry::with_operator_file("own.toml", file).expect_err(file);
    assert!(error.reason.contains(reason), "{error}");
    assert_eq!((error.file.as_str(), error.line), ("own.toml", line), "{error}");
}

#[test]
fn a_bad_operators_file_is_refused_with_line_and_reason() {
    refused("[[code]\n", 1, "");
    refused("\n\n[[codes]]\ncode = 1\n", 3, "unknown field `codes`");
    refused("[[code]]\ncategory = \"INTERNAL\"\n", 1, "missing field `code`");
    refused("[[code]]\ncode = \"X\"\ncategry = \"INTERNAL\"\n", 3, "unknown field `categry`");
    refused("[[code]]\ncode = \"X\"\ncategory = \"RATE_LIMT\"\n", 3, "did you mean 'RATE_LIMIT'");
    refused("[[code]]\ncode = \"X\"\n", 2, "needs a category");
    refused("[[code]]\ncode = \"X\"\ncanonical = \"NOPE_X\"\n", 2, "starts with no registered prefix");
    refused("[[code]]\ncode = \"\"\ncategory = \"INTERNAL\"\n", 2, "empty");
    refused("[[code]]\ncode = \"X\"\ncategory = \"INTERNAL\"\nseverity = \"bad\"\n", 2, "unknown severity");
    refused(
        "[[code]]\ncode = \"X\"\ncategory = \"INTERNAL\"\nretryable = \"maybe\"\n",
        2,
        "retryable is true",
    );
    refused(
        "[[code]]\ncode = \"X\"\ncategory = \"INTERNAL\"\n\ncondition = \"x ~ 1\"\n",
        5,
        "expected one of",
    );
    refused(
        "[[code]]\ncode = \"X\"\ncategory = \"INTERNAL\"\nmaps_from_http = [42]\n",
        4,
        "not an HTTP status",
    );
    refused("[profiles.services]\na = \"erlmpc\"\n", 2, "did you mean 'erlmcp'");
    refused("[fields]\nservce = [\"x\"]\n", 2, "did you mean 'service'");
    refused("[redact]\npatterns = [\"(\"]\n", 2, "not a regular expression");
    refused("[redact]\noff = [\"mail\"]\n", 2, "unknown redaction rule");
}

#[test]
fn a_duplicate_names_what_it_collides_with() {
    let twice =
        "[[code]]\ncode = \"X\"\ncategory = \"INTERNAL\"\n\n[[code]]\ncode = \"X\"\ncategory = \"TOKEN\"\n";
    refused(twice, 5, "collides with the same code on line 1");
    refused("[[code]]\ncode = \"TOKEN_EXPIRED\"\n", 1, "collides with the entry that ships for mcp-aql");
    refused("[[code]]\ncode = \"TOKEN_EXPIRED\"\ncategory = \"INTERNAL\"\nmaps_from = [1]\n", 2, "is TOKEN");
    let mapped = |code: &str| {
        format!("[[code]]\ncode = \"{code}\"\ncategory = \"INTERNAL\"\nmaps_from_http = [418]\n")
    };
    refused(&(mapped("A") + &mapped("B")), 5, "status 418 is already mapped to 'A' on line 1");
    let from =
        |code: &str| format!("[[code]]\ncode = \"{code}\"\ncategory = \"INTERNAL\"\nmaps_from = [\"Z\"]\n");
    refused(&(from("A") + &from("B")), 5, "code 'Z' is already mapped to 'A' on line 1");
}
