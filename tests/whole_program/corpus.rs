//! The corpus: `tests/corpus/*.ndjson`, and the output of `faultline classify` for each file.
//!
//! `expected/NAME.ndjson` holds the events, `expected/NAME.notes` the notes on stderr. After a change that is meant to
//! change them, run `tests/update-expected` and read the difference.

use super::support::{check_expected, in_root, root};
use std::fs;

/// Runs every file of the corpus as a user would, from the repository's root.
#[test]
fn every_file_says_what_it_said_before() {
    let mut names: Vec<String> = fs::read_dir(root().join("tests/corpus"))
        .expect("the corpus")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".ndjson").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 14, "files are missing: {names:?}");
    for name in names {
        let run = in_root(&["classify", &format!("tests/corpus/{name}.ndjson")]).ends_with(0);
        check_expected(&format!("tests/corpus/expected/{name}.ndjson"), &run.out);
        check_expected(&format!("tests/corpus/expected/{name}.notes"), &run.err);
    }
}

/// Every code of every dialect is in the corpus, under its own name and as its own canonical code.
#[test]
fn every_code_of_every_dialect_is_covered() {
    let registry = classifier::Registry::builtin().expect("the registry");
    for dialect in classifier::Dialect::REGISTERED {
        let file = root().join(format!("tests/corpus/expected/codes-{dialect}.ndjson"));
        let events: Vec<serde_json::Value> = fs::read_to_string(&file)
            .expect("an expected file")
            .lines()
            .map(|line| serde_json::from_str(line).expect(line))
            .collect();
        for entry in registry.entries().iter().filter(|entry| entry.dialect == dialect) {
            let code = entry.code.split('/').next();
            let says = |event: &serde_json::Value| {
                event["code"].as_str() == code && event["canonical"].as_str() == Some(&entry.canonical)
            };
            assert!(events.iter().any(says), "{dialect} {} is not in {}", entry.code, file.display());
        }
    }
}
