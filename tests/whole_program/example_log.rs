//! `examples/app.ndjson`, the log that the README's first command reads.

use super::support::{check_expected, in_root};

/// Made by the generator, so that it shows every dialect.
#[test]
fn the_example_log_is_what_the_generator_makes() {
    let log = String::from_utf8(demo::lines(2026, 400)).expect("UTF-8");
    check_expected("examples/app.ndjson", &log);
}

/// The first thing that a newcomer sees is worth seeing.
#[test]
fn the_readmes_first_command_shows_hidden_failures() {
    let run = in_root(&["classify", "--summary", "examples/app.ndjson"]).ends_with(0);
    for word in ["RATE_LIMIT", "PERMISSION", "INTERNAL", "of all failures are hidden"] {
        assert!(run.out.contains(word), "no {word} in:\n{}", run.out);
    }
}
