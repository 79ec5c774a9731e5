//! Finds all secrets in one pass over a text.
//!
//! `candidates` returns the positions to examine: words that start like a secret, and signs, around which both sides
//! are examined. A word may extend to the end of its run (letters, digits, `_`, `-`, `.`), which all words of the run
//! share. Each step moves forward and examines a bounded distance, so hostile texts cost no more than others.

use super::candidates::{next_candidate, passed_over, starts_credential};
use super::formats::{credential, is_jwt};
use super::schemes::bearer;
use super::{REDACTED, Redactor, Rule, card};
use std::borrow::Cow;
use std::ops::Range;

/// The distance around a sign within which the other half of a secret is searched.
pub(super) const REACH: usize = 256;

/// The replacement of a secret.
pub(super) enum Mark {
    Redacted,
    Token,
}

pub(super) type Found = (Range<usize>, Mark);

impl Redactor {
    /// Replaces every secret of a text. `first_place` is the position of its first candidate.
    pub(super) fn scan<'t>(&self, text: &'t str, first_place: usize) -> Cow<'t, str> {
        let bytes = text.as_bytes();
        let mut out = String::new();
        let (mut kept, mut place) = (0, Some(first_place));
        while let Some((secret, mark)) = self.next_secret(bytes, kept, place) {
            // The examined distance is bounded, so it may end inside a character.
            let secret =
                text.floor_char_boundary(secret.start).max(kept)..text.ceil_char_boundary(secret.end);
            out.push_str(&text[kept..secret.start]);
            match mark {
                Mark::Redacted => out.push_str(REDACTED),
                Mark::Token => out.push_str(&self.token_mark(&text[secret.clone()])),
            }
            kept = secret.end;
            place = next_candidate(bytes, kept);
        }
        if kept == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[kept..]);
        Cow::Owned(out)
    }

    /// Returns the next secret at the candidate `next` or after it. Nothing before `from` can be part of it.
    fn next_secret(&self, bytes: &[u8], from: usize, mut next: Option<usize>) -> Option<Found> {
        // The words of a run share its end, so that a long run is not searched from each of them.
        let mut run_ends = 0;
        while let Some(place) = next {
            let found = match bytes[place] {
                b'@' => self.at_sign(bytes, place..place + 1, from),
                b'=' => self.assignment(bytes, place..place + 1, from),
                b':' => self
                    .assignment(bytes, place..place + 1, from)
                    .or_else(|| self.telegram_token(bytes, place, from)),
                b'%' => self.encoded_sign(bytes, place, from),
                b'-' => self
                    .private_key(bytes, place)
                    .or_else(|| self.option(bytes, place))
                    .or_else(|| self.hex_with_dash(bytes, place, from)),
                b'[' | b'(' => self.pair(bytes, place),
                b'<' | b'&' => self.element(bytes, place),
                b'~' => self.azure_secret(bytes, place, from),
                b'\\' => None,
                _ => {
                    if place >= run_ends {
                        run_ends = run_end(bytes, place);
                    }
                    self.at_word(bytes, place..run_ends)
                }
            };
            if found.is_some() {
                return found;
            }
            next = next_candidate(bytes, place + passed_over(&bytes[place..]));
        }
        None
    }

    /// Returns a secret that starts at a word and extends to the end of its run, or into the next one.
    fn at_word(&self, bytes: &[u8], word: Range<usize>) -> Option<Found> {
        if bytes[word.start].is_ascii_digit() && bytes.get(word.start + 1) != Some(&b'/') {
            let end = self.is_on(Rule::Card).then(|| card::ends_at(bytes, word.start)).flatten()?;
            return Some((word.start..end, Mark::Redacted));
        }
        let text = &bytes[word.clone()];
        let is_inside = word.start > 0 && bytes[word.start - 1] == b'_';
        if !is_inside
            && let Some(length) = confirmation_token(text, bytes.get(word.end).copied())
            && self.is_on(Rule::ConfirmationToken)
        {
            return Some((word.start..word.start + length, Mark::Token));
        }
        if self.is_on(Rule::Jwt) && is_jwt(text) {
            return Some((word, Mark::Redacted));
        }
        if starts_credential(bytes, word.start)
            && self.is_on(Rule::KnownFormat)
            && let Some(found) = credential(bytes, word.start)
        {
            return Some((found, Mark::Redacted));
        }
        if is_inside {
            return None;
        }
        let scheme = || self.is_on(Rule::Bearer).then(|| bearer(bytes, word.clone())).flatten();
        scheme().or_else(|| self.phrase(bytes, word.start))
    }

    /// Returns a PEM block up to its end, or up to the end of the text if the block was cut off.
    pub(super) fn private_key(&self, bytes: &[u8], start: usize) -> Option<Found> {
        if !bytes[start..].starts_with(b"-----BEGIN") || !self.is_on(Rule::PrivateKey) {
            return None;
        }
        let header = &bytes[start..bytes.len().min(start + 80)];
        let names = [&b"PRIVATE KEY"[..], b"PRIVATE+KEY", b"PRIVATE%20KEY"];
        names.iter().find_map(|name| memchr::memmem::find(header, name))?;
        let footer = memchr::memmem::find(&bytes[start..], b"-----END").map(|at| start + at + 9);
        let end = footer.and_then(|at| Some(at + memchr::memmem::find(bytes.get(at..)?, b"-----")? + 5));
        Some((start..end.unwrap_or(bytes.len()), Mark::Redacted))
    }

    /// Handles `%3D`, `%3A` and `%40` like `=`, `:` and `@`.
    fn encoded_sign(&self, bytes: &[u8], place: usize, from: usize) -> Option<Found> {
        let (code, sign) = match bytes[place + 1..] {
            // The sign is encoded twice.
            [b'2', b'5', high, low, ..] => ([high, low], place..place + 5),
            [high, low, ..] => ([high, low], place..place + 3),
            _ => return None,
        };
        match &code {
            b"3D" | b"3d" | b"3A" | b"3a" => self.assignment(bytes, sign, from),
            b"40" => self.at_sign(bytes, sign, from),
            _ => None,
        }
    }

    /// Returns the token of a Telegram bot, `123456789:AA...`. `colon` is the position of its colon.
    fn telegram_token(&self, bytes: &[u8], colon: usize, from: usize) -> Option<Found> {
        const LENGTH: usize = 30;
        let tail = &bytes[colon + 1..bytes.len().min(colon + 1 + REACH)];
        if !tail.starts_with(b"AA") || !self.is_on(Rule::KnownFormat) {
            return None;
        }
        let length =
            tail.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte)).count();
        let before = &bytes[from.max(colon.saturating_sub(16))..colon];
        let digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        ((8..=12).contains(&digits) && length >= LENGTH)
            .then_some((colon - digits..colon + 1 + length, Mark::Redacted))
    }

    /// Returns a key of Mailchimp, `<32 hex digits>-us12`, or of Mailgun, `<32>-<8>-<8>`. `dash` is its first dash.
    fn hex_with_dash(&self, bytes: &[u8], dash: usize, from: usize) -> Option<Found> {
        const LENGTH: usize = 32;
        let start = dash.checked_sub(LENGTH).filter(|start| *start >= from)?;
        let is_hex = |text: &[u8]| text.iter().all(u8::is_ascii_hexdigit);
        if !is_hex(&bytes[start..dash]) || !self.is_on(Rule::KnownFormat) {
            return None;
        }
        let end = match &bytes[dash + 1..] {
            [b'u', b's', digits @ ..] => {
                let count = digits.iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
                (1..=2).contains(&count).then_some(dash + 3 + count)?
            }
            rest => {
                let tail = rest.get(..17)?;
                (is_hex(&tail[..8]) && tail[8] == b'-' && is_hex(&tail[9..])).then_some(dash + 18)?
            }
        };
        let starts = start == from || !bytes[start - 1].is_ascii_alphanumeric() && bytes[start - 1] != b'-';
        let ends = bytes.get(end).is_none_or(|byte| !byte.is_ascii_alphanumeric());
        (starts && ends).then_some((start..end, Mark::Redacted))
    }

    /// Returns a client secret of Azure: three characters, a digit, `Q~` and 31 to 34 more. `tilde` is the position of
    /// `~`.
    fn azure_secret(&self, bytes: &[u8], tilde: usize, from: usize) -> Option<Found> {
        let start = tilde.checked_sub(5).filter(|start| *start >= from)?;
        let is_inside = |byte: &u8| is_run(*byte) || *byte == b'~';
        let length = bytes[tilde..].iter().take(64).take_while(|byte| is_inside(byte)).count();
        let fits =
            bytes[start..tilde].iter().all(is_inside) && bytes[tilde - 2].is_ascii_digit() && length > 30;
        (fits && self.is_on(Rule::KnownFormat)).then_some((start..tilde + length, Mark::Redacted))
    }
}

/// Returns true for letters, digits and the signs that credentials consist of.
pub(super) const fn is_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn run_end(bytes: &[u8], start: usize) -> usize {
    bytes[start..].iter().position(|&byte| !is_run(byte)).map_or(bytes.len(), |length| start + length)
}

/// Words in the names of settings: `conf_file` is a setting and not a confirmation token.
#[rustfmt::skip]
const SETTING_WORDS: [&str; 48] = [
    "file", "files", "dir", "dirs", "path", "paths", "name", "names", "key", "keys", "value", "values",
    "version", "map", "loader", "parser", "reader", "writer", "reload", "load", "parse", "check", "test",
    "error", "errors", "failed", "invalid", "missing", "matrix", "level", "score", "threshold", "interval",
    "int", "type", "types", "set", "get", "str", "dict", "data", "list", "root", "home", "default", "defaults",
    "module", "d",
];

/// Returns the length of a `conf_*` or `quota_continue_*` token at the start of a run.
fn confirmation_token(run: &[u8], after: Option<u8>) -> Option<usize> {
    let prefix = match run.first()? {
        b'c' => &b"conf_"[..],
        b'q' => &b"quota_continue_"[..],
        _ => return None,
    };
    let tail = run.strip_prefix(prefix)?;
    let length = tail.iter().take_while(|&&byte| byte != b'.').count();
    let is_setting = || {
        let word = |part: &[u8]| SETTING_WORDS.iter().any(|word| word.as_bytes() == part);
        let name = &tail[..length.min(64)];
        let is_plain = name.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_');
        // `conf_reloaded=true` and `conf_parser.py` are names as well.
        let has_ending = tail.get(length + 1).is_some_and(u8::is_ascii_alphabetic);
        let is_name = || has_ending || matches!(after, Some(b'=' | b'('));
        length <= 64
            && prefix.len() == 5
            && is_plain
            && (is_name() || name.split(|&byte| byte == b'_').all(word))
    };
    (length > 0 && !is_setting()).then_some(prefix.len() + length)
}
