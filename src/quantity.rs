//! Sizes, as they are written on the command line.

/// The size of the log: one that is too small would refuse everything, for ever.
pub(crate) fn log_bytes(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 1 << 20;
    match bytes(text)? {
        size if size < LEAST => Err("the log needs at least 1MiB".to_owned()),
        size => Ok(size),
    }
}

/// A size, as in 512MiB or 2GB.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 9] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("", 1),
    ];
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == ' ');
    let unit = text[digits.len()..].trim();
    let size = UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))
        .and_then(|(_, factor)| digits.parse::<u64>().ok()?.checked_mul(*factor))
        .filter(|size| *size > 0);
    size.ok_or_else(|| "give a size as in 512MiB or 16GiB".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(bytes("16GiB"), Ok(16 << 30));
        assert_eq!(bytes("10 mb"), Ok(10_000_000));
        assert_eq!(bytes("4096"), Ok(4096));
        for bad in ["", "0", "-1", "GiB", "1.5GiB", "99999999TiB", "1XB"] {
            assert!(bytes(bad).is_err(), "{bad}");
        }
    }
}
