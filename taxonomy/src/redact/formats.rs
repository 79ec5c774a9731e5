//! Formats of credentials whose issuers gave them a prefix, so that they can be recognised anywhere.

/// A prefix, and how many characters must follow for it to be a credential and not a word.
struct Format {
    prefix: &'static str,
    at_least: usize,
    /// Words start like this, too: a credential has a digit or a capital behind it.
    is_wordlike: bool,
}

const fn format(prefix: &'static str, at_least: usize) -> Format {
    Format { prefix, at_least, is_wordlike: false }
}

const fn wordlike(prefix: &'static str, at_least: usize) -> Format {
    Format { prefix, at_least, is_wordlike: true }
}

/// Adding a format is one row.
const FORMATS: [Format; 38] = [
    format("ghp_", 10),
    format("gho_", 10),
    format("ghu_", 10),
    format("ghs_", 10),
    format("ghr_", 10),
    format("github_pat_", 10),
    format("glpat-", 10),
    format("glsa_", 12),
    wordlike("sk-", 12),
    format("sk_live_", 8),
    format("sk_test_", 8),
    format("rk_live_", 8),
    format("rk_test_", 8),
    format("pk_live_", 8),
    format("pk_test_", 8),
    format("whsec_", 12),
    format("xoxb-", 6),
    format("xoxp-", 6),
    format("xoxa-", 6),
    format("xoxr-", 6),
    format("xoxs-", 6),
    format("xapp-", 6),
    wordlike("AKIA", 12),
    wordlike("ASIA", 12),
    format("AIza", 20),
    format("ya29.", 10),
    wordlike("hf_", 16),
    wordlike("npm_", 20),
    wordlike("pypi-", 20),
    wordlike("SG.", 16),
    format("dop_v1_", 16),
    format("shpat_", 16),
    format("shpss_", 16),
    format("lin_api_", 16),
    format("sq0atp-", 10),
    format("sq0csp-", 10),
    format("AGE-SECRET-KEY-", 10),
    format("dckr_pat_", 10),
];

/// What credentials start with.
pub(super) const PREFIXES: [&str; FORMATS.len()] = {
    let mut prefixes = [""; FORMATS.len()];
    let mut index = 0;
    while index < FORMATS.len() {
        prefixes[index] = FORMATS[index].prefix;
        index += 1;
    }
    prefixes
};

/// The shortest credential there is; a shorter run need not be compared.
const SHORTEST: usize = {
    let mut shortest = usize::MAX;
    let mut index = 0;
    while index < FORMATS.len() {
        let length = FORMATS[index].prefix.len() + FORMATS[index].at_least;
        if length < shortest {
            shortest = length;
        }
        index += 1;
    }
    shortest
};

/// No more of a run is looked at: what is a credential shows early, and a hostile run may be long.
const ENOUGH: usize = 256;

/// True when a run of letters, digits, `_`, `-` and `.` is a credential.
pub(super) fn is_credential(run: &[u8]) -> bool {
    let run = &run[..run.len().min(ENOUGH)];
    run.len() >= SHORTEST
        && FORMATS.iter().filter(|format| format.prefix.as_bytes()[..2] == run[..2]).any(|format| {
            run.strip_prefix(format.prefix.as_bytes()).is_some_and(|tail| {
                tail.len() >= format.at_least && (!format.is_wordlike || looks_random(tail))
            })
        })
}

/// The header of a token is short; its end is looked for no further.
const JWT_HEADER: usize = 512;

/// `eyJ...` and two or three parts: a JSON web token.
pub(super) fn is_jwt(run: &[u8]) -> bool {
    run.starts_with(b"eyJ") && run.len() >= 20 && run.iter().take(JWT_HEADER).any(|&byte| byte == b'.')
}

/// Words have neither digits nor capitals inside.
pub(super) fn looks_random(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_begin_like_a_credential_are_words() {
        for word in ["sk-learn-based-pipelines", "npm_config_registry_location", "hf_transformers_library"] {
            assert!(!is_credential(word.as_bytes()), "{word}");
        }
        for credential in
            ["ghp_0123456789abcdefABCDEF0123456789abcd", "sk-proj-A1b2C3d4E5f6G7", "AKIAIOSFODNN7EXAMPLE"]
        {
            assert!(is_credential(credential.as_bytes()), "{credential}");
        }
        assert!(is_jwt(b"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"));
        assert!(!is_jwt(b"eyJustAWordWithoutDots"));
    }
}
