//! The corpus of secrets, through the real binary.

use super::support::{Folder, in_root, root};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

/// Every secret of `tests/corpus/secrets/secrets.ndjson` goes through `faultline classify` in one run, and at most two
/// of a hundred may occur in the output. `classifier/tests/secrets.rs` checks single entries.
#[test]
fn the_binary_prints_no_secret_of_the_corpus() {
    let corpus = fs::read_to_string(root().join("tests/corpus/secrets/secrets.ndjson")).expect("the corpus");
    let (mut lines, mut secrets) = (String::new(), BTreeSet::new());
    for line in corpus.lines() {
        let entry: Value = serde_json::from_str(line).expect(line);
        let parts = entry["secret"].as_array().expect("parts");
        let secret: String = parts.iter().filter_map(Value::as_str).collect();
        // Only entries that are texts are used; the other test covers those that need more than a plain replacement.
        if let Some(text) = entry["text"].as_str() {
            let message = text.replace("{S}", &secret);
            let record = json!({"success": false, "error": {"code": "INTERNAL_ERROR", "message": message}});
            lines.push_str(&format!("{record}\n"));
            secrets.insert(secret);
        }
    }
    assert!(secrets.len() >= 200, "only {} secrets", secrets.len());
    let folder = Folder::new();
    let file = folder.path().join("secrets.ndjson");
    fs::write(&file, lines).expect("the file can be written");
    let run = in_root(&["classify", file.to_str().expect("a path")]).ends_with(0);
    let leaks: Vec<_> =
        secrets.iter().filter(|secret| secret.len() > 4 && run.out.contains(*secret)).collect();
    assert!(leaks.len() * 50 <= secrets.len(), "{} of {} leak: {leaks:?}", leaks.len(), secrets.len());
}
