//! `faultline codes`: the whole registry in every format, and one code explained.

use super::support::{example_registry, faultline};
use classifier::{Dialect, Registry};
use serde_json::Value;

const HEADER: &str =
    "dialect,code,name,canonical,category,severity,retryable,recovery,http_status,description";

/// Parses CSV according to RFC 4180.
fn records(csv: &str) -> Vec<Vec<String>> {
    let mut records = vec![vec![String::new()]];
    let mut quoted = false;
    let mut characters = csv.chars().peekable();
    while let Some(c) = characters.next() {
        let record = records.last_mut().unwrap();
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                record.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(String::new()),
            '\n' if !quoted => records.push(vec![String::new()]),
            c => record.last_mut().unwrap().push(c),
        }
    }
    assert_eq!(records.pop(), Some(vec![String::new()]), "the last line ends with a newline");
    records
}

#[test]
fn csv_has_every_entry_of_the_registry() {
    let run = faultline(&["codes", "--format", "csv"]).ends_with(0);
    assert_eq!(run.out.lines().next(), Some(HEADER));
    let registry = Registry::builtin().unwrap();
    let records = records(&run.out);
    assert_eq!(records.len() - 1, registry.entries().len());
    for (record, entry) in records[1..].iter().zip(registry.entries()) {
        let meaning = entry.meaning;
        let expected = [
            entry.dialect.as_str(),
            &entry.code,
            &entry.name,
            &entry.canonical,
            meaning.category.as_str(),
            meaning.severity.as_str(),
            meaning.retryable.map_or("", |retryable| if retryable { "true" } else { "false" }),
            meaning.recovery.as_str(),
            &entry.http_status.map(|status| status.to_string()).unwrap_or_default(),
            &entry.description,
        ];
        assert_eq!(record, &expected);
    }
    assert!(run.out.contains('"'), "some description needs quotes, or the quoting is not tested");
}

#[test]
fn json_is_a_list_of_the_same() {
    let run = faultline(&["codes", "--format", "json"]).ends_with(0);
    let list: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    let registry = Registry::builtin().unwrap();
    assert_eq!(list.len(), registry.entries().len());
    for (object, entry) in list.iter().zip(registry.entries()) {
        assert_eq!(object["dialect"], entry.dialect.as_str());
        assert_eq!(object["code"], entry.code.as_str());
        assert_eq!(object["retryable"], serde_json::json!(entry.meaning.retryable));
        assert_eq!(object["details"].as_array().unwrap().len(), entry.details.len());
    }
}

#[test]
fn a_table_has_one_plain_line_for_each_entry() {
    let run = faultline(&["codes"]).ends_with(0);
    assert_eq!(run.out.lines().count(), 1 + Registry::builtin().unwrap().entries().len());
    assert!(run.out.is_ascii(), "no lines are drawn when piped");
    assert!(run.out.lines().all(|line| !line.starts_with(' ') && !line.ends_with(' ')));
}

#[test]
fn a_number_is_shown_in_every_dialect_side_by_side() {
    let run = faultline(&["codes", "-32002"]).ends_with(0);
    let row = |label: &str| {
        let line = run.out.lines().find(|line| line.starts_with(label)).expect(&run.out);
        line[label.len()..].split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect::<Vec<_>>()
    };
    assert_eq!(run.out.split_whitespace().take(2).collect::<Vec<_>>(), ["erlmcp", "jsonrpc"]);
    assert_eq!(row("code"), ["-32002", "-32002"]);
    assert_eq!(row("name"), ["TOOL_NOT_FOUND", "Resource not found"]);
    assert_eq!(row("canonical"), ["NOT_FOUND_OPERATION", "NOT_FOUND_RESOURCE"]);
    for label in
        ["category", "severity", "retryable", "recovery", "http status", "message", "details", "runbook"]
    {
        assert_eq!(row(label).len(), 2, "{label}");
    }
    assert!(!row("description").is_empty());
    assert_eq!(faultline(&["codes", "-32002.0"]).out, run.out, "as classification reads numbers");

    let run = faultline(&["codes", "-32002", "--format", "json"]).ends_with(0);
    let list: Vec<Value> = serde_json::from_str(&run.out).unwrap();
    assert_eq!(list.iter().map(|object| &object["dialect"]).collect::<Vec<_>>(), ["erlmcp", "jsonrpc"]);
}

#[test]
fn names_are_found_however_they_are_written() {
    let dialects = |name: &str| {
        let run = faultline(&["codes", name, "--format", "csv"]).ends_with(0);
        records(&run.out)[1..].iter().map(|record| format!("{} {}", record[0], record[1])).collect::<Vec<_>>()
    };
    assert_eq!(dialects("TOOL_NOT_FOUND"), ["erlmcp -32002"]);
    assert_eq!(dialects("tool not found"), ["erlmcp -32002"]);
    let canonical = dialects("RATE_LIMIT_EXCEEDED");
    for code in ["mcp-aql RATE_LIMIT_EXCEEDED", "mcp-reference 3001", "agent-skills rate_limited"] {
        assert!(canonical.iter().any(|found| found == code), "{code} in {canonical:?}");
    }
}

#[test]
fn options_narrow_the_list() {
    let registry = Registry::builtin().unwrap();
    let count = |arguments: &[&str]| {
        let run = faultline(&[&["codes", "--format", "csv"], arguments].concat()).ends_with(0);
        records(&run.out).len() - 1
    };
    let of = |dialect: Dialect| registry.entries().iter().filter(|entry| entry.dialect == dialect).count();
    assert_eq!(count(&["--dialect", "erlmcp"]), of(Dialect::Erlmcp));
    let tokens = registry.entries().iter().filter(|entry| entry.meaning.category.as_str() == "TOKEN").count();
    assert_eq!(count(&["--category", "token"]), tokens);
    assert_eq!(count(&["--dialect", "operator"]), 0);
    let run = faultline(&["codes", "--dialect", "mcp-aql", "-32002"]).ends_with(1);
    assert!(run.err.contains("but in: erlmcp (NOT_FOUND), jsonrpc (NOT_FOUND)"), "{}", run.err);
}

#[test]
fn an_operators_entries_are_listed_too() {
    let example = example_registry();
    let run = faultline(&["codes", "--registry", &example, "--dialect", "operator", "--format", "csv"])
        .ends_with(0);
    let records = records(&run.out);
    let found = records[1..].iter().map(|record| (&*record[0], &*record[1], &*record[3], &*record[4]));
    assert_eq!(
        found.collect::<Vec<_>>(),
        [
            ("operator", "GITHUB_ABUSE_DETECTED", "RATE_LIMIT_GITHUB_ABUSE_DETECTED", "RATE_LIMIT"),
            ("operator", "NOT_FOUND_REPOSITORY", "NOT_FOUND_REPOSITORY", "NOT_FOUND"),
            ("operator", "RATE_LIMIT_EXCEEDED", "RATE_LIMIT_EXCEEDED", "RATE_LIMIT"),
            ("operator", "ORDER_NOT_FOUND", "NOT_FOUND_ORDER", "NOT_FOUND"),
        ]
    );
    let run = faultline(&["codes", "--registry", &example, "GITHUB_ABUSE_DETECTED"]).ends_with(0);
    assert!(run.out.contains("HTTP 403 when its condition holds"), "{}", run.out);
}

#[test]
fn a_code_without_an_entry_is_placed_and_ends_with_1() {
    for (code, said) in [
        ("-32041", "It would be taken for VALIDATION in erlmcp, by its range Prompt (-32050 to -32041)"),
        ("-32041", "It would be UNKNOWN in jsonrpc, by its range Server error (-32099 to -32000)"),
        ("-32041", "Near it: -32040 "),
        ("2999", "It would be taken for VALIDATION in mcp-reference"),
        ("123456", "It would be UNKNOWN, unless"),
        ("RATE_LIMIT_OF_MY_OWN", "It would be taken for RATE_LIMIT"),
        ("NONSENSE", "It would be UNKNOWN, unless"),
        ("TOKEN_EXPIERD", "Near it: TOKEN_EXPIRED"),
        ("RATE_LIMIT", "faultline codes --category RATE_LIMIT"),
        ("TOKEN_ISSUED", "It is an audit event"),
    ] {
        let run = faultline(&["codes", code]).ends_with(1);
        assert!(run.err.contains(&format!("no dialect has an entry for '{code}'")), "{}", run.err);
        assert!(run.err.contains(said), "{code}: {}", run.err);
        assert_eq!(run.out, "", "{code}");
    }
    assert_eq!(faultline(&["codes", "NONSENSE", "--format", "json"]).ends_with(1).out, "[]\n");
}

#[test]
fn a_mistyped_option_is_not_taken_for_a_code() {
    let run = faultline(&["codes", "--fromat", "csv"]).ends_with(2);
    assert!(run.err.contains("--format"), "{}", run.err);
}
