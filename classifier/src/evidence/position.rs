//! The position of a wording in a text: whether it forms separate words, and how much its position counts.

use super::Pattern;
use super::normalize::Normalized;

/// Words that may follow a pattern inside one identifier: `rate_limit_error`, `AccessDeniedException`.
const ERROR_WORDS: [&str; 8] = ["error", "exception", "fault", "failure", "err", "errors", "problem", "code"];

/// Returns true if a wording forms separate words: it is not part of a longer word, of a file name or of an identifier
/// that continues.
pub(super) fn fits(form: &Normalized, pattern: &Pattern, start: usize, end: usize) -> bool {
    let text = &form.text;
    // Scripts that do not separate words with spaces have no word boundaries to check.
    let is_letter = |c: char| c.is_alphanumeric() && u32::from(c) < 0x2e80;
    let before = text[..start].chars().next_back();
    let first = text[start..].chars().next();
    if first.is_some_and(is_letter) && before.is_some_and(is_letter) {
        return false;
    }
    if pattern.is_class
        && !text[start..end].bytes().zip(&form.is_joint[start..end]).all(|(b, j)| b != b' ' || *j)
    {
        return false;
    }
    if pattern.is_stem {
        return true;
    }
    let mut after = text[end..].chars();
    let next = after.next();
    if text[..end].chars().next_back().is_some_and(is_letter) && next.is_some_and(is_letter) {
        return false;
    }
    if next == Some('.') && after.next().is_some_and(is_letter) {
        return false;
    }
    let goes_on = next == Some(' ') && form.is_joint.get(end) == Some(&true);
    !goes_on || {
        let word = text[end + 1..].split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        ERROR_WORDS.contains(&word)
    }
}

/// Words that introduce a name: in "missing parameter: timeout" nothing timed out.
const NAME_LEADS: [&str; 12] = [
    "parameter: ",
    "parameter ",
    "parameters: ",
    "argument: ",
    "argument ",
    "arguments: ",
    "field: ",
    "fields: ",
    "property: ",
    "property ",
    "option: ",
    "param: ",
];

/// The part of a text that describes what happened.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Focus {
    /// The start of the text, or of the words that introduce the cause.
    pub(super) from: usize,
    /// True if advice has begun since then.
    pub(super) is_advice: bool,
}

impl Focus {
    /// Returns the factor of a position, in tenths: the first sentence counts most, advice and quoted names count
    /// least.
    pub(super) fn factor(self, form: &Normalized, start: usize, end: usize) -> i32 {
        let by_distance = match start - self.from {
            0..=200 => 10,
            201..=500 => 7,
            501..=1500 => 4,
            _ => 2,
        };
        let quoted = |at: usize| form.is_quoted.get(at) == Some(&true);
        let is_value = quoted(start) && quoted(end.saturating_sub(1))
            || NAME_LEADS.iter().any(|lead| form.text[..start].ends_with(lead));
        match (self.is_advice, is_value) {
            (true, _) => (by_distance * 3 / 10).max(1),
            (false, true) => (by_distance * 4 / 10).max(1),
            (false, false) => by_distance,
        }
    }
}
