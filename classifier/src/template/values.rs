//! Values in a message, recognized by their form. Each function returns the length of the value that starts here, if
//! any.

use super::is_word;

/// Returns the length and placeholder of a URL, a path or an e-mail address that starts with a word of this length.
pub(super) fn address(rest: &[u8], word: usize) -> Option<(usize, &'static str)> {
    if rest[word..].starts_with(b"://") {
        return Some((rest.iter().position(|&byte| ends_url(byte)).unwrap_or(rest.len()), "{url}"));
    }
    if word == 1 && rest[0].is_ascii_alphabetic() && rest[1..].starts_with(b":\\") {
        return Some((path_length(&rest[2..]) + 2, "{path}"));
    }
    let email = || email_length(rest).map(|length| (length, "{email}"));
    email().or_else(|| relative_path_length(rest, word).map(|length| (length, "{path}")))
}

/// Returns the length of an IPv6 address such as `2001:db8::1`: groups of hex digits, eight of them or with a gap.
pub(super) fn ipv6_length(rest: &[u8]) -> Option<usize> {
    let length = rest.iter().take_while(|byte| byte.is_ascii_hexdigit() || **byte == b':').count();
    let address = &rest[..length];
    let groups = || address.split(|&byte| byte == b':');
    let has_gap = address.windows(2).any(|pair| pair == b"::");
    let fits = groups().all(|group| group.len() <= 4)
        && (groups().count() == 8 || has_gap && groups().count() > 2)
        && address.iter().any(u8::is_ascii_digit);
    let ends = rest.get(length).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    (fits && ends).then_some(length)
}

/// Returns the length of digits with dots and commas between them: `1,048,576`, `3.5`, `10.0.0.1`.
pub(super) fn number_length(rest: &[u8]) -> usize {
    let digits = |from: usize| rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut length = digits(0);
    while matches!(rest.get(length), Some(b'.' | b',')) {
        match digits(length + 1) {
            0 => break,
            more => length += 1 + more,
        }
    }
    length
}

const fn ends_url(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b'\'' | b'"' | b'`' | b'<' | b'>' | b')' | b',')
}

pub(super) fn is_absolute_path(text: &[u8]) -> bool {
    match text {
        [b'/', first, rest @ ..] => is_word(*first) && rest.contains(&b'/'),
        [drive, b':', b'\\', ..] => drive.is_ascii_alphabetic(),
        [b'~', b'/', ..] => true,
        _ => false,
    }
}

pub(super) fn path_length(rest: &[u8]) -> usize {
    let ends = |byte: u8| byte.is_ascii_whitespace() || b"'\"`<>(),;:|".contains(&byte);
    let length = rest.iter().position(|&byte| ends(byte)).unwrap_or(rest.len());
    // A full stop ends the sentence, not the path.
    length - usize::from(length > 1 && rest[length - 1] == b'.')
}

/// Returns the length of a path such as `src/store/log.rs`: two slashes, or one and a file extension. `tools/call` is
/// a name.
fn relative_path_length(rest: &[u8], word: usize) -> Option<usize> {
    if !matches!(rest.get(word), Some(b'/' | b'\\' | b'.')) {
        return None;
    }
    let length = path_length(rest);
    let path = &rest[..length];
    let slashes = path.iter().filter(|&&byte| byte == b'/' || byte == b'\\').count();
    let name = path.rsplit(|&byte| byte == b'/' || byte == b'\\').next()?;
    let has_ending =
        name.iter().rposition(|&byte| byte == b'.').is_some_and(|dot| dot > 0 && dot + 1 < name.len());
    (slashes >= 2 || slashes == 1 && has_ending).then_some(length)
}

/// Returns the length of a UUID: `8-4-4-4-12` hex digits.
pub(super) fn uuid_length(rest: &[u8]) -> Option<usize> {
    const LENGTH: usize = 36;
    let text = rest.get(..LENGTH)?;
    let fits = text.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    let ends = rest.get(LENGTH).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    (fits && ends).then_some(LENGTH)
}

fn email_length(rest: &[u8]) -> Option<usize> {
    let local = rest
        .iter()
        .take(64)
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"._%+-".contains(byte))
        .count();
    if rest.get(local) != Some(&b'@') {
        return None;
    }
    let domain = &rest[local + 1..];
    let length =
        domain.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b".-".contains(byte)).count();
    domain[..length].contains(&b'.').then_some(local + 1 + length)
}

/// Returns the length of a date, a time or both: `2026-11-16`, `2026-11-16T10:20:30.5Z`, `10:20:30`.
pub(super) fn time_length(rest: &[u8]) -> Option<usize> {
    let digits = |from: usize, count: usize| {
        rest.get(from..from + count).is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    let is = |at: usize, byte: u8| rest.get(at) == Some(&byte);
    let clock = |from: usize| {
        let minutes = digits(from, 2) && is(from + 2, b':') && digits(from + 3, 2);
        let seconds = is(from + 5, b':') && digits(from + 6, 2);
        (minutes && seconds).then(|| zone_end(rest, from + 8))
    };
    let date = digits(0, 4) && is(4, b'-') && digits(5, 2) && is(7, b'-') && digits(8, 2) && !digits(10, 1);
    if !date {
        return clock(0).filter(|_| !digits(2, 1));
    }
    match rest.get(10) {
        Some(b'T' | b't' | b' ') => Some(clock(11).unwrap_or(10)),
        _ => Some(10),
    }
}

/// Returns the end of a time zone after an optional fraction.
fn zone_end(rest: &[u8], from: usize) -> usize {
    let digits = |from: usize| rest[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = from;
    if matches!(rest.get(end), Some(b'.' | b',')) && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    match rest.get(end) {
        Some(b'Z' | b'z') => end + 1,
        Some(b'+' | b'-') if digits(end + 1) == 4 => end + 5,
        Some(b'+' | b'-')
            if digits(end + 1) == 2 && rest.get(end + 3) == Some(&b':') && digits(end + 4) == 2 =>
        {
            end + 6
        }
        _ => end,
    }
}
