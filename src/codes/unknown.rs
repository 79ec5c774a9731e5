//! What is said about a code without an entry: what it would be taken for, and what may have been meant.

use super::Code;
use crate::terminal::safe;
use std::collections::BTreeMap;
use taxonomy::registry::Range;
use taxonomy::{Category, Registry};

/// Suggestions that are shown; more would be a list.
const SUGGESTIONS: usize = 5;
/// Numbers this close to another are suggested.
const NUMBERS_APART: u64 = 5;

/// All that can be said. `named` are entries of the code that the options left out.
pub(super) fn explanation(code: &str, named: &[Code<'_>], known: &[Code<'_>], registry: &Registry) -> String {
    let shown = safe(code);
    if !named.is_empty() {
        let dialects: Vec<String> =
            named.iter().map(|code| format!("{} ({})", code.dialect, code.entry.meaning.category)).collect();
        return format!(
            "'{shown}' is not there, but in: {}; leave out --dialect and --category",
            dialects.join(", ")
        );
    }
    let mut lines = vec![format!("no dialect has an entry for '{shown}'")];
    match code.parse::<i64>() {
        Ok(number) => lines.extend(by_range(number, registry)),
        Err(_) => lines.push(by_name(code, registry)),
    }
    let near = near(code, known);
    if !near.is_empty() {
        lines.push(format!("Near it: {}", near.join(", ")));
    }
    lines.push("List what there is with: faultline codes".to_owned());
    lines.join("\n  ")
}

/// A number is taken for what its range says, and ranges belong to dialects.
fn by_range(number: i64, registry: &Registry) -> Vec<String> {
    let mut ranges: Vec<&Range> =
        registry.ranges().iter().filter(|range| range.numbers.contains(&number)).collect();
    ranges.sort_by_key(|range| range.numbers.end() - range.numbers.start());
    if ranges.is_empty() {
        return vec![UNPLACED.to_owned()];
    }
    ranges.into_iter().map(in_range).collect()
}

/// How a code is placed that neither a range nor a prefix knows.
const UNPLACED: &str =
    "It would be UNKNOWN, unless the payload names a category, a status or a telling message";

fn in_range(range: &Range) -> String {
    let (low, high) = (range.numbers.start(), range.numbers.end());
    let place = format!("in {}, by its range {} ({low} to {high})", range.dialect, range.name);
    match range.category {
        Category::Unknown => format!("It would be UNKNOWN {place}, unless a status or the message tells"),
        category => format!("It would be taken for {category} {place}"),
    }
}

/// A name is taken for what its prefix says; it may also be a word of another list.
fn by_name(code: &str, registry: &Registry) -> String {
    if Category::from_word(code).is_some() {
        return format!("It is a category; list its codes with: faultline codes --category {code}");
    }
    if let Some(audit) = registry.audits().iter().find(|audit| audit.event == code || audit.canonical == code)
    {
        return format!("It is an audit event, not a failure: {}", audit.description);
    }
    match registry.category(code) {
        Category::Unknown => UNPLACED.to_owned(),
        category => {
            format!("It would be taken for {category} in every dialect, by what its name starts with")
        }
    }
}

/// Names that differ by a few letters, or numbers next to it, nearest first.
fn near(code: &str, known: &[Code<'_>]) -> Vec<String> {
    let number = code.parse::<i64>().ok();
    let mut near: BTreeMap<(u64, String), ()> = BTreeMap::new();
    for known in known {
        let entry = known.entry;
        match (number, entry.code.parse::<i64>()) {
            (Some(number), Ok(other)) if number.abs_diff(other) <= NUMBERS_APART => {
                let shown = format!("{other} {} ({})", safe(&entry.name), known.dialect);
                near.insert((number.abs_diff(other), shown), ());
            }
            (Some(_), _) => {}
            (None, _) => {
                for name in [&entry.code, &entry.name, &entry.canonical] {
                    if let Some(distance) = likeness(code, name) {
                        near.insert((distance, safe(name).into_owned()), ());
                    }
                }
            }
        }
    }
    near.into_keys().map(|(_, name)| name).take(SUGGESTIONS).collect()
}

/// How far apart two names are, when that is near enough to be a slip.
fn likeness(wanted: &str, name: &str) -> Option<u64> {
    let longest = wanted.chars().count().max(name.chars().count());
    // A name much longer than any of ours is no slip, and measuring it would take its time.
    let distance =
        (longest <= 100).then(|| distance(&wanted.to_ascii_lowercase(), &name.to_ascii_lowercase()))?;
    (distance <= longest.div_ceil(4)).then_some(distance as u64)
}

/// Letters to change, add or drop to get from one to the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        assert_eq!(likeness("TOKEN_EXPIERD", "TOKEN_EXPIRED"), Some(2));
        assert_eq!(likeness("token_expired", "TOKEN_EXPIRED"), Some(0));
        assert_eq!(likeness("TOKEN_EXPIRED", "QUOTA_PAUSED"), None);
        assert_eq!(likeness(&"x".repeat(1_000_000), "TOKEN_EXPIRED"), None);
    }
}
