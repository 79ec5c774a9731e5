//! Tests of an operator's registry file: the shipped example works, and a bad file is rejected with its line.

use super::support::{Folder, OPEN, example_registry, faultline, lines, with_stdin};

/// The published cases of an adapter's own codes, and their classification with the example.
const CASES: [(&str, &str); 5] = [
    (
        r#"{"service":"github","success":false,"error":{"code":"PERMISSION_DENIED","message":"Abuse detection triggered: too fast","details":{"http_status":403}}}"#,
        "RATE_LIMIT_GITHUB_ABUSE_DETECTED",
    ),
    (
        r#"{"service":"github","success":false,"error":{"code":"NOT_FOUND_RESOURCE","message":"Not Found","details":{"http_status":404}}}"#,
        "NOT_FOUND_REPOSITORY",
    ),
    (
        r#"{"service":"github","success":false,"error":{"code":"PERMISSION_DENIED","message":"API rate limit exceeded","details":{"http_status":403}}}"#,
        "RATE_LIMIT_EXCEEDED",
    ),
    (
        r#"{"jsonrpc":"2.0","id":1,"result":{"error":{"code":4001,"message":"Adapter error","retryable":false,"details":{"originalError":"ORDER_NOT_FOUND"}}}}"#,
        "NOT_FOUND_ORDER",
    ),
    // The entries do not apply to this case: a status that nothing maps.
    (
        r#"{"service":"wiki","success":false,"error":{"code":"NOT_FOUND_PAGE","message":"Gone","details":{"http_status":410}}}"#,
        "NOT_FOUND_PAGE",
    ),
];

#[test]
fn the_example_gives_the_published_codes_their_meaning() {
    let input = lines(&CASES.map(|(record, _)| record));
    let canonical = |arguments: &[&str]| {
        let run = with_stdin(arguments, input.as_bytes()).ends_with(0);
        run.events().iter().map(|event| event["canonical"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let with = canonical(&["classify", "--registry", &example_registry()]);
    assert_eq!(with, CASES.map(|(_, expected)| expected));
    let without = canonical(&["classify"]);
    for (index, (record, _)) in CASES[..4].iter().enumerate() {
        assert_ne!(with[index], without[index], "the example makes no difference to {record}");
    }
}

/// The settings that the example has in comments are valid as well.
#[test]
fn the_examples_commented_settings_are_valid() {
    let text = std::fs::read_to_string(example_registry()).unwrap();
    let (_, settings) = text.split_once("# ---- Further settings").expect("the section");
    let is_setting = |line: &&str| line.starts_with('[') || line.contains(" = ");
    let settings: Vec<&str> =
        settings.lines().filter_map(|line| line.strip_prefix("# ")).filter(is_setting).collect();
    assert!(settings.len() >= 10, "{settings:?}");
    let folder = Folder::new();
    let file = folder.file("settings.toml", settings.join("\n"));
    let record = OPEN.replace("\"service\"", "\"svc\"");
    let run = with_stdin(&["classify", "--registry", &file], record.as_bytes()).ends_with(0);
    assert_eq!(run.events()[0]["service"], "orders", "the further name of a field is in use");
}

#[test]
fn a_bad_file_is_refused_with_its_line() {
    let folder = Folder::new();
    for (text, line, reason) in [
        ("[[code]]\ncode = \"X\"\ncategory = \"RATE_LIMT\"\n", 3, "did you mean 'RATE_LIMIT'"),
        ("[[code]]\ncode = \"MY_CODE\"\n", 2, "needs a category"),
        ("# fine\n\nnot toml\n", 3, ""),
        ("[[code]]\ncode = \"RATE_LIMIT_X\"\ncondition = \"message has 'x'\"\n", 3, "contains"),
    ] {
        let file = folder.file("bad.toml", text);
        for arguments in [&["classify", "--registry", &file][..], &["codes", "--registry", &file]] {
            let run = with_stdin(arguments, OPEN.as_bytes()).ends_with(1);
            assert!(run.err.contains(&format!("{file}:{line}: ")), "{text}: {}", run.err);
            assert!(run.err.contains(reason), "{text}: {}", run.err);
            assert_eq!(run.out, "", "nothing is classified with half a registry");
        }
    }
}

#[test]
fn a_missing_file_is_named() {
    let run = faultline(&["codes", "--registry", "no/such/file.toml"]).ends_with(1);
    assert!(run.err.contains("'no/such/file.toml'") && run.err.contains("--registry"), "{}", run.err);
}
