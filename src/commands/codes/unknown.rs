//! The explanation of a code without an entry: its inferred category, and similar codes.

use super::Code;
use crate::cli::terminal::sanitize;
use classifier::registry::Range;
use classifier::{Category, Registry};
use std::collections::BTreeMap;

/// The maximum number of suggestions.
const MAX_SUGGESTIONS: usize = 5;
/// The maximum distance between a number and a suggested one.
const NEARBY_NUMBERS: u64 = 5;

/// Explains a code that is not listed. `filtered_out` are entries of the code that do not match the options.
pub(super) fn explain_unknown(
    code: &str,
    filtered_out: &[Code<'_>],
    known: &[Code<'_>],
    registry: &Registry,
) -> String {
    let shown = sanitize(code);
    if !filtered_out.is_empty() {
        let dialects: Vec<String> = filtered_out
            .iter()
            .map(|code| format!("{} ({})", code.dialect, code.entry.meaning.category))
            .collect();
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
    let suggestions = suggestions(code, known);
    if !suggestions.is_empty() {
        lines.push(format!("Near it: {}", suggestions.join(", ")));
    }
    lines.push("List what there is with: faultline codes".to_owned());
    lines.join("\n  ")
}

/// Explains a number by the ranges that contain it, each of which belongs to a dialect.
fn by_range(number: i64, registry: &Registry) -> Vec<String> {
    let mut ranges: Vec<&Range> =
        registry.ranges().iter().filter(|range| range.numbers.contains(&number)).collect();
    ranges.sort_by_key(|range| range.numbers.end() - range.numbers.start());
    if ranges.is_empty() {
        return vec![UNCLASSIFIED.to_owned()];
    }
    ranges.into_iter().map(in_range).collect()
}

/// The explanation of a code that matches neither a range nor a prefix.
const UNCLASSIFIED: &str =
    "It would be UNKNOWN, unless the payload names a category, a status or a telling message";

fn in_range(range: &Range) -> String {
    let (low, high) = (range.numbers.start(), range.numbers.end());
    let range_text = format!("in {}, by its range {} ({low} to {high})", range.dialect, range.name);
    match range.category {
        Category::Unknown => {
            format!("It would be UNKNOWN {range_text}, unless a status or the message tells")
        }
        category => format!("It would be taken for {category} {range_text}"),
    }
}

/// Explains a name by its prefix; it may also be a category or an audit event.
fn by_name(code: &str, registry: &Registry) -> String {
    if Category::from_name(code).is_some() {
        return format!("It is a category; list its codes with: faultline codes --category {code}");
    }
    if let Some(audit) = registry.audits().iter().find(|audit| audit.event == code || audit.canonical == code)
    {
        return format!("It is an audit event, not a failure: {}", audit.description);
    }
    match registry.category(code) {
        Category::Unknown => UNCLASSIFIED.to_owned(),
        category => {
            format!("It would be taken for {category} in every dialect, by what its name starts with")
        }
    }
}

/// Returns similar names or nearby numbers, the nearest first.
fn suggestions(code: &str, known: &[Code<'_>]) -> Vec<String> {
    let number = code.parse::<i64>().ok();
    let mut suggestions: BTreeMap<(u64, String), ()> = BTreeMap::new();
    for known in known {
        let entry = known.entry;
        match (number, entry.code.parse::<i64>()) {
            (Some(number), Ok(other)) if number.abs_diff(other) <= NEARBY_NUMBERS => {
                let shown = format!("{other} {} ({})", sanitize(&entry.name), known.dialect);
                suggestions.insert((number.abs_diff(other), shown), ());
            }
            (Some(_), _) => {}
            (None, _) => {
                for name in [&entry.code, &entry.name, &entry.canonical] {
                    if let Some(edit_distance) = typo_distance(code, name) {
                        suggestions.insert((edit_distance, sanitize(name).into_owned()), ());
                    }
                }
            }
        }
    }
    suggestions.into_keys().map(|(_, name)| name).take(MAX_SUGGESTIONS).collect()
}

/// Returns the edit distance of two names, if it is small enough for a typing error.
fn typo_distance(wanted: &str, name: &str) -> Option<u64> {
    let longest = wanted.chars().count().max(name.chars().count());
    // A name much longer than any in the registry is not a typing error, and computing the distance would be slow.
    let edit_distance =
        (longest <= 100).then(|| edit_distance(&wanted.to_ascii_lowercase(), &name.to_ascii_lowercase()))?;
    (edit_distance <= longest.div_ceil(4)).then_some(edit_distance as u64)
}

/// Returns the number of letters to change, add or remove to turn one text into the other.
fn edit_distance(a: &str, b: &str) -> usize {
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
        assert_eq!(typo_distance("TOKEN_EXPIERD", "TOKEN_EXPIRED"), Some(2));
        assert_eq!(typo_distance("token_expired", "TOKEN_EXPIRED"), Some(0));
        assert_eq!(typo_distance("TOKEN_EXPIRED", "QUOTA_PAUSED"), None);
        assert_eq!(typo_distance(&"x".repeat(1_000_000), "TOKEN_EXPIRED"), None);
    }
}
