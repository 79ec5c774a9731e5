//! `faultline completions`: shell scripts that know the commands.

use super::support::{Folder, faultline};
use std::process::Command;

#[test]
fn every_shell_gets_a_script_that_knows_the_commands() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = faultline(&["completions", shell]).ends_with(0);
        for word in ["classify", "codes", "completions", "summary", "dialect"] {
            assert!(run.out.contains(word), "{shell}: {word}");
        }
    }
    faultline(&["completions", "cmd.exe"]).ends_with(2);
}

#[test]
fn bash_can_read_its_script() {
    let folder = Folder::new();
    let script = folder.file("faultline.bash", faultline(&["completions", "bash"]).out);
    let output = Command::new("bash").args(["-n", &script]).output().expect("bash is there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The script works: it completes a command and a dialect.
#[test]
fn bash_completes_words() {
    let folder = Folder::new();
    let script = folder.file("faultline.bash", faultline(&["completions", "bash"]).out);
    assert_eq!(completed(&script, "faultline cl"), "classify");
    assert_eq!(completed(&script, "faultline codes --dialect mcp-r"), "mcp-reference");
}

/// Returns the completions of bash for a line whose last word is not finished.
fn completed(script: &str, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let last = words.len() - 1;
    let (word, before) = (words[last], words[last - 1]);
    let ask = format!(
        "source '{script}'; COMP_WORDS=({line}); COMP_CWORD={last}; _faultline faultline {word} {before}; \
         echo \"${{COMPREPLY[@]}}\""
    );
    let output = Command::new("bash").args(["--norc", "-c", &ask]).output().expect("bash is there");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
