//! What can be wrong with a registry file.

use thiserror::Error;

/// A file that was refused: where, and why. Nothing of it is used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {reason}")]
pub struct RegistryError {
    /// The name it was read under.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub reason: String,
}

/// The line that a byte offset is on, counted from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

/// Reads TOML, or says on which line it cannot be read.
pub(super) fn parse<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, RegistryError> {
    toml::from_str(text).map_err(|error| RegistryError {
        file: file.to_owned(),
        line: line_of(text, error.span().map_or(0, |span| span.start)),
        reason: error.message().trim_end().to_owned(),
    })
}

/// Closest of the allowed words, for a helpful refusal.
pub(super) fn nearest<'a>(word: &str, allowed: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = word.to_ascii_lowercase();
    allowed
        .into_iter()
        .map(|candidate| (distance(&wanted, &candidate.to_ascii_lowercase()), candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3))
        .map(|(_, candidate)| candidate)
}

/// Edit distance, for words of a few letters.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_miss_is_suggested() {
        assert_eq!(nearest("RATE_LIMT", ["VALIDATION", "RATE_LIMIT"]), Some("RATE_LIMIT"));
        assert_eq!(nearest("erlmpc", ["erlmcp", "jsonrpc"]), Some("erlmcp"));
        assert_eq!(nearest("zzz", ["erlmcp", "jsonrpc"]), None);
    }
}
