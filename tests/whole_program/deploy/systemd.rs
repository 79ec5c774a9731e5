//! Tests of the systemd unit: it is valid and strict, but not too strict.

use super::super::durability::strace;
use super::super::server::ask;
use super::super::support::{Folder, HIDDEN, lines};
use super::{read, tool};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

const UNIT: &str = "deploy/systemd/faultline.service";

/// Guarantee: systemd understands every line, and rates the unit 2.0 or better.
#[test]
fn the_unit_is_well_formed_and_tight() {
    let folder = Folder::new();
    // Only an installed program can be verified, so another binary takes the place of the server.
    let unit = folder.file("faultline.service", read(UNIT).replace("/usr/bin/faultline", "/bin/true"));
    let said = tool("systemd-analyze", &["verify", &unit], folder.path());
    assert!(said.trim().is_empty(), "{said}");
    let said = tool(
        "systemd-analyze",
        &["security", "--offline=true", "--threshold=20", "--no-pager", &unit],
        folder.path(),
    );
    // The rules need process_start_time_seconds, which is 0 without /proc/stat.
    assert!(!read(UNIT).contains("\nProcSubset="), "/proc/stat is needed");
    let level = said.lines().find(|line| line.contains("Overall exposure level")).expect("a level");
    let level: f64 =
        level.split(": ").nth(1).and_then(|rest| rest.split(' ').next()).expect(level).parse().expect(level);
    assert!(level <= 2.0, "{said}");
}

/// Returns the groups of system calls of this systemd.
fn groups() -> BTreeMap<String, Vec<String>> {
    let said = tool("systemd-analyze", &["syscall-filter", "--no-pager"], Path::new("/"));
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut group = String::new();
    for line in said.lines() {
        if line.starts_with('@') {
            group = line.trim().to_owned();
        } else if let Some(name) = line.split_whitespace().next().filter(|name| !name.starts_with('#')) {
            groups.entry(group.clone()).or_default().push(name.to_owned());
        }
    }
    groups
}

fn expand(name: &str, groups: &BTreeMap<String, Vec<String>>, into: &mut BTreeSet<String>) {
    match groups.get(name) {
        Some(names) => names.iter().for_each(|name| expand(name, groups, into)),
        None => drop(into.insert(name.to_owned())),
    }
}

/// Returns the system calls that the unit allows: the first line begins the list, later ones add to it, those with a
/// tilde take away.
fn allowed() -> BTreeSet<String> {
    let (groups, unit) = (groups(), read(UNIT));
    assert!(groups["@system-service"].len() > 20, "{groups:?}");
    let mut allowed = BTreeSet::new();
    for line in unit.lines().filter_map(|line| line.strip_prefix("SystemCallFilter=")) {
        let mut named = BTreeSet::new();
        line.trim_start_matches('~').split_whitespace().for_each(|name| expand(name, &groups, &mut named));
        match line.starts_with('~') {
            true => allowed.retain(|name| !named.contains(name)),
            false => allowed.append(&mut named),
        }
    }
    allowed
}

/// Scenario: a server starts, takes requests, flushes, answers questions and a scrape, reads its settings again, and
/// stops.
/// Guarantee: it makes no system call that the unit forbids.
#[test]
fn the_server_needs_no_call_that_the_unit_forbids() {
    let folder = Folder::new();
    let calls = folder.path().join("calls");
    let mut traced = Command::new("strace");
    traced.args(["-D", "-f", "-qq", "-e", "signal=none", "-o"]).arg(&calls);
    let server = strace::start(&folder, traced, &["--flush-bytes", "1", "--flush-after", "1ms"]);
    server.post_lines(&lines(&[HIDDEN])).is(200);
    let headers = [("Content-Type", "text/plain")];
    let query = b"SELECT service, count(*) FROM events GROUP BY service";
    ask(server.address("web"), "POST", "/api/v1/sql", &headers, query).expect("an answer").is(200);
    server.get("/metrics").is(200);
    server.signal("HUP");
    // Maintenance starts its first round after five seconds.
    std::thread::sleep(std::time::Duration::from_secs(6));
    server.get("/readyz").is(200);
    assert!(server.stop().success());
    let traced = std::fs::read_to_string(calls).expect("calls");
    let name = |line: &str| -> Option<String> {
        let call = line.split_once(' ')?.1.trim_start();
        let name = call.strip_prefix("<... ").unwrap_or(call);
        let end = name.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
        (end > 0).then(|| name[..end].to_owned())
    };
    let used: BTreeSet<String> = traced.lines().filter_map(name).collect();
    for expected in ["fdatasync", "fallocate", "setpriority", "accept4", "linkat"] {
        assert!(used.contains(expected), "{expected} was not seen: {used:?}");
    }
    let allowed = allowed();
    let forbidden: Vec<&String> = used.iter().filter(|name| !allowed.contains(*name)).collect();
    assert!(forbidden.is_empty(), "the unit forbids {forbidden:?}");
}
