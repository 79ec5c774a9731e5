//! Tests that hold the statements of `docs/architecture.md` about the code.

use super::support::root;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The crates that each crate may depend on. No other crate and no other dependency between crates may exist.
const ALLOWED: [(&str, &[&str]); 8] = [
    ("metrics", &[]),
    ("auth", &["metrics"]),
    ("classifier", &[]),
    ("demo", &[]),
    ("store", &["metrics", "classifier"]),
    ("collector", &["auth", "metrics", "store", "classifier"]),
    ("query", &["auth", "metrics", "store", "classifier"]),
    ("faultline", &["auth", "collector", "demo", "metrics", "query", "store", "classifier"]),
];

/// The folders with the product's own code.
const SOURCES: [&str; 8] = [
    "src",
    "auth/src",
    "classifier/src",
    "store/src",
    "collector/src",
    "query/src",
    "demo/src",
    "metrics/src",
];

/// Returns the members of the workspace, with their manifests.
fn members() -> BTreeMap<String, toml::Table> {
    let read = |path: PathBuf| -> toml::Table {
        fs::read_to_string(&path).expect("a manifest").parse().expect("valid TOML")
    };
    let workspace = read(root().join("Cargo.toml"));
    let names = workspace["workspace"]["members"].as_array().expect("members");
    let mut manifests: BTreeMap<String, toml::Table> = names
        .iter()
        .map(|name| name.as_str().expect("a name").to_owned())
        .map(|name| (name.clone(), read(root().join(name).join("Cargo.toml"))))
        .collect();
    manifests.insert("faultline".to_owned(), workspace);
    manifests
}

#[test]
fn crates_name_only_those_they_may() {
    let members = members();
    for (name, manifest) in &members {
        let (_, allowed) = ALLOWED.iter().find(|(known, _)| known == name).expect("a known crate");
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        for dependency in dependencies.into_iter().flat_map(|table| table.keys()) {
            let is_ours = members.contains_key(dependency);
            assert!(!is_ours || allowed.contains(&dependency.as_str()), "{name} must not name {dependency}");
        }
    }
}

/// Versions are declared in one place, so that they cannot drift apart.
#[test]
fn members_take_their_versions_from_the_workspace() {
    for (name, manifest) in members() {
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let table = manifest.get(section).and_then(toml::Value::as_table);
            for (dependency, value) in table.into_iter().flatten() {
                let inherits = value.get("workspace").and_then(toml::Value::as_bool) == Some(true);
                assert!(inherits, "{dependency} of {name} has a version of its own");
            }
        }
        assert_eq!(manifest["lints"]["workspace"].as_bool(), Some(true), "{name} has lints of its own");
    }
}

/// Rust files below a folder.
fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn sources(folders: &[&str]) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    folders.iter().for_each(|folder| rust_files(&root().join(folder), &mut files));
    assert!(!files.is_empty());
    files.into_iter().map(|path| (path.clone(), fs::read_to_string(path).expect("a source file"))).collect()
}

#[test]
fn every_module_opens_with_what_it_is() {
    for (path, text) in sources(&[&SOURCES[..], &["tests", "benches"]].concat()) {
        assert!(text.starts_with("//! "), "{} does not open with `//!`", path.display());
    }
}

/// The pure core, whose decisions are functions of their arguments.
#[test]
fn taxonomy_does_no_io_and_reads_no_clock() {
    const FORBIDDEN: [&str; 11] = [
        "std::fs",
        "std::net",
        "std::io",
        "std::env",
        "std::process",
        "std::thread",
        "std::time",
        "SystemTime",
        "Instant",
        "Timestamp::now",
        "tokio",
    ];
    for (path, text) in sources(&["classifier/src"]) {
        for word in FORBIDDEN {
            assert!(!text.contains(word), "{} names {word}", path.display());
        }
    }
}

#[test]
fn files_and_names_stay_small_and_telling() {
    for (path, text) in sources(&SOURCES) {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        assert!(
            !["utils", "util", "helpers", "common", "manager", "misc"].contains(&name),
            "{}",
            path.display()
        );
        let lines = text.split("#[cfg(test)]").next().map_or(0, |code| code.lines().count());
        assert!(lines <= 500, "{} has {lines} lines", path.display());
    }
}

/// Only one folder handles OTLP messages.
#[test]
fn only_receivers_name_otlp() {
    for (path, text) in sources(&SOURCES) {
        let may = path.components().any(|part| part.as_os_str() == "receivers");
        let names = ["opentelemetry_proto", "ExportTrace", "ExportLogs"];
        assert!(may || !names.iter().any(|name| text.contains(name)), "{} names OTLP types", path.display());
    }
}

/// Only the module `delta` handles Delta tables, and it accesses files only through `Disk`, which tests can make fail.
#[test]
fn only_the_delta_names_deltalake_and_it_names_no_file_system() {
    for (path, text) in sources(&SOURCES) {
        let is_delta =
            path.ends_with("store/src/delta.rs") || path.to_string_lossy().contains("store/src/delta/");
        assert!(is_delta || !text.contains("deltalake_core::"), "{}", path.display());
        assert!(!is_delta || !text.contains("std::fs"), "{} touches files itself", path.display());
    }
}

/// Words of a private vocabulary that must not become the name of a file or of a public type again, because a
/// conventional word says more.
const UNCONVENTIONAL: [(&str, &str); 38] = [
    ("asked", "request"),
    ("asking", "query"),
    ("clues", "context"),
    ("conversation", "session"),
    ("counted", "summary"),
    ("courtesy", "cooperative yield"),
    ("door", "endpoint"),
    ("doors", "endpoints"),
    ("eight", "swar"),
    ("fold", "coalesce"),
    ("guest", "client"),
    ("inbox", "reader"),
    ("ink", "writer"),
    ("judge", "classifier"),
    ("keeper", "maintenance"),
    ("known", "the things that are known"),
    ("lake", "delta"),
    ("meter", "registry"),
    ("moment", "snapshot"),
    ("opened", "data directory"),
    ("outbox", "writer"),
    ("patience", "timeout"),
    ("place", "location, position, target"),
    ("places", "locations"),
    ("proof", "authentication"),
    ("quantity", "units"),
    ("reading", "parser"),
    ("refused", "rejection"),
    ("repeats", "dedup"),
    ("seal", "flush"),
    ("sealed", "flushed"),
    ("sealer", "flusher"),
    ("stated", "reported"),
    ("told", "response"),
    ("turned", "startup error"),
    ("upkeep", "maintenance"),
    ("watched", "state"),
    ("weight", "size"),
];

/// Returns the words of a file or type name, in lower case: `ConnectionLimit` and `connection_limit` have two.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if letter.is_uppercase() || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the names of the types of a file that other modules can see.
fn public_types(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let declaration = line.trim_start().strip_prefix("pub")?;
        let declaration = declaration.split_once(')').filter(|_| declaration.starts_with('('));
        let rest = match declaration {
            Some((_, rest)) => rest,
            None => line.trim_start().strip_prefix("pub ")?,
        };
        let mut parts = rest.split_whitespace();
        let kind = parts.next()?;
        let name = parts.next().filter(|_| ["struct", "enum", "trait", "type", "union"].contains(&kind))?;
        name.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next()
    })
}

#[test]
fn files_and_public_types_have_conventional_names() {
    assert_eq!(words("ConnectionLimit"), ["connection", "limit"]);
    let example = "pub(super) struct Place<'a> {\n    pub enum Door {\npub fn seal() {}\nstruct Told;\npub type Ink = u8;";
    assert_eq!(public_types(example).collect::<Vec<_>>(), ["Place", "Door", "Ink"]);
    let mut found = Vec::new();
    let mut check = |name: &str, path: &Path| {
        let of_name = words(name);
        for (word, better) in
            UNCONVENTIONAL.iter().filter(|(word, _)| of_name.iter().any(|part| part == word))
        {
            found.push(format!("{}: '{name}' has the word '{word}'; rather {better}", path.display()));
        }
    };
    for (path, text) in sources(&[&SOURCES[..], &["tests", "benches"]].concat()) {
        check(path.file_stem().and_then(|name| name.to_str()).expect("a name"), &path);
        public_types(&text).for_each(|name| check(name, &path));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
