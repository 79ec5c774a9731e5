//! Tests that the output of `faultline dashboards` is committed.

use super::super::support::{Folder, check_expected, faultline};
use super::{NAMES, file};

/// Guarantee: the committed JSON is what this version writes. `tests/update-expected` writes it anew.
#[test]
fn the_dashboards_are_up_to_date() {
    let folder = Folder::new();
    let out = folder.path().join("new/folder");
    let run = faultline(&["dashboards", "--out", out.to_str().expect("a path")]).ends_with(0);
    assert_eq!(run.out, "", "what is written is said on stderr");
    let mut written: Vec<String> = std::fs::read_dir(&out)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    written.sort();
    let mut expected = NAMES.map(|name| format!("{name}.json"));
    expected.sort();
    assert_eq!(written, expected);
    for name in NAMES {
        let json = std::fs::read_to_string(out.join(format!("{name}.json"))).expect("a dashboard");
        check_expected(&file(name), &json);
    }
}

/// Guarantee: without a folder they are listed, and the address of the collector is where the links go.
#[test]
fn dashboards_are_listed_and_know_their_collector() {
    let listed = faultline(&["dashboards"]).ends_with(0).out;
    assert_eq!(listed.lines().count(), 1 + NAMES.len(), "{listed}");
    assert!(NAMES.iter().all(|name| listed.contains(&format!("{name}.json"))), "{listed}");
    let folder = Folder::new();
    let out = folder.path().to_str().expect("a path");
    faultline(&["dashboards", "--out", out, "--collector", "https://faultline.example/"]).ends_with(0);
    let json = std::fs::read_to_string(folder.path().join("health.json")).expect("a dashboard");
    assert!(json.contains("\"https://faultline.example\"") && !json.contains("127.0.0.1"), "{json}");
}

#[test]
fn a_folder_that_cannot_be_made_is_a_failure() {
    let folder = Folder::new();
    let in_the_way = folder.file("file", "");
    let run = faultline(&["dashboards", "--out", &in_the_way]).ends_with(1);
    assert!(run.err.contains("file"), "{}", run.err);
}
