//! The form of a value: a secret, a word of prose, or a text that cannot be a secret.

/// Values that are never secrets: settings, states and placeholders.
#[rustfmt::skip]
const HARMLESS: [&str; 96] = [
    "true", "false", "none", "null", "nil", "undefined", "yes", "no", "on", "off", "ok", "failed", "failure",
    "success", "passed", "required", "optional", "missing", "invalid", "expired", "revoked", "empty",
    "blank", "unset", "set", "present", "absent", "valid", "enabled", "disabled", "active", "inactive",
    "denied", "granted", "allowed", "forbidden", "unknown", "unauthorized", "rejected", "accepted", "basic",
    "bearer", "digest", "negotiate", "ntlm", "kerberos", "oauth", "oauth2", "oidc", "saml", "ldap", "mtls",
    "iam", "jwt", "apikey", "api_key", "api-key", "anonymous", "public", "default", "string", "number",
    "boolean", "object", "array", "integer", "any", "wrong", "incorrect", "mismatch", "mismatched",
    "malformed", "locked", "stale", "weak", "short", "strong", "todo", "n/a", "na", "hidden",
    "masked", "redacted", "removed", "filtered", "[filtered]", "[redacted]", "(redacted)", "<redacted>",
    "[hidden]", "[masked]", "(hidden)", "pending", "refused", "nan", "void",
];

/// Returns true for a value that cannot be a secret: a state, a placeholder, a mask, a reference to a variable.
pub(super) fn is_harmless(value: &[u8]) -> bool {
    let value = value.trim_ascii();
    if value.len() > 64 {
        return false;
    }
    let is_count = value.len() <= 2 && value.iter().all(u8::is_ascii_digit);
    let all = |signs: &[u8]| value.iter().all(|byte| signs.contains(byte));
    let is_mask = || all(b"*.?-#_") || value.len() > 3 && all(b"xX*-.");
    let is_word =
        || value.len() <= 12 && HARMLESS.iter().any(|word| value.eq_ignore_ascii_case(word.as_bytes()));
    is_count || is_mask() || is_word() || is_reference(value)
}

/// Returns true for a placeholder of a value: `${NAME}`, `$NAME`, `{{ name }}`, `<name>`, `%s`, `{name}`,
/// `process.env.NAME`.
fn is_reference(value: &[u8]) -> bool {
    let is_name = |name: &[u8]| {
        !name.is_empty() && name.iter().all(|byte| byte.is_ascii_alphabetic() || b"_-. ".contains(byte))
    };
    match value {
        [b'$', b'{', rest @ ..] => rest.contains(&b'}') || is_name(rest),
        [b'{', b'{', ..] | [b'$', b'('] => true,
        [b'$', name @ ..] => {
            !name.is_empty() && name.iter().all(|byte| byte.is_ascii_uppercase() || *byte == b'_')
        }
        [b'<', name @ .., b'>'] | [b'{', name @ .., b'}'] => is_name(name),
        [b'%', b's' | b'd' | b'v' | b'q'] | [b'%', b'('] => true,
        _ => [&b"process.env."[..], b"os.environ", b"os.getenv", b"env.", b"secrets.", b"System.getenv"]
            .iter()
            .any(|start| value.starts_with(start)),
    }
}

/// Words that occur in remarks about a value, but not in secrets.
#[rustfmt::skip]
const REMARKS: [&str; 27] = [
    "must", "required", "invalid", "least", "missing", "cannot", "can't", "blank", "empty", "match",
    "matches", "expected", "characters", "should", "incorrect", "wrong", "expired", "contain", "contains",
    "between", "failed", "denied", "longer", "shorter", "short", "long", "weak",
];

/// Returns true for a sentence about a value, such as `must be at least 8 characters`.
pub(super) fn is_remark(value: &[u8]) -> bool {
    const LONGEST: usize = 200;
    let words = || value.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let is_plain = |word: &[u8]| {
        let word = word.trim_ascii_end_matches(b".,;:!)").trim_ascii_start_matches(b"(");
        let letters = word.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
        letters == word.len()
            || word.iter().all(u8::is_ascii_digit) && word.len() < 4
            || word.iter().all(|byte| byte.is_ascii_alphabetic() || b"'-`\"".contains(byte))
    };
    let is_telling = |word: &[u8]| REMARKS.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()));
    value.len() <= LONGEST
        && words().count() >= 2
        && words().all(is_plain)
        && words().any(|word| is_telling(word.trim_ascii_end_matches(b".,;:!")))
}

/// Returns true for a value that is not a plain word. A word after a colon is prose
/// (`Invalid password: must be longer`).
pub(super) fn looks_secret(value: &[u8]) -> bool {
    let value = value.trim_ascii_end_matches(b".");
    let digits = value.iter().any(u8::is_ascii_digit);
    let capitals_inside = value.iter().skip(1).any(u8::is_ascii_uppercase);
    let signs = value.iter().any(|byte| b"!@#$%^&*+/_~=".contains(byte));
    value.len() >= 4
        && (digits
            || capitals_inside
            || signs
            || value.len() >= 20
            || (value.len() >= 6 && looks_random(value)))
}

/// Returns true for a text with digits or capitals, which words do not have inside.
fn looks_random(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Returns true for a text that looks randomly generated: long, letters and digits mixed, and no UUID, path, URL or
/// time.
pub(super) fn is_random(value: &[u8], at_least: usize) -> bool {
    let value = &value[..value.len().min(512)];
    let digits = value.iter().filter(|byte| byte.is_ascii_digit()).count();
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let others = value.len() - digits - letters;
    value.len() >= at_least
        && digits > 0
        && letters > 1
        && value[0] != b'/'
        && value.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+/=_-.~%:".contains(byte))
        && others * 4 <= value.len()
        && !is_uuid(value)
        && memchr::memmem::find(value, b"://").is_none()
        && !has_word_parts(value)
}

/// Returns true if each part is a word or a number: `2026-11-18T10:20:30Z`, `user-profile-v2`, `orders/2026/11`.
fn has_word_parts(value: &[u8]) -> bool {
    let is_part = |part: &[u8]| {
        let digits = part.iter().filter(|byte| byte.is_ascii_digit()).count();
        let is_name = part.iter().all(|byte| !byte.is_ascii_uppercase()) && part.len() - digits <= 16;
        let trailing = part.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        digits == part.len() && digits <= 10 || is_name && trailing == digits && digits <= 4
    };
    value.split(|byte| b"-_./:".contains(byte)).all(is_part)
}

fn is_uuid(value: &[u8]) -> bool {
    value.len() == 36
        && value.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Words that follow the name of a secret in prose.
#[rustfmt::skip]
const PROSE: [&str; 146] = [
    "a", "about", "accepts", "account", "accounts", "after", "again", "all", "already", "also", "an", "and",
    "another", "any", "are", "argument", "as", "at", "authentication", "bad", "based", "be", "because",
    "been", "before", "being", "broken", "but", "by", "callback", "can", "cannot", "case", "change",
    "characters", "check", "comes", "complexity", "compromised", "correct", "could", "data", "different",
    "does", "either", "entry", "error", "expects", "field", "fine", "flag", "flow", "for", "format", "from",
    "gets", "given", "gone", "good", "has", "have", "header", "here", "history", "if", "ignored", "in",
    "input", "insecure", "instead", "into", "is", "it", "its", "kept", "known", "length", "like", "login",
    "longer", "lost", "manager", "may", "more", "must", "needed", "needs", "new", "not", "now", "null",
    "of", "old", "only", "option", "or", "parameter", "please", "policy", "prompt", "provided", "requires",
    "reset", "safe", "same", "secure", "seen", "sent", "set", "shorter", "should", "shown", "so", "stolen",
    "string", "takes", "than", "that", "the", "then", "there", "this", "to", "today", "too", "unchanged",
    "under", "unsafe", "until", "update", "used", "user", "value", "via", "was", "were", "when", "which",
    "while", "will", "with", "without", "would", "yesterday", "yet", "your",
];

/// Returns true for a word that occurs there in prose. Other texts of letters may be secrets.
pub(super) fn is_prose(word: &[u8]) -> bool {
    let word = word.trim_ascii_end_matches(b".,;:!?)");
    let ends = |ending: &[u8]| word.len() > ending.len() + 2 && word.ends_with(ending);
    word.is_empty()
        || is_harmless(word)
        || PROSE.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
        || REMARKS.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes()))
        || [&b"ed"[..], b"ing", b"able", b"ly", b"tion", b"ible", b"ment"].into_iter().any(ends)
}

/// Trim functions that `str` has and byte slices lack.
pub(super) trait TrimEnd {
    fn trim_ascii_end_matches(&self, signs: &[u8]) -> &[u8];
    fn trim_ascii_start_matches(&self, signs: &[u8]) -> &[u8];
}

impl TrimEnd for [u8] {
    fn trim_ascii_end_matches(&self, signs: &[u8]) -> &[u8] {
        let end = self.iter().rposition(|byte| !signs.contains(byte)).map_or(0, |last| last + 1);
        &self[..end]
    }

    fn trim_ascii_start_matches(&self, signs: &[u8]) -> &[u8] {
        let start = self.iter().position(|byte| !signs.contains(byte)).unwrap_or(self.len());
        &self[start..]
    }
}
