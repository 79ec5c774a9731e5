//! Scenario: every field holds what a terminal acts on. Nothing of it comes out raw, on stdout or on stderr.

use super::support::{Folder, Run, faultline, with_stdin};

/// Sequences that clear the screen, set the title, ring the bell and reverse text, with 7-bit and 8-bit controls.
const ATTACK: &str = "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\r\u{8}\u{7f}\u{0}\u{85}";

#[track_caller]
fn is_harmless(run: &Run) {
    for (name, text) in [("stdout", &run.out), ("stderr", &run.err)] {
        let raw = text.chars().find(|&c| c.is_control() && c != '\n');
        assert_eq!(raw, None, "{name}: {text:?}");
    }
}

/// Returns a record with the attack in every field that is shown.
fn record() -> String {
    let attack = serde_json::to_string(ATTACK).unwrap();
    format!(
        r#"{{"service":{attack},"tool":{attack},"user":{attack},"request_id":{attack},"extra":{{{attack}:{attack}}},"success":false,"error":{{"code":{attack},"message":{attack},"details":{{{attack}:{attack}}}}}}}"#
    )
}

#[test]
fn events_and_tables_show_hostile_text_harmlessly() {
    let folder = Folder::new();
    // DEL and the eight-bit controls are raw in this line, as JSON allows.
    let line = format!("{}\n", record());
    assert!(line.contains('\u{9b}') && line.contains('\u{7f}'));
    let file = folder.file("evil\u{1b}[2J\u{9b}.ndjson", line);
    let run = faultline(&["classify", &file]).ends_with(0);
    is_harmless(&run);
    let event = &run.events()[0];
    assert!(event["message"].as_str().unwrap().contains(ATTACK), "escaped, not changed: {event}");
    assert_eq!(event["source"], file.as_str());

    let run = faultline(&["classify", "--summary", &file]).ends_with(0);
    is_harmless(&run);
    assert!(run.out.contains("\\u{1b}[2J"), "shown, not dropped: {}", run.out);
}

#[test]
fn reports_show_hostile_names_harmlessly() {
    let folder = Folder::new();
    let unreadable = folder.file("evil\u{1b}[2J\nx", "{\u{1b}[2J");
    let run = faultline(&["classify", &unreadable]).ends_with(2);
    is_harmless(&run);
    assert_eq!(run.err.lines().count(), 2, "a newline in a name makes no line: {}", run.err);
    let missing = format!("{}/no\u{1b}[2J\u{9b}", folder.path().display());
    let run = faultline(&["classify", &missing]).ends_with(1);
    is_harmless(&run);
    let run = faultline(&["classify", "--registry", &missing]).ends_with(1);
    is_harmless(&run);
}

#[test]
fn codes_show_hostile_entries_harmlessly() {
    let folder = Folder::new();
    let registry = "[[code]]\ncode = \"EVIL_\\u001b[2J\\u009b\\u007f\"\ncategory = \"INTERNAL\"\n\
                    description = \"\\u001b]0;x\\u0007, \\u009b\"\nmessage = \"\\u001b[2J\"\n";
    let registry = folder.file("registry.toml", registry);
    for format in ["table", "csv", "json"] {
        let options = ["codes", "--registry", &registry, "--dialect", "operator", "--format", format];
        let run = faultline(&options).ends_with(0);
        is_harmless(&run);
        assert!(run.out.contains("EVIL_"), "{}", run.out);
        let run = faultline(&["codes", "--registry", &registry, "INTERNAL_EVIL___2J__", "--format", format]);
        is_harmless(&run.ends_with(0));
    }
    let broken = folder.file("broken.toml", "[[code]]\ncode = \"A\"\ncategory = \"\\u001b[2J\\n\"\n");
    is_harmless(&faultline(&["codes", "--registry", &broken]).ends_with(1));
}

#[test]
fn an_unknown_code_is_named_harmlessly() {
    is_harmless(&faultline(&["codes", "EVIL\u{1b}[2J\u{9b}\n"]).ends_with(1));
}

#[test]
fn text_that_turns_around_is_shown_as_such() {
    let record = r#"{"success":false,"error":{"code":"INTERNAL_ERROR","message":"abc\u202efdp.exe"}}"#;
    let run = with_stdin(&["classify", "--summary"], record.as_bytes()).ends_with(0);
    assert!(run.out.contains("abc\\u{202e}fdp.exe"), "{}", run.out);
}
