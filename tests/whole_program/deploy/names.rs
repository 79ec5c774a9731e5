//! Checks that names in `deploy/` and in docs/operations.md exist.

use super::super::support::{faultline, root};
use super::{files, read};
use std::collections::BTreeSet;

/// Variables of Grafana's provisioning, which compose sets.
const OF_GRAFANA: [&str; 4] =
    ["FAULTLINE_PROMETHEUS_URL", "FAULTLINE_SQL_HOST", "FAULTLINE_SQL_USER", "FAULTLINE_SQL_PASSWORD"];

/// Returns the subcommands, by the help of the program.
fn subcommands() -> Vec<String> {
    let help = faultline(&["--help"]).ends_with(0).out;
    let list = help.split("Commands:\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("a list");
    let names = list.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

fn help_of(subcommand: &str) -> String {
    match subcommand {
        "token" => faultline(&["token", "new", "--help"]).out,
        other => faultline(&[other, "--help"]).out,
    }
}

/// Returns the texts that are searched for names.
fn texts() -> Vec<(String, String)> {
    let mut texts = vec![("docs/operations.md".to_owned(), read("docs/operations.md"))];
    for path in files("deploy") {
        let name = path.strip_prefix(root()).expect("below the root").display().to_string();
        if let Ok(text) = std::fs::read_to_string(&path) {
            texts.push((name, text));
        }
    }
    texts
}

fn words<'t>(text: &'t str, prefix: &str) -> BTreeSet<&'t str> {
    let places = text.match_indices(prefix).map(|(place, _)| place);
    let word = |place: usize| {
        let rest = &text[place..];
        let end = rest.find(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
        &rest[..end.unwrap_or(rest.len())]
    };
    places.map(word).filter(|word| !word.ends_with('_')).collect()
}

/// Guarantee: a variable that is named is one that something reads.
#[test]
fn every_variable_exists() {
    let mut known = read("docs/settings.md");
    for subcommand in subcommands() {
        known.push_str(&help_of(&subcommand));
    }
    known.push_str(" FAULTLINE_TOKENS ");
    let known = words(&known, "FAULTLINE_");
    let grafana: String =
        files("deploy/grafana").iter().filter_map(|path| std::fs::read_to_string(path).ok()).collect();
    let mut looked_at = 0;
    for (file, text) in texts() {
        for variable in words(&text, "FAULTLINE_") {
            looked_at += 1;
            let is_known = match OF_GRAFANA.contains(&variable) {
                true => grafana.contains(variable),
                false => known.contains(variable),
            };
            assert!(is_known, "{file}: nothing reads {variable}");
        }
    }
    assert!(looked_at > 20, "only {looked_at} were looked at");
}

/// Guarantee: commands that are shown are ones of the program, with flags that they have.
#[test]
fn every_command_and_flag_exists() {
    let subcommands = subcommands();
    let mut looked_at = 0;
    for (file, text) in texts() {
        let text = text.replace("\\\n", " ");
        for (place, _) in text.match_indices("faultline ") {
            let rest = &text[place + "faultline ".len()..];
            let end = rest.find(['\n', '|', '>', '&', '`', ')', ';', '"']).unwrap_or(rest.len());
            let mut words = rest[..end].split_whitespace();
            let Some(subcommand) = words.next().filter(|word| subcommands.iter().any(|known| known == word))
            else {
                continue;
            };
            let help = help_of(subcommand);
            for flag in words.filter(|word| word.starts_with("--")) {
                let flag = flag.split('=').next().unwrap_or(flag).trim_end_matches([',', '.', '\'']);
                looked_at += 1;
                let is_known = help.split([' ', '\n', ',', '[']).any(|word| word == flag);
                assert!(is_known, "{file}: faultline {subcommand} has no {flag}");
            }
        }
    }
    assert!(looked_at > 15, "only {looked_at} were looked at");
}

/// Guarantee: every settings file that ships is without a mistake.
#[test]
fn every_settings_file_is_without_a_mistake() {
    let settings: Vec<_> =
        files("deploy").into_iter().filter(|path| path.ends_with("faultline.toml")).collect();
    assert_eq!(settings.len(), 4, "{settings:?}");
    for file in settings {
        let run = faultline(&["check", "--config", file.to_str().expect("a path")]).ends_with(0);
        assert!(run.out.contains("nothing wrong"), "{}", run.out);
    }
}
