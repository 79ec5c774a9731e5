//! Decides whether an unflagged text states that the call failed.
//!
//! Most successful replies that mention errors are data: logs, listings, documents, search results. Therefore the
//! structure decides: how the text opens, how long it is, whether it is one sentence, and what follows. Precision
//! comes first, so a text that is not clearly a statement counts as data.

use super::normalize::{Normalized, VALUE};
use super::{status, wrapper};
use aho_corasick::AhoCorasick;
use std::collections::HashMap;

/// The beginnings and endings of texts that state a failure.
#[derive(Debug, Clone, Default)]
pub(super) struct Openings {
    pub(super) statements: Beginnings,
    pub(super) phrases: Beginnings,
    pub(super) short_statements: Beginnings,
    pub(super) harmless: Beginnings,
    pub(super) endings: Endings,
    pub(super) none_given: Vec<String>,
    /// One automaton for the words inside a sentence.
    pub(super) inside: Option<AhoCorasick>,
    pub(super) worked: Option<AhoCorasick>,
}

/// Texts, indexed by two bytes of them, so that only a few are compared.
type TextsByBytes = HashMap<[u8; 2], Vec<String>, foldhash::fast::FixedState>;

/// Beginnings of texts, indexed by their first two bytes. None is shorter.
#[derive(Debug, Clone, Default)]
pub(super) struct Beginnings(TextsByBytes);

impl Beginnings {
    pub(super) fn new(texts: Vec<String>) -> Self {
        let mut by_first = TextsByBytes::default();
        for text in texts {
            if let Some(&first) = text.as_bytes().first_chunk() {
                by_first.entry(first).or_default().push(text);
            }
        }
        Self(by_first)
    }

    /// Returns the beginnings that start with the first two bytes of a line.
    fn candidates(&self, line: &str) -> impl Iterator<Item = &str> {
        let first = line.as_bytes().first_chunk();
        first.and_then(|first| self.0.get(first)).into_iter().flatten().map(String::as_str)
    }

    /// Returns true if one of them begins the line, as whole words.
    fn begin(&self, line: &str) -> bool {
        self.candidates(line).any(|opening| match opening.strip_suffix('*') {
            Some(stem) => line.starts_with(stem),
            None => line.strip_prefix(opening).is_some_and(|rest| {
                let ends_in_word = opening.ends_with(|c: char| c.is_alphanumeric() && u32::from(c) < 0x2e80);
                !ends_in_word || !rest.starts_with(char::is_alphanumeric)
            }),
        })
    }
}

/// Endings of texts, indexed by their last two bytes. None is shorter.
#[derive(Debug, Clone, Default)]
pub(super) struct Endings(TextsByBytes);

impl Endings {
    pub(super) fn new(texts: Vec<String>) -> Self {
        let mut by_last = TextsByBytes::default();
        for text in texts {
            if let Some(&last) = text.as_bytes().last_chunk() {
                by_last.entry(last).or_default().push(text);
            }
        }
        Self(by_last)
    }

    /// Returns those with which a text ends.
    fn of<'s>(&'s self, text: &'s str) -> impl Iterator<Item = &'s str> {
        let last = text.as_bytes().last_chunk();
        let candidates = last.and_then(|last| self.0.get(last)).into_iter().flatten().map(String::as_str);
        candidates.filter(|ending| text.ends_with(ending))
    }
}

/// The maximum length of a statement, which is a sentence or two. A longer text is a document, unless its opening is
/// unambiguous.
const MAX_SHORT_BYTES: usize = 480;
const MAX_SHORT_LINES: usize = 6;
/// The maximum length of a sentence that states a failure only by its last words.
const MAX_SENTENCE_BYTES: usize = 200;
const MAX_SENTENCE_WORDS: usize = 12;
/// The number of bytes of a text that are examined.
const MAX_OPENING_BYTES: usize = 512;

/// Words that may follow a phrase that states a failure. Any other word, such as a noun, would turn the phrase into a
/// name.
const FOLLOWERS: [&str; 28] = [
    "for",
    "to",
    "by",
    "when",
    "while",
    "on",
    "in",
    "at",
    "from",
    "with",
    "because",
    "after",
    "due",
    "during",
    "and",
    "as",
    "you",
    "please",
    "try",
    "code",
    "until",
    "executing",
    "calling",
    "errno",
    "of",
    "beim",
    "waiting",
    "the",
];

impl Openings {
    /// Returns true if the text, as a whole, states that the call failed. `is_evident` reports whether the wording of
    /// a text is strong evidence of a failure.
    pub(super) fn states_failure(&self, text: &str, is_evident: impl Fn(&str) -> bool) -> bool {
        let text = text.trim();
        if text.is_empty() || crate::envelope::looks_like_json(text) && !starts_with_tag(text) {
            return false;
        }
        let is_trace = text.starts_with("Traceback (most recent call last)");
        if is_trace || text.ends_with("</error>") && text.contains("<error>") {
            return true;
        }
        let marked = wrapper::strip_marks(text).trim_start_matches('#').trim_start();
        let head = crate::limits::truncate_str(marked, MAX_OPENING_BYTES);
        let form = Normalized::of_text(head);
        let line = form.text.lines().next().unwrap_or_default();
        if self.harmless.begin(line) || looks_like_listing(text, head) || is_count(line) {
            return false;
        }
        if starts_with_class(head) || starts_with_status(line) || wrapper::peel(marked).operation.is_some() {
            return true;
        }
        if self.statements.begin(line) || opens_with_attempt(line) {
            return !is_title(head);
        }
        let is_short = text.len() <= MAX_SHORT_BYTES && text.lines().count() <= MAX_SHORT_LINES;
        let works = || self.worked.as_ref().is_some_and(|words| words.is_match(&form.text));
        if names_an_error(line) || self.starts_with_phrase(line) {
            return !is_short || !works() && !has_list(text);
        }
        is_short
            && !works()
            && !has_list(text)
            && (self.short_statements.begin(line) && !is_plural(line) && is_evident(text)
                || self.is_failed_sentence(&form, text))
    }

    /// Returns true for `Access denied` and `Access denied for ada`, but not for
    /// `Access denied errors and how to avoid them`.
    fn starts_with_phrase(&self, line: &str) -> bool {
        self.phrases.candidates(line).any(|phrase| line.strip_prefix(phrase).is_some_and(ends_phrase))
    }

    /// Returns true for one short sentence about one thing that ends in a failure: `Document 'a' does not exist.`
    fn is_failed_sentence(&self, form: &Normalized, text: &str) -> bool {
        let line = &form.unquoted_line();
        if text.len() > MAX_SENTENCE_BYTES * 2 || line.len() > MAX_SENTENCE_BYTES {
            return false;
        }
        let sentence = line.split(". ").next().unwrap_or_default();
        let before_cause =
            || line.match_indices(GOES_ON).map(|(at, _)| &line[..at]).flat_map(|head| self.endings.of(head));
        self.inside.as_ref().is_some_and(|words| words.is_match(sentence))
            || self.endings.of(ended(line)).any(|ending| ends_in(line, ending))
            || before_cause().any(|ending| ends_before_cause(line, ending))
            || line.starts_with("no ") && self.none_given.iter().any(|ending| ends_in_words(line, ending))
    }
}

/// Splits a line at its first colon that a space follows, as `split_once(": ")` does, which prepares for any needle.
fn split_at_colon(line: &str) -> Option<(&str, &str)> {
    let bytes = line.as_bytes();
    let at = memchr::memchr_iter(b':', bytes).find(|at| bytes.get(at + 1) == Some(&b' '))?;
    Some((&line[..at], &line[at + 2..]))
}

/// Removes the punctuation at the end of a line.
fn ended(line: &str) -> &str {
    line.trim_end_matches(['.', '!', '。', '！', ' '])
}

/// Returns true if the line is one simple sentence about one thing and ends with these words.
fn ends_in(line: &str, ending: &str) -> bool {
    const JOINERS: [&str; 11] = [
        " that ",
        " and ",
        " because ",
        " when ",
        " if ",
        " said ",
        " until ",
        " so ",
        " but ",
        "; ",
        " no ",
    ];
    let sentence = ended(line);
    let Some(subject) = sentence.strip_suffix(ending) else { return false };
    let is_simple = !subject.contains(": ")
        && !subject.contains(". ")
        && !JOINERS.iter().any(|word| subject.contains(word));
    is_simple
        && sentence.split(' ').count() <= MAX_SENTENCE_WORDS
        && !line.starts_with("no ")
        && !line.starts_with("none ")
}

fn ends_in_words(line: &str, ending: &str) -> bool {
    let sentence = line.split(". ").next().map_or("", ended);
    sentence.split(' ').count() <= MAX_SENTENCE_WORDS && sentence.ends_with(ending)
}

/// Marks after which the cause of a failure follows.
const GOES_ON: [char; 5] = [':', '：', '，', '。', '！'];

/// Returns true if the words are followed by a colon and a cause: `Lamp update failed: 409`.
fn ends_before_cause(line: &str, ending: &str) -> bool {
    line.split_once(ending).is_some_and(|(before, after)| {
        before.split(' ').count() <= 8
            && !before.contains([':', ';'])
            && !before.contains(". ")
            && after.starts_with(GOES_ON)
    })
}

/// Returns true for a few words that end in "error", followed by a colon and a text: `Lamp API error: ...`,
/// `Query error: ...`.
fn names_an_error(line: &str) -> bool {
    const MAX_WORDS: usize = 5;
    split_at_colon(line).is_some_and(|(name, rest)| {
        let ends = [" error", " exception", " failure"].iter().any(|ending| name.ends_with(ending));
        ends && !rest.is_empty()
            && name.split(' ').count() <= MAX_WORDS
            && !name.contains(['.', '"', '\'', '=', ':', '['])
    })
}

/// Returns true for `Error transferring: ...` and `Error resizing lamp 7: ...`: an error, the attempt that failed, and
/// the cause.
fn opens_with_attempt(line: &str) -> bool {
    const MAX_WORDS: usize = 8;
    const TOPICS: [&str; 8] =
        ["handling", "logging", "reporting", "tracking", "monitoring", "testing", "budgeting", "messaging"];
    let attempt = line.strip_prefix("error ").and_then(split_at_colon);
    attempt.is_some_and(|(attempt, cause)| {
        let verb = attempt.split(' ').next().unwrap_or_default();
        let is_topic = TOPICS.contains(&verb) && attempt == verb;
        verb.ends_with("ing")
            && verb.len() > 4
            && !is_topic
            && !cause.is_empty()
            && attempt.split(' ').count() <= MAX_WORDS
    })
}

/// Returns true if the text after a phrase leaves it a statement: nothing, punctuation or a preposition.
fn ends_phrase(rest: &str) -> bool {
    match rest.strip_prefix(' ') {
        Some(rest) => {
            let word = rest.split([' ', ':', ',']).next().unwrap_or_default();
            !rest.starts_with(char::is_alphabetic) || FOLLOWERS.contains(&word)
        }
        None => !rest.starts_with(char::is_alphanumeric),
    }
}

/// Returns true for titles such as `Failed to Launch`. A statement continues in lower case, or with a name in quotes
/// or capitals.
fn is_title(head: &str) -> bool {
    let mut words = head.split(' ');
    let is_capitalized = |word: &str| {
        let mut chars = word.chars();
        chars.next().is_some_and(char::is_uppercase) && chars.next().is_some_and(char::is_lowercase)
    };
    let lead = (words.next(), words.next());
    let next = match lead {
        (Some("Failed" | "Unable"), Some("to")) => words.next(),
        _ => None,
    };
    next.is_some_and(is_capitalized)
}

/// Returns true for `Invalid tickets: ...`, which is a list of findings, but not for `Invalid arguments: ...`, which
/// is a statement.
fn is_plural(line: &str) -> bool {
    const STATED: [&str; 16] = [
        "arguments",
        "parameters",
        "params",
        "args",
        "credentials",
        "inputs",
        "options",
        "values",
        "fields",
        "headers",
        "permissions",
        "scopes",
        "address",
        "access",
        "status",
        "parameters)",
    ];
    let word = line.split([' ', ':', ',']).nth(1).unwrap_or_default();
    word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") && !STATED.contains(&word)
}

/// Returns true for a word and a count, as in `Failed: 2, passed: 40`, unless the number is a status.
fn is_count(line: &str) -> bool {
    let Some((name, rest)) = split_at_colon(line) else { return false };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let is_status = digits == 3 && rest.starts_with(['4', '5']);
    let ends = rest[digits..].chars().next().is_none_or(|c| matches!(c, ',' | ' ' | '%' | ';' | '.'));
    digits > 0 && ends && !is_status && !name.contains(' ') && !name.ends_with("code")
}

/// Returns true if the text continues with a list of items.
fn has_list(text: &str) -> bool {
    text.lines().filter(|line| line.starts_with("- ") || line.starts_with("* ")).count() >= 2
}

/// Returns true for a level in brackets, `[ERROR] ...`, which only looks like JSON.
fn starts_with_tag(text: &str) -> bool {
    text.starts_with("[ERROR]") || text.starts_with("[Error]") || text.starts_with("[error]")
}

/// Returns true for texts such as `ValueError: ...` and `java.io.IOException: ...`.
fn starts_with_class(text: &str) -> bool {
    let Some((name, rest)) = text.split_once(':') else { return false };
    let is_name = name.len() <= 80
        && !name.is_empty()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$'));
    let last = name.rsplit('.').next().unwrap_or_default();
    let is_class = last.starts_with(|c: char| c.is_ascii_uppercase())
        && ["Error", "Exception", "Fault", "Failure"]
            .iter()
            .any(|ending| last.strip_suffix(ending).is_some_and(|stem| stem.len() > 1));
    is_name && is_class && rest.starts_with(char::is_whitespace) && !rest.trim().is_empty()
}

/// Returns true for `HTTP 404`, `HTTP error: 403`, `403 Forbidden` and `Status 500`, but not for
/// `404 is an error code`.
fn starts_with_status(line: &str) -> bool {
    const LEADS: [&str; 9] = [
        "",
        "http",
        "http error",
        "http status",
        "http/1.1",
        "http/2",
        "status code",
        "http status code",
        "api error",
    ];
    status::http_status(line).is_some_and(|(status, at)| {
        let before = line[..at].trim_end_matches([' ', ':', '(', '[']);
        let after = &line[at + 3..];
        let words = after.trim_start_matches([' ', '-', ':', ')', ']']);
        let rest = status::reason_phrases(status)
            .iter()
            .find_map(|phrase| words.strip_prefix(phrase))
            .unwrap_or(after);
        LEADS.contains(&before) && line.len() <= 300 && ends_phrase(rest)
    })
}

/// Returns true for a source location (`src/a.rs:12: ...`), a log line, a table or a diff: these are data.
fn looks_like_listing(text: &str, head: &str) -> bool {
    let line = head.lines().next().unwrap_or_default();
    let first = line.split(' ').next().unwrap_or_default();
    let is_place = first.split_once(':').is_some_and(|(path, rest)| {
        path.contains(['.', '/']) && rest.starts_with(|c: char| c.is_ascii_digit()) && !path.contains("://")
    });
    let digits = first.bytes().take_while(u8::is_ascii_digit).count();
    let is_log = first.len() >= 8
        && (digits == 4 || digits == 2 && first.contains(':'))
        && first.contains(['-', ':', 'T']);
    let is_markup = line.starts_with(['|', '<', '+', '-', '@', '$']) && !line.starts_with("<error");
    let is_bullet = text.starts_with("* ") || text.starts_with("- ");
    let is_heading = text.starts_with("# ") && text.len() > MAX_SHORT_BYTES;
    is_place || is_log || is_markup || is_bullet || is_heading || line.starts_with(VALUE) || has_levels(text)
}

/// Returns true if several lines begin with log levels, which makes the text a log.
fn has_levels(text: &str) -> bool {
    const LEVELS: [&str; 12] = [
        "INFO", "WARN", "ERROR", "DEBUG", "[INFO", "[WARN", "[ERROR", "[DEBUG", "[info", "[warn", "[error",
        "level=",
    ];
    let may_begin =
        |line: &str| matches!(line.as_bytes().first(), Some(b'I' | b'W' | b'E' | b'D' | b'[' | b'l'));
    text.lines()
        .take(4)
        .filter(|line| may_begin(line) && LEVELS.iter().any(|level| line.starts_with(level)))
        .count()
        >= 2
}
