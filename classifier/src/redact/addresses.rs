//! E-mail addresses and credentials in front of a host. Both are recognized from their `@`.

use super::scan::{Found, Mark, REACH};
use super::values::TrimEnd;
use super::{Redactor, Rule};
use std::ops::Range;

/// Users of version control systems whose addresses are not mailboxes: `git@github.com:owner/name`.
const NO_MAILBOX: [&str; 7] = ["git", "hg", "svn", "gitlab", "gitea", "bitbucket", "ssh"];

/// Names in front of a colon that are not users, but protocols of package managers.
const NO_USER: [&str; 8] = ["npm", "patch", "file", "workspace", "link", "docker", "oci", "git"];

/// Endings after an `@` that are not domains: systemd units, and files in stack traces.
const NO_DOMAIN: [&str; 20] = [
    "service", "timer", "socket", "target", "slice", "mount", "scope", "device", "path", "js", "mjs", "cjs",
    "ts", "tsx", "jsx", "vue", "html", "py", "rb", "java",
];

impl Redactor {
    /// Returns the secret around an `@`. `sign` is its position; it may also be written as `%40`.
    pub(super) fn at_sign(&self, bytes: &[u8], sign: Range<usize>, from: usize) -> Option<Found> {
        self.email(bytes, sign.clone(), from)
            .or_else(|| self.url_credentials(bytes, sign.clone(), from))
            .or_else(|| self.bare_credentials(bytes, sign, from))
    }

    /// Finds an e-mail address: `local@domain.tld`.
    fn email(&self, bytes: &[u8], sign: Range<usize>, from: usize) -> Option<Found> {
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
        let is_local = |byte: &u8| is_letter(byte) || b"._%+-".contains(byte);
        let before = &bytes[from.max(sign.start.saturating_sub(REACH))..sign.start];
        let local = before.iter().rev().take_while(|byte| is_local(byte)).count();
        let local = &before[before.len() - local..];
        // Skips the encoded character in `user=bob%40example.com` and `%20bob%40example.com`.
        let local = match local {
            [b'%', _, _, rest @ ..] if sign.len() > 1 => rest,
            local => local,
        };
        let is_domain = |byte: &u8| is_letter(byte) || matches!(byte, b'.' | b'-');
        let rest = &bytes[sign.end..];
        let domain = rest.iter().take(REACH).take_while(|byte| is_domain(byte)).count();
        let domain = rest[..domain].trim_ascii_end_matches(b".-");
        let top = domain.rsplit(|&byte| byte == b'.').next()?;
        let plausible = !local.is_empty()
            && top.len() >= 2
            && top.len() < domain.len()
            && top.iter().all(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
        let is_one_of = |words: &[&str], text: &[u8]| words.iter().any(|word| word.as_bytes() == text);
        let follows = rest.get(domain.len());
        let is_no_mail = || {
            is_one_of(&NO_MAILBOX, local) && matches!(follows, Some(b':' | b'/'))
                || is_one_of(&NO_DOMAIN, top) && (top.len() > 3 || follows == Some(&b':'))
        };
        (plausible && self.is_on(Rule::Email) && !is_no_mail())
            .then(|| (sign.start - local.len()..sign.end + domain.len(), Mark::Redacted))
    }

    /// Finds credentials in a URL: `://name:password@`.
    fn url_credentials(&self, bytes: &[u8], sign: Range<usize>, from: usize) -> Option<Found> {
        let start = from.max(sign.start.saturating_sub(REACH));
        let before = &bytes[start..sign.start];
        let is_encoded = sign.len() > 1;
        let opening: &[u8] = if is_encoded { b"%2F%2F" } else { b"://" };
        let scheme = memchr::memmem::rfind(before, opening)
            .or_else(|| is_encoded.then(|| memchr::memmem::rfind(before, b"%2f%2f")).flatten())?;
        // A password may contain an `@` as well, so the last one before the host counts.
        let is_inside = |byte: &u8| !byte.is_ascii_whitespace() && !b"/?#'\"<>".contains(byte);
        let inside = bytes[sign.start..].iter().take(REACH).take_while(|byte| is_inside(byte)).count();
        let last = if is_encoded {
            0
        } else {
            bytes[sign.start..sign.start + inside].iter().rposition(|&byte| byte == b'@')?
        };
        let credentials = start + scheme + opening.len()..sign.start + last;
        let text = &bytes[credentials.clone()];
        // The user of a repository is not a secret: `ssh://git@github.com/owner/name`.
        let is_git = text == b"git" || text == b"hg";
        // A password that was not encoded may contain characters that end a host.
        let unbroken = text.iter().all(is_inside) || is_password_with_slash(text);
        (unbroken && !text.is_empty() && !is_git && self.is_on(Rule::UrlCredentials))
            .then_some((credentials, Mark::Redacted))
    }

    /// Finds `name:password@host` and `name:password@tcp(host)`, as database drivers write it, and Oracle's
    /// `name/password@`.
    fn bare_credentials(&self, bytes: &[u8], sign: Range<usize>, from: usize) -> Option<Found> {
        if !self.is_on(Rule::UrlCredentials) {
            return None;
        }
        let before = &bytes[from.max(sign.start.saturating_sub(REACH))..sign.start];
        let is_inside = |byte: &u8| !byte.is_ascii_whitespace() && !b"'\"<>(),`=@".contains(byte);
        let length = before.iter().rev().take_while(|byte| is_inside(byte)).count();
        let pair = &before[before.len() - length..];
        let is_host =
            bytes.get(sign.end).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"/[".contains(byte));
        let is_name = |name: &[u8]| {
            !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(byte))
        };
        let colon = pair.iter().position(|&byte| byte == b':');
        let is_jdbc = pair.starts_with(b"jdbc:oracle");
        let separator = if is_jdbc { pair.iter().position(|&byte| byte == b'/')? } else { colon? };
        let password = &pair[separator + 1..];
        // Package versions such as `npm:name@1.0` and `image:tag@sha256:...` are not credentials.
        let is_package = NO_USER.iter().any(|name| name.as_bytes() == &pair[..separator])
            || bytes[sign.end..].starts_with(b"sha256:");
        let is_pair = is_jdbc || is_name(&pair[..separator]) && !password.starts_with(b"/") && !is_package;
        let is_secret = password.len() >= 3 && !password.contains(&b'/');
        (is_host
            && is_pair
            && is_secret
            && !password.iter().all(|byte| byte.is_ascii_digit() || *byte == b':'))
        .then(|| (sign.start - password.len()..sign.start, Mark::Redacted))
    }
}

/// Returns true for `name:pass/word` in front of a host.
fn is_password_with_slash(text: &[u8]) -> bool {
    let colon = text.iter().position(|&byte| byte == b':');
    let slash = text.iter().position(|&byte| matches!(byte, b'/' | b'?' | b'#'));
    let is_name = |name: &[u8]| name.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(byte));
    // `host:8080/path@...` is a host with a port.
    let is_port = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    colon.zip(slash).is_some_and(|(colon, slash)| {
        colon < slash
            && is_name(&text[..colon])
            && !is_port(&text[colon + 1..slash])
            && text.iter().all(|byte| !byte.is_ascii_whitespace() && !b"'\"<>".contains(byte))
    })
}
