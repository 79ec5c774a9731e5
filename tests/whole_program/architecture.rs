//! What `docs/architecture.md` says about the code, held by tests.

use super::support::root;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Who may name whom. A crate that is not here may not exist; an edge that is not here may not either.
const ALLOWED: [(&str, &[&str]); 7] = [
    ("access", &[]),
    ("taxonomy", &[]),
    ("demo", &[]),
    ("store", &["taxonomy"]),
    ("collector", &["access", "store", "taxonomy"]),
    ("query", &["access", "store", "taxonomy"]),
    ("faultline", &["access", "collector", "demo", "query", "store", "taxonomy"]),
];

/// Where the product's own code is.
const SOURCES: [&str; 7] =
    ["src", "access/src", "taxonomy/src", "store/src", "collector/src", "query/src", "demo/src"];

/// The members of the workspace, with their manifests.
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

/// Versions stand in one place, so that they cannot drift apart.
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

/// The pure core: decisions are functions of their arguments.
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
    for (path, text) in sources(&["taxonomy/src"]) {
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

/// What telemetry looks like on the wire is known in one folder only.
#[test]
fn only_receivers_name_otlp() {
    for (path, text) in sources(&SOURCES) {
        let may = path.components().any(|part| part.as_os_str() == "receive");
        let names = ["opentelemetry_proto", "ExportTrace", "ExportLogs"];
        assert!(may || !names.iter().any(|name| text.contains(name)), "{} names OTLP types", path.display());
    }
}

/// Delta tables are an affair of the lake, and the lake touches no file but through the seam that tests can fail.
#[test]
fn only_the_lake_names_deltalake_and_it_names_no_file_system() {
    for (path, text) in sources(&SOURCES) {
        let is_lake =
            path.ends_with("store/src/lake.rs") || path.to_string_lossy().contains("store/src/lake/");
        assert!(is_lake || !text.contains("deltalake_core::"), "{}", path.display());
        assert!(!is_lake || !text.contains("std::fs"), "{} touches files itself", path.display());
    }
}
