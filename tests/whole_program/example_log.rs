//! `examples/app.ndjson`, the log that the README's first command reads.

use super::support::{check_expected, in_root, root};

/// The log is made by the generator, so that it shows every dialect.
#[test]
fn the_example_log_is_what_the_generator_makes() {
    let log = String::from_utf8(demo::lines(2026, 400)).expect("UTF-8");
    check_expected("examples/app.ndjson", &log);
}

/// The first output that a new user sees must be interesting.
#[test]
fn the_readmes_first_command_shows_hidden_failures() {
    let run = in_root(&["classify", "--summary", "examples/app.ndjson"]).ends_with(0);
    for word in ["RATE_LIMIT", "PERMISSION", "INTERNAL", "of all failures are hidden"] {
        assert!(run.out.contains(word), "no {word} in:\n{}", run.out);
    }
}

/// The output that the README shows is that of the command; lines of dots mark omissions.
#[test]
fn the_readme_shows_the_output_of_its_first_command() {
    const COMMAND: &str = "    $ faultline classify --summary examples/app.ndjson\n";
    let readme = std::fs::read_to_string(root().join("README.md")).expect("the README");
    let (_, shown) = readme.split_once(COMMAND).expect("the command");
    let run = in_root(&["classify", "--summary", "examples/app.ndjson"]).ends_with(0);
    let shown = shown.lines().take_while(|line| line.starts_with("    ") || line.is_empty());
    let shown: Vec<&str> = shown.map(str::trim).filter(|line| !line.is_empty() && *line != "...").collect();
    assert!(shown.len() > 5, "{shown:?}");
    for line in shown {
        assert!(run.out.lines().any(|printed| printed.trim() == line), "not printed: {line}\n{}", run.out);
    }
}
