//! One pass over a text that finds every secret in it.
//!
//! `places` says where a look is worth it: at a word that starts like a secret, and at the signs `@`, `=`,
//! `:`, which are looked at from both sides. A word may reach to the end of its run (letters, digits, `_`,
//! `-`, `.`), which the words of a run share. Each step moves forward and looks a bounded distance around,
//! so hostile texts cost no more than others.

use super::formats::{is_credential, is_jwt, looks_random};
use super::keys::KeyKind;
use super::places::{mark_length, next_place, passed_over};
use super::{REDACTED, Redactor, Rule, card};
use std::borrow::Cow;
use std::ops::Range;

/// How far around a sign we look for the other half of a secret.
const REACH: usize = 256;

/// What takes the place of a secret.
enum Mark {
    Redacted,
    Token,
}

type Found = (Range<usize>, Mark);

impl Redactor {
    /// Replaces every secret of a text, of which the first place worth a look is known.
    pub(super) fn scan<'t>(&self, text: &'t str, first_place: usize) -> Cow<'t, str> {
        let bytes = text.as_bytes();
        let mut out = String::new();
        let (mut kept, mut place) = (0, Some(first_place));
        while let Some((secret, mark)) = self.next_secret(bytes, kept, place) {
            // We look a bounded distance around, which may end within a character.
            let secret =
                text.floor_char_boundary(secret.start).max(kept)..text.ceil_char_boundary(secret.end);
            out.push_str(&text[kept..secret.start]);
            match mark {
                Mark::Redacted => out.push_str(REDACTED),
                Mark::Token => out.push_str(&self.token_mark(&text[secret.clone()])),
            }
            kept = secret.end;
            place = next_place(bytes, kept);
        }
        if kept == 0 {
            return Cow::Borrowed(text);
        }
        out.push_str(&text[kept..]);
        Cow::Owned(out)
    }

    /// The next secret, at `next` or after it; nothing before `from` can be part of it.
    fn next_secret(&self, bytes: &[u8], from: usize, mut next: Option<usize>) -> Option<Found> {
        // The words of one run share its end, so that a long run is not searched from each of them.
        let mut run_ends = 0;
        while let Some(place) = next {
            let found = match bytes[place] {
                b'@' => self.email(bytes, place, from).or_else(|| self.url_credentials(bytes, place, from)),
                b'=' | b':' => self.assignment(bytes, place, from),
                b'-' => self.private_key(bytes, place),
                b'[' | b'\\' => None,
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
            next = next_place(bytes, place + passed_over(&bytes[place..]));
        }
        None
    }

    /// A secret that starts at a word and reaches up to the end of its run, or into the next.
    fn at_word(&self, bytes: &[u8], word: Range<usize>) -> Option<Found> {
        let text = &bytes[word.clone()];
        let first = *text.first()?;
        if first.is_ascii_digit() {
            let end = self.is_on(Rule::Card).then(|| card::ends_at(bytes, word.start)).flatten()?;
            return Some((word.start..end, Mark::Redacted));
        }
        if text.len() < 5 {
            return None;
        }
        if let Some(length) = confirmation_token(text)
            && self.is_on(Rule::ConfirmationToken)
        {
            return Some((word.start..word.start + length, Mark::Token));
        }
        if self.is_on(Rule::Jwt) && is_jwt(text) || self.is_on(Rule::KnownFormat) && is_credential(text) {
            return Some((word, Mark::Redacted));
        }
        self.is_on(Rule::Bearer).then(|| bearer(bytes, word)).flatten()
    }

    /// A PEM block up to its end, or to the end of the text when that was cut.
    fn private_key(&self, bytes: &[u8], start: usize) -> Option<Found> {
        if !bytes[start..].starts_with(b"-----BEGIN ") || !self.is_on(Rule::PrivateKey) {
            return None;
        }
        let header = &bytes[start..bytes.len().min(start + 64)];
        memchr::memmem::find(header, b"PRIVATE KEY")?;
        let footer = memchr::memmem::find(&bytes[start..], b"-----END ").map(|at| start + at + 9);
        let end = footer.and_then(|at| Some(at + memchr::memmem::find(&bytes[at..], b"-----")? + 5));
        Some((start..end.unwrap_or(bytes.len()), Mark::Redacted))
    }

    /// `local@domain.tld`, seen from its sign.
    fn email(&self, bytes: &[u8], sign: usize, from: usize) -> Option<Found> {
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        let is_local = |byte: &u8| is_letter(byte) || b"._%+-".contains(byte);
        let before = &bytes[from.max(sign.saturating_sub(REACH))..sign];
        let local = before.iter().rev().take_while(|byte| is_local(byte)).count();
        let is_domain = |byte: &u8| is_letter(byte) || matches!(byte, b'.' | b'-');
        let domain = bytes[sign + 1..].iter().take(REACH).take_while(|byte| is_domain(byte)).count();
        let domain = bytes[sign + 1..sign + 1 + domain].trim_ascii_end_matches(b".-");
        let top = domain.rsplit(|&byte| byte == b'.').next()?;
        let plausible = local > 0
            && top.len() >= 2
            && top.len() < domain.len()
            && top.iter().all(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
        (plausible && self.is_on(Rule::Email))
            .then(|| (sign - local..sign + 1 + domain.len(), Mark::Redacted))
    }

    /// `://name:password@`, seen from its sign.
    fn url_credentials(&self, bytes: &[u8], sign: usize, from: usize) -> Option<Found> {
        let start = from.max(sign.saturating_sub(REACH));
        let scheme = memchr::memmem::rfind(&bytes[start..sign], b"://")?;
        // A password may hold the sign as well: the last one before the host counts.
        let is_inside = |byte: &u8| !byte.is_ascii_whitespace() && !b"/?#'\"<>".contains(byte);
        let inside = bytes[sign..].iter().take(REACH).take_while(|byte| is_inside(byte)).count();
        let last = bytes[sign..sign + inside].iter().rposition(|&byte| byte == b'@')?;
        let credentials = start + scheme + 3..sign + last;
        let unbroken = bytes[credentials.clone()].iter().all(is_inside);
        (unbroken && !credentials.is_empty() && self.is_on(Rule::UrlCredentials))
            .then_some((credentials, Mark::Redacted))
    }

    /// `password=...`, `"api_key": "..."`, seen from its sign.
    fn assignment(&self, bytes: &[u8], sign: usize, from: usize) -> Option<Found> {
        if !self.is_on(Rule::Assignment) {
            return None;
        }
        let key = key_before(bytes, sign, from)?;
        let kind = self.keys.kind(key);
        if kind == KeyKind::Plain {
            return None;
        }
        let header = takes_whole_line(key).then(|| header_value(bytes, sign)).flatten();
        let value = header.or_else(|| Value::after(bytes, sign))?;
        let text = &bytes[value.span.clone()];
        if !value.is_certain && (text.len() < 4 || !looks_secret(text)) {
            return None;
        }
        // `Unexpected token: '}'` speaks of another kind of token.
        if kind == KeyKind::Token && bytes[sign] == b':' && text.len() < 6 {
            return None;
        }
        if let Some(found) = self.beyond_the_word(bytes, &value) {
            return Some(found);
        }
        let mark = if kind == KeyKind::Token { Mark::Token } else { Mark::Redacted };
        Some((value.span, mark))
    }

    /// `token: Bearer ...` and `key=-----BEGIN ...`: the value's first word only says what kind of secret follows.
    fn beyond_the_word(&self, bytes: &[u8], value: &Value) -> Option<Found> {
        let text = &bytes[value.span.clone()];
        if text.starts_with(b"-----BEGIN") {
            return self.private_key(bytes, value.span.start);
        }
        let found = bearer(bytes, value.span.clone());
        found.filter(|(secret, _)| secret.start >= value.span.end)
    }
}

/// Letters, digits and the signs that credentials are made of.
const fn is_run(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

fn run_end(bytes: &[u8], start: usize) -> usize {
    bytes[start..].iter().position(|&byte| !is_run(byte)).map_or(bytes.len(), |length| start + length)
}

/// The length of a `conf_*` or `quota_continue_*` token at the start of a run.
fn confirmation_token(run: &[u8]) -> Option<usize> {
    let prefix = match run[0] {
        b'c' => &b"conf_"[..],
        b'q' => &b"quota_continue_"[..],
        _ => return None,
    };
    let tail = run.strip_prefix(prefix)?;
    let length = tail.iter().take_while(|&&byte| byte != b'.').count();
    (length > 0).then_some(prefix.len() + length)
}

/// What follows `Bearer ` or `Basic `, unless it is a word.
fn bearer(bytes: &[u8], word: Range<usize>) -> Option<Found> {
    let text = &bytes[word.clone()];
    if !text.eq_ignore_ascii_case(b"bearer") && !text.eq_ignore_ascii_case(b"basic") {
        return None;
    }
    let spaces = bytes[word.end..].iter().take_while(|&&byte| byte == b' ').count();
    let start = word.end + spaces;
    let is_token = |byte: &u8| byte.is_ascii_alphanumeric() || b"._~+/=-".contains(byte);
    let length = bytes[start..].iter().take_while(|byte| is_token(byte)).count();
    let token = bytes[start..start + length].trim_ascii_end_matches(b".");
    let is_word = || token.iter().all(u8::is_ascii_alphabetic) && (token.len() < 8 || is_auth_word(token));
    let secret = spaces > 0 && token.len() >= 6 && !is_word();
    secret.then(|| (start..start + token.len(), Mark::Redacted))
}

/// What prose says after `Bearer` or `Basic`.
fn is_auth_word(word: &[u8]) -> bool {
    const WORDS: [&str; 10] = [
        "authentication",
        "authorization",
        "authenticate",
        "credentials",
        "credential",
        "required",
        "validation",
        "permissions",
        "challenge",
        "operations",
    ];
    WORDS.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
}

/// The key in front of a sign, past quotes and backslashes.
fn key_before(bytes: &[u8], sign: usize, from: usize) -> Option<&[u8]> {
    let before = &bytes[from.max(sign.saturating_sub(REACH))..sign];
    let end = before.iter().rposition(|byte| !matches!(byte, b' ' | b'"' | b'\'' | b'\\'))? + 1;
    let start = before[..end].iter().rposition(|&byte| !(is_run(byte))).map_or(0, |at| at + 1);
    // An escape such as `\u0026` would glue its digits to the key.
    let is_escaped = start > 0 && before[start - 1] == b'\\';
    let key = match &before[start..end] {
        [b'u', escape @ ..] if is_escaped && escape.len() > 4 => &escape[4..],
        key => key,
    };
    (!key.is_empty()).then_some(key)
}

/// Headers have values with spaces in them.
fn takes_whole_line(key: &[u8]) -> bool {
    let ends =
        |word: &[u8]| key.len() >= word.len() && key[key.len() - word.len()..].eq_ignore_ascii_case(word);
    ends(b"cookie") || ends(b"authorization")
}

/// The value of a header, which may have spaces in it: `sid=1; theme=dark`, `Bearer x`. Prose has neither form.
fn header_value(bytes: &[u8], sign: usize) -> Option<Value> {
    let start = sign + 1 + bytes[sign + 1..].iter().take_while(|&&byte| byte == b' ').count();
    let line = &bytes[start..bytes.len().min(start + LONGEST_HEADER)];
    let ends = |byte: &u8| b"\r\n\"\\".contains(byte);
    let first = line.split(|byte| *byte == b' ' || ends(byte)).next()?;
    let is_scheme = ["bearer", "basic", "digest", "negotiate", "token", "apikey"]
        .iter()
        .any(|scheme| first.eq_ignore_ascii_case(scheme.as_bytes()) && line.get(first.len()) == Some(&b' '));
    if !is_scheme && !first.contains(&b'=') {
        return None;
    }
    let length = line.iter().position(ends).unwrap_or(line.len());
    Some(Value { span: start..start + length, is_certain: true })
}

/// Servers refuse longer ones.
const LONGEST_HEADER: usize = 16 << 10;

/// The value behind a sign.
struct Value {
    span: Range<usize>,
    /// Quoted, or assigned with `=`: then it is a value, however it looks.
    is_certain: bool,
}

impl Value {
    fn after(bytes: &[u8], sign: usize) -> Option<Self> {
        let start = sign + 1 + bytes[sign + 1..].iter().take_while(|byte| b" =:".contains(byte)).count();
        let rest = &bytes[start..];
        if mark_length(rest).is_some() {
            return None;
        }
        // In JSON text that was encoded again, quotes have backslashes before them.
        let escapes = rest.iter().take_while(|&&byte| byte == b'\\').count();
        let (offset, length, is_quoted) = match rest.get(escapes) {
            Some(&quote @ (b'"' | b'\'')) => {
                (escapes + 1, quoted_length(&rest[escapes + 1..], quote, escapes), true)
            }
            Some(b'[' | b'{') => (0, bracketed_length(rest), true),
            _ => (0, bare_length(rest), false),
        };
        let span = start + offset..start + offset + length;
        (length > 0).then_some(Self { span, is_certain: is_quoted || bytes[sign] == b'=' })
    }
}

/// Up to the quote that closes: one with no more backslashes before it than the one that opened.
fn quoted_length(rest: &[u8], quote: u8, escapes: usize) -> usize {
    let mut backslashes = 0;
    for (at, &byte) in rest.iter().enumerate() {
        if byte == quote && backslashes <= escapes {
            return at - backslashes;
        }
        backslashes = if byte == b'\\' { backslashes + 1 } else { 0 };
    }
    rest.len()
}

/// Up to the bracket that closes the first.
fn bracketed_length(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    for (at, &byte) in rest.iter().enumerate() {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' if depth <= 1 => return at + 1,
            b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    rest.len()
}

/// Up to what ends a word of a query, a list or a sentence.
fn bare_length(rest: &[u8]) -> usize {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b",;&)}]>\"'\\".contains(byte);
    rest.iter().position(ends).unwrap_or(rest.len())
}

/// A word behind a colon is prose (`Invalid password: must be longer`) unless it looks made up.
fn looks_secret(value: &[u8]) -> bool {
    let digits = value.iter().any(u8::is_ascii_digit);
    let capitals_inside = value.iter().skip(1).any(u8::is_ascii_uppercase);
    let signs = value.iter().any(|byte| b"!@#$%^&*+/_~=".contains(byte));
    digits || capitals_inside || signs || value.len() >= 20 || (value.len() >= 6 && looks_random(value))
}

/// What `str` has and byte slices do not.
trait TrimEnd {
    fn trim_ascii_end_matches(&self, signs: &[u8]) -> &[u8];
}

impl TrimEnd for [u8] {
    fn trim_ascii_end_matches(&self, signs: &[u8]) -> &[u8] {
        let end = self.iter().rposition(|byte| !signs.contains(byte)).map_or(0, |last| last + 1);
        &self[..end]
    }
}
