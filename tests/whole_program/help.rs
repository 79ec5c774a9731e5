//! Help that is true: every example in it works as printed.

use super::support::{Folder, HIDDEN, OPEN, example_registry, faultline, lines};
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// The pages whose examples need no running server.
const PAGES: [&[&str]; 7] = [
    &["--help"],
    &["classify", "--help"],
    &["codes", "--help"],
    &["ingest", "--help"],
    &["sql", "--help"],
    &["dashboards", "--help"],
    &["completions", "--help"],
];

/// The pages of all commands.
const ALL_PAGES: [&[&str]; 18] = [
    &["--help"],
    &["backup", "--help"],
    &["check", "--help"],
    &["classify", "--help"],
    &["codes", "--help"],
    &["completions", "--help"],
    &["dashboards", "--help"],
    &["demo", "--help"],
    &["dump", "--help"],
    &["health", "--help"],
    &["ingest", "--help"],
    &["man", "--help"],
    &["restore", "--help"],
    &["serve", "--help"],
    &["sql", "--help"],
    &["tail", "--help"],
    &["token", "--help"],
    &["token", "new", "--help"],
];

/// Every command that the program lists has its pages in the list above.
#[test]
fn no_page_is_left_out() {
    let help = faultline(&["--help"]).out;
    let (_, commands) = help.split_once("Commands:\n").expect("commands");
    let names = commands.lines().take_while(|line| !line.is_empty()).filter_map(|line| {
        line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?.split_whitespace().next()
    });
    let names: Vec<&str> = names.filter(|name| *name != "help").collect();
    assert!(names.len() > 10, "{help}");
    for name in names {
        assert!(ALL_PAGES.iter().any(|page| page[0] == name), "{name}");
    }
}

/// Piped, at the default width and at that of a narrow terminal: no line is wider, and no line of a paragraph ends
/// before the next word would not fit, as happens when text that was wrapped is wrapped again.
#[test]
fn paragraphs_are_wrapped_once() {
    for page in ALL_PAGES {
        for (columns, width) in [("", 100), ("80", 80)] {
            let output = super::support::command(page).env("COLUMNS", columns).output().expect("it runs");
            let help = String::from_utf8(output.stdout).expect("UTF-8");
            let (_, below) = help.split_once("Examples:\n").unwrap_or(("", ""));
            let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ') && !line.ends_with(':');
            for line in help.lines() {
                // An example cannot be broken.
                assert!(line.chars().count() <= width, "{page:?} at {width}: {line}");
            }
            let lines: Vec<&str> = below.lines().collect();
            for pair in lines.windows(2).filter(|pair| is_prose(pair[0]) && is_prose(pair[1])) {
                let next = pair[1].split(' ').next().unwrap_or_default();
                let joined = pair[0].chars().count() + 1 + next.chars().count();
                assert!(joined > width, "{page:?} at {width} wraps twice: {pair:?}");
            }
        }
    }
}

/// Returns the files that the examples name.
fn example_files() -> Folder {
    let folder = Folder::new();
    let text = lines(&[HIDDEN, OPEN]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(text.as_bytes()).unwrap();
    folder.file("app.ndjson", &text);
    folder.file("app.ndjson.gz", gzip.finish().unwrap());
    folder.file("archive.ndjson.zst", zstd::encode_all(text.as_bytes(), 1).unwrap());
    folder.file("report.sql", "SELECT category, count(*) FROM events GROUP BY category;");
    folder.file("registry.toml", std::fs::read(example_registry()).unwrap());
    folder
}

#[test]
fn every_example_works_as_printed() {
    let folder = example_files();
    let program = Path::new(env!("CARGO_BIN_EXE_faultline")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    for page in PAGES {
        let help = faultline(page).ends_with(0).out;
        let (_, examples) = help.split_once("Examples:\n").expect("a page has examples");
        let examples: Vec<&str> = examples.lines().take_while(|line| line.starts_with("  ")).collect();
        assert!(examples.len() >= 2, "{page:?}");
        for example in examples {
            let output = Command::new("bash")
                .args(["-c", &format!("set -o pipefail; {example}")])
                .current_dir(folder.path())
                .env("PATH", &path)
                .output()
                .unwrap();
            assert!(output.status.success(), "{example}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }
}

#[test]
fn exit_codes_are_documented() {
    for page in &PAGES[..6] {
        let help = faultline(page).out;
        let (_, codes) = help.split_once("Exit codes:\n").expect("exit codes");
        for (line, code) in codes.lines().zip(["0", "1", "2"]) {
            assert!(line.trim_start().starts_with(code), "{page:?}: {line}");
        }
    }
}

#[test]
fn the_version_is_that_of_the_package() {
    assert_eq!(
        faultline(&["--version"]).ends_with(0).out,
        concat!("faultline ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn wrong_usage_ends_with_2_and_says_what_is_right() {
    assert!(faultline(&[]).ends_with(2).err.contains("Usage: faultline <COMMAND>"));
    assert!(faultline(&["clasify"]).ends_with(2).err.contains("classify"));
    let run = faultline(&["classify", "--dialect", "erlmpc"]).ends_with(2);
    assert!(run.err.contains("erlmcp"), "{}", run.err);
}
