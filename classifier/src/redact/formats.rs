//! Credential formats with a prefix that the issuer defined, so that they are recognized anywhere.

mod table;

use std::ops::Range;
pub(super) use table::ROWS;
use table::Row;

/// The characters of a credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alphabet {
    Hex = 1,
    Alnum = 2,
    /// Letters, digits, `_` and `-`.
    Url = 4,
    /// Letters, digits, `_`, `-` and `.`.
    Dotted = 8,
    /// Standard and URL-safe base64, with padding.
    Base64 = 16,
    /// The characters of the rest of a URL.
    Path = 32,
    /// Letters, digits, `_`, `-` and `%`.
    Percent = 64,
}

/// The condition that the text after the prefix must meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Check {
    /// No condition, because no word starts with this prefix.
    Any,
    /// It contains a digit or a capital letter.
    Mixed,
    /// It contains a digit.
    Digit,
    /// It contains a digit, a capital letter and a small letter.
    Both,
    /// It contains a digit and a capital letter, and has exactly the given length.
    Exact,
    /// It consists of parts of known lengths between dots.
    Parts,
    /// The prefix is an address that is kept; the text after it is the secret.
    Keep,
}

const fn alphabets_of(byte: u8) -> u8 {
    let alnum = byte.is_ascii_alphanumeric();
    let url = alnum || matches!(byte, b'_' | b'-');
    (byte.is_ascii_hexdigit() as u8)
        | (alnum as u8) << 1
        | (url as u8) << 2
        | ((url || byte == b'.') as u8) << 3
        | ((url || matches!(byte, b'+' | b'/' | b'=')) as u8) << 4
        | ((url || matches!(byte, b'.' | b'/' | b'~' | b'%' | b'+' | b'=' | b'@' | b':' | b'&' | b'?')) as u8)
            << 5
        | ((url || byte == b'%') as u8) << 6
}

const ALPHABETS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = alphabets_of(byte as u8);
        byte += 1;
    }
    table
};

/// The index of the first row for each first byte. The rows of a byte end where those of the next byte start.
const FIRST_ROW: [u16; 257] = {
    let mut starts = [0; 257];
    let mut byte = 0;
    let mut row = 0;
    while byte < 256 {
        starts[byte] = row as u16;
        while row < ROWS.len() && ROWS[row].0.as_bytes()[0] as usize == byte {
            row += 1;
        }
        byte += 1;
    }
    starts[256] = row as u16;
    assert!(row == ROWS.len(), "the rows are sorted");
    starts
};

/// The number of bytes that are examined to recognize a credential, because a hostile run may be long.
const ENOUGH: usize = 256;

/// Returns the range of the credential that starts at a position, if there is one.
pub(super) fn credential(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let rest = &bytes[start..];
    let first = usize::from(*rest.first()?);
    let rows = &ROWS[usize::from(FIRST_ROW[first])..usize::from(FIRST_ROW[first + 1])];
    rows.iter().find_map(|row| found(rest, row)).map(|found| start + found.start..start + found.end)
}

fn found(rest: &[u8], (prefix, at_least, alphabet, check): &Row) -> Option<Range<usize>> {
    // Most rows with the same first byte differ in the second byte.
    if rest.get(1) != prefix.as_bytes().get(1) {
        return None;
    }
    let tail = rest.strip_prefix(prefix.as_bytes())?;
    if tail.len() < *at_least {
        return None;
    }
    let is_inside = |byte: &&u8| ALPHABETS[usize::from(**byte)] & *alphabet as u8 != 0;
    let length = tail.iter().take(ENOUGH).take_while(is_inside).count();
    let text = &tail[..length];
    let has = |is: fn(&u8) -> bool| text.iter().any(is);
    let (digit, capital) = (|| has(u8::is_ascii_digit), || has(u8::is_ascii_uppercase));
    let is_proven = match check {
        Check::Any | Check::Keep => true,
        Check::Mixed => digit() || capital(),
        Check::Digit => digit(),
        Check::Both => digit() && capital() && has(u8::is_ascii_lowercase),
        Check::Exact => length == *at_least && digit() && capital(),
        Check::Parts => has_known_parts(&rest[..prefix.len() + length]),
    };
    if length < *at_least || !is_proven {
        return None;
    }
    // Adjacent characters are redacted as well, which is better than leaving half of a credential.
    let mask = *alphabet as u8 | Alphabet::Url as u8;
    let end = tail.iter().position(|byte| ALPHABETS[usize::from(*byte)] & mask == 0).unwrap_or(tail.len());
    let end = tail[..end].iter().rposition(|byte| !b".:?&".contains(byte)).map_or(0, |last| last + 1);
    let start = if *check == Check::Keep { prefix.len() } else { 0 };
    Some(start..prefix.len() + end)
}

/// Returns true if the parts of a token have the lengths of Airtable's, Harness's or Discord's tokens.
fn has_known_parts(token: &[u8]) -> bool {
    const SHAPES: [&[Range<usize>]; 3] =
        [&[17..18, 60..65], &[3..4, 20..25, 20..27, 18..24], &[23..29, 6..8, 27..39]];
    let fits = |shape: &&[Range<usize>]| {
        let mut parts = token.split(|&byte| byte == b'.');
        shape.iter().all(|range| parts.next().is_some_and(|part| range.contains(&part.len())))
    };
    SHAPES.iter().any(fits)
}

/// The number of bytes in which the end of a JWT header is searched. Headers are short.
const JWT_HEADER: usize = 512;

/// Returns true for a JSON web token: `eyJ...` and at least one more part.
pub(super) fn is_jwt(run: &[u8]) -> bool {
    run.starts_with(b"eyJ") && run.len() >= 20 && run.iter().take(JWT_HEADER).any(|&byte| byte == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_credential(text: &str) -> bool {
        credential(text.as_bytes(), 0).is_some_and(|found| found.end == text.len())
    }

    #[test]
    fn words_that_begin_like_a_credential_are_words() {
        for word in [
            "sk-learn-based-pipelines",
            "npm_config_registry_location",
            "hf_transformers_library",
            "key-value-store-of-the-service",
            "patterns.of.some.module.that.has.a.very.long.dotted.path.of.names.v2",
            "secret_manager_of_the_production_cluster",
            "re_export_of_the_whole_module_tree",
        ] {
            assert!(!is_credential(word), "{word}");
        }
        for credential in
            ["ghp_0123456789abcdefABCDEF0123456789abcd", "sk-proj-A1b2C3d4E5f6G7", "AKIAIOSFODNN7EXAMPLE"]
        {
            assert!(is_credential(credential), "{credential}");
        }
        assert!(is_jwt(b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"));
        assert!(!is_jwt(b"eyJustAWordWithoutDots"));
    }

    #[test]
    fn every_row_can_be_found() {
        for (prefix, at_least, alphabet, check) in ROWS {
            let filler = if alphabet == Alphabet::Hex { "0aF9" } else { "0aZ9" };
            let tail: String = filler.chars().cycle().take(at_least).collect();
            let text = format!("{prefix}{tail}");
            let expected = match check {
                Check::Parts => continue,
                Check::Keep => prefix.len()..text.len(),
                _ => 0..text.len(),
            };
            assert_eq!(credential(text.as_bytes(), 0), Some(expected), "{text}");
        }
    }
}
