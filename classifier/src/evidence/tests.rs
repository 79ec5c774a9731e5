//! Test cases in data files: the meaning of failure texts, and the unflagged texts that state a failure.

use super::*;
use crate::registry::Registry;

const FAILURES: &str = include_str!("cases/failures.tsv");
const STATEMENTS: &str = include_str!("cases/statements.txt");
const DATA: &str = include_str!("cases/data.txt");

fn registry() -> Registry {
    Registry::builtin().expect("the registry")
}

fn lines(file: &str) -> impl Iterator<Item = String> {
    file.lines()
        .filter(|line| !(line.is_empty() || line.starts_with("# ") && line.ends_with('.')))
        .map(|line| line.replace("\\n", "\n"))
}

#[test]
fn the_words_of_a_failure_say_what_it_is_and_whose_fault() {
    let registry = registry();
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in lines(FAILURES) {
        let mut parts = line.splitn(3, '\t');
        let (category, fault, text) =
            (parts.next().expect(&line), parts.next().expect(&line), parts.next().expect(&line));
        let read = registry.evidence().read(text);
        let canonical = read.and_then(|read| read.canonical).unwrap_or("UNKNOWN_ERROR");
        let said = registry.meaning(canonical);
        let whose = read.and_then(|read| read.fault).or(said.fault).map_or("-", Fault::as_str);
        count += 1;
        if said.category.as_str() != category || whose != fault {
            wrong.push(format!("{category} {fault} <- {canonical} {whose}: {text}"));
        }
    }
    assert!(count >= 150, "only {count} cases");
    assert!(wrong.is_empty(), "{} of {count} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_statement_of_failure_is_told_from_data() {
    let registry = registry();
    let states = |text: &String| registry.evidence().opens_as_failure(text);
    let missed: Vec<_> = lines(STATEMENTS).filter(|text| !states(text)).collect();
    let alarms: Vec<_> = lines(&format!("{DATA}\n")).filter(states).collect();
    assert!(missed.is_empty() && alarms.is_empty(), "missed: {missed:#?}\nfalse alarms: {alarms:#?}");
}

#[test]
fn of_a_long_text_only_the_beginning_counts() {
    let registry = registry();
    let parts = [
        "error: ",
        "404 ",
        "'a ",
        "tool x: ",
        "no a found ",
        "http://",
        "aB_",
        "é：",
        ": no ",
        "</error>",
        "[ERROR] ",
    ];
    for part in parts {
        let text = part.repeat(1_000_000 / part.len());
        let head = crate::limits::truncate_str(&text, MAX_TEXT_BYTES);
        let canonical = |text| registry.evidence().read(text).and_then(|read| read.canonical);
        assert_eq!(canonical(&text), canonical(head), "{part}");
        let _ = registry.evidence().opens_as_failure(&text);
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_without_a_panic(text in "(\\PC|\n|[:'\"_/\\[\\]45-]|tool |error |MCP error -|HTTP 404|sqlstate ){0,60}") {
        let registry = REGISTRY.as_ref().expect("the registry");
        let read = registry.evidence().read(&text);
        proptest::prop_assert_eq!(read, registry.evidence().read(&text), "the same text gives the same answer");
        let _ = registry.evidence().opens_as_failure(&text);
    }
}

static REGISTRY: LazyLock<Option<Registry>> = LazyLock::new(|| Registry::builtin().ok());

proptest::proptest! {
    /// Texts without URLs and paths have the same form whether they are copied in runs or character by character.
    #[test]
    fn runs_of_plain_characters_are_normalized_like_single_ones(
        text in r#"([a-zA-Z0-9 éÉ_*.,;!?'"`(){}<>=+|^%$#@&\n\t\[\]-]|  |aB|ABc){0,60}"#
    ) {
        proptest::prop_assert_eq!(Normalized::of_text(&text).text, Normalized::of_pattern(&text));
    }
}
