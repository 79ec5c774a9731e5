//! Errors in registry files.

use thiserror::Error;

/// The reason for which a file was rejected. Nothing of the file is used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{file}:{line}: {reason}")]
pub struct RegistryError {
    /// The name of the file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The problem and its remedy.
    pub reason: String,
}

/// Returns the line that contains a byte offset, counted from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|&byte| byte == b'\n').count()
}

/// Parses TOML. An error states the line.
pub(super) fn parse<T: serde::de::DeserializeOwned>(file: &str, text: &str) -> Result<T, RegistryError> {
    toml::from_str(text).map_err(|error| RegistryError {
        file: file.to_owned(),
        line: line_of(text, error.span().map_or(0, |span| span.start)),
        reason: error.message().trim_end().to_owned(),
    })
}

/// Returns the closest of the allowed words, for a helpful error message.
pub(super) fn nearest<'a>(word: &str, allowed: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = word.to_ascii_lowercase();
    allowed
        .into_iter()
        .map(|candidate| (distance(&wanted, &candidate.to_ascii_lowercase()), candidate))
        .min()
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3))
        .map(|(_, candidate)| candidate)
}

/// Returns the edit distance of two words of a few letters.
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
