//! Where a wording stands: whether it is words of its own there, and how much the place counts.

use super::Pattern;
use super::normalize::Normalized;

/// Words that may follow a pattern inside one identifier: `rate_limit_error`, `AccessDeniedException`.
const ERROR_WORDS: [&str; 8] = ["error", "exception", "fault", "failure", "err", "errors", "problem", "code"];

/// True when a wording stands there as words of its own: not as part of a longer word, of a file's name or of
/// an identifier that goes on.
pub(super) fn fits(form: &Normalized, pattern: &Pattern, start: usize, end: usize) -> bool {
    let text = &form.text;
    // Scripts that do not part words with spaces have no borders to look at.
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

/// What a name follows: in "missing parameter: timeout" nothing timed out.
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

/// Where in a text what happened is told.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Focus {
    /// The start of the text, or of the words that announce the cause.
    pub(super) from: usize,
    /// Advice has begun since.
    pub(super) is_advice: bool,
}

impl Focus {
    /// How much a place counts, in tenths: the first sentence most, advice and quoted names least.
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
