//! Formats of credentials whose issuers gave them a prefix, so that they can be recognised anywhere.

/// A prefix, and how many characters must follow for it to be a credential and not a word.
struct Format {
    prefix: &'static str,
    at_least: usize,
}

const fn format(prefix: &'static str, at_least: usize) -> Format {
    Format { prefix, at_least }
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
    format("sk-", 12),
    format("sk_live_", 8),
    format("sk_test_", 8),
    format("rk_live_", 8),
    format("rk_test_", 8),
    format("pk_live_", 8),
    format("pk_test_", 8),
    format("whsec_", 12),
    format("xoxb-", 8),
    format("xoxp-", 8),
    format("xoxa-", 8),
    format("xoxr-", 8),
    format("xoxs-", 8),
    format("xapp-", 8),
    format("AKIA", 12),
    format("ASIA", 12),
    format("AIza", 20),
    format("ya29.", 10),
    format("hf_", 16),
    format("npm_", 20),
    format("pypi-", 20),
    format("SG.", 16),
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
pub(super) const SHORTEST: usize = 15;

/// True when a run of letters, digits, `_`, `-` and `.` is a credential.
pub(super) fn is_credential(run: &[u8]) -> bool {
    run.len() >= SHORTEST
        && FORMATS.iter().filter(|format| format.prefix.as_bytes()[..2] == run[..2]).any(|format| {
            run.strip_prefix(format.prefix.as_bytes())
                .is_some_and(|tail| tail.len() >= format.at_least && looks_random(tail))
        })
}

/// `eyJ...` and two or three parts: a JSON web token.
pub(super) fn is_jwt(run: &[u8]) -> bool {
    run.starts_with(b"eyJ") && run.len() >= 20 && run.iter().filter(|&&byte| byte == b'.').count() >= 1
}

/// Words have neither digits nor capitals inside.
pub(super) fn looks_random(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_is_the_shortest() {
        let shortest = FORMATS.iter().map(|format| format.prefix.len() + format.at_least).min();
        assert!(shortest >= Some(SHORTEST - 2), "{shortest:?}");
    }

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
