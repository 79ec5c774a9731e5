//! Fingerprints that must never change: stored history is grouped by them.

use super::support::root;
use std::fs;

/// Each row of the golden file gives the same template and fingerprint as on the day it was written. No
/// command updates this file: a difference means that every stored group would split in two.
#[test]
fn fingerprints_are_stable_across_versions() {
    let golden = fs::read_to_string(root().join("tests/golden/fingerprints.tsv")).expect("the golden file");
    let mut rows = 0;
    for row in golden.lines().skip(1) {
        let [canonical, service, operation, message, template, fingerprint] =
            row.split('\t').collect::<Vec<_>>()[..]
        else {
            panic!("not six columns: {row}")
        };
        assert_eq!(classifier::template::from_message(message), template, "{message}");
        let hash = classifier::fingerprint::compute(canonical, service, operation, template);
        assert_eq!(format!("{hash:016x}"), fingerprint, "{row}");
        rows += 1;
    }
    assert!(rows >= 25, "only {rows} rows");
}
