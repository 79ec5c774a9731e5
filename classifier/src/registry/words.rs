//! Words and their stems, which are used to check whether a message mentions the name of a code.
//!
//! A message mentions `RATE_LIMITED` if it contains "Rate limit exceeded", and `Request timed out` if it contains
//! "request timeout". Words are compared by a crude stem, which is sufficient for the few dozen words in names.

/// Returns the stems of the words in a name: `TOOL_NOT_FOUND` gives tool, not, found.
pub(super) fn stems(name: &str) -> Vec<String> {
    let name = joined(&name.to_ascii_lowercase().replace('_', " "));
    name.split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty() && *word != "is" && *word != "with")
        .map(|word| stem(word).to_owned())
        .collect()
}

/// Returns true if every stem is the beginning of some word in the message.
pub(crate) fn all_in(stems: &[String], message: &str) -> bool {
    !stems.is_empty() && stems.iter().all(|stem| is_in(stem, message))
}

fn is_in(stem: &str, message: &str) -> bool {
    let starts = |text: &str, start: &str| {
        text.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start))
    };
    let words = || message.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let is_time = |word: &str| starts(word, "time");
    words().any(|word| starts(word, stem))
        || stem == "timeout"
            && words().zip(words().skip(1)).any(|(a, b)| is_time(a) && b.eq_ignore_ascii_case("out"))
}

/// Replaces "timed out" and "time out" with one word.
fn joined(text: &str) -> String {
    text.replace("timed out", "timeout").replace("time out", "timeout")
}

fn stem(word: &str) -> &str {
    ["ing", "ed", "es", "s"]
        .iter()
        .find_map(|ending| word.strip_suffix(ending).filter(|stem| stem.len() >= 4))
        .unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stands_in(name: &str, message: &str) -> bool {
        all_in(&stems(name), message)
    }

    #[test]
    fn names_stand_in_their_messages() {
        for (name, message) in [
            ("TOOL_NOT_FOUND", "Tool not found"),
            ("Resource not found", "resource not found: mcp://x"),
            ("Request timed out", "MCP error -32001: Request timed out"),
            ("Request timed out", "request timeout"),
            ("RATE_LIMITED", "Rate limit exceeded"),
            ("Connection closed", "connection closing"),
        ] {
            assert!(stands_in(name, message), "{name} / {message}");
        }
        for (name, message) in [
            ("TOOL_NOT_FOUND", "Resource not found"),
            ("Request timed out", "Resource not found"),
            ("Connection closed", "Custom server error"),
        ] {
            assert!(!stands_in(name, message), "{name} / {message}");
        }
    }
}
