//! Parsers and printers of sizes, durations, counts and retention on the command line.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use store::delta::Retention;

/// A size in bytes, which is printed in the form in which it can be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ByteSize(pub(crate) usize);

/// A positive number of things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count(pub(crate) usize);

/// A duration, which is printed in the form in which it can be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HumanDuration(pub(crate) Duration);

impl ByteSize {
    pub(crate) const VALUE_NAME: &str = "BYTES";
}

impl Count {
    pub(crate) const VALUE_NAME: &str = "COUNT";
}

impl HumanDuration {
    pub(crate) const VALUE_NAME: &str = "TIME";
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let size = usize::try_from(parse_bytes(text)?);
        size.map(Self).map_err(|_| "no machine has so much memory".to_owned())
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            size if size % (1 << 30) == 0 => write!(f, "{}GiB", size >> 30),
            size if size % (1 << 20) == 0 => write!(f, "{}MiB", size >> 20),
            size if size % (1 << 10) == 0 => write!(f, "{}KiB", size >> 10),
            size => write!(f, "{size}"),
        }
    }
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = text.trim().parse().ok().filter(|count| *count > 0);
        count.map(Self).ok_or_else(|| "give a whole number of at least 1".to_owned())
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for HumanDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match parse_duration(text)? {
            Duration::ZERO => Err("give a duration that is longer than nothing".to_owned()),
            time => Ok(Self(time)),
        }
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_millis() {
            millis if millis % 1_000 == 0 => write!(f, "{}s", millis / 1_000),
            millis => write!(f, "{millis}ms"),
        }
    }
}

/// Parses the size of the WAL. A WAL that is too small would reject every request, so there is a minimum.
pub(crate) fn parse_wal_bytes(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 1 << 20;
    match parse_bytes(text)? {
        size if size < LEAST => Err("the log needs at least 1MiB".to_owned()),
        size => Ok(size),
    }
}

/// Parses a size, as in 512MiB or 2GB.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
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

/// Parses a duration, as in 500ms, 60s, 15m, 12h or 30d.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, u64); 5] =
        [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];
    let text = text.trim();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == ' ');
    let unit = text[digits.len()..].trim();
    let millis = UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .and_then(|(_, factor)| digits.parse::<u64>().ok()?.checked_mul(*factor));
    millis.map(Duration::from_millis).ok_or_else(|| "give a duration as in 60s, 15m, 12h or 30d".to_owned())
}

/// Parses the retention of a table: an age, a size, both, or forever.
pub(crate) fn parse_retention(text: &str) -> Result<Retention, String> {
    let mut retention = Retention::default();
    if text.trim() == "forever" {
        return Ok(retention);
    }
    for part in text.split(',') {
        match (parse_duration(part), parse_bytes(part)) {
            (Ok(age), _) if retention.age.is_none() && !age.is_zero() => retention.age = Some(age),
            // A number without a unit could be either.
            (Err(_), Ok(size)) if retention.bytes.is_none() && part.ends_with(['B', 'b']) => {
                retention.bytes = Some(size);
            }
            _ => {
                return Err("give an age as in 400d, a size as in 50GiB, both as in 400d,50GiB, or forever"
                    .to_owned());
            }
        }
    }
    Ok(retention)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        assert_eq!(parse_duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse_duration("60 s"), Ok(Duration::from_secs(60)));
        assert_eq!(parse_duration("2d"), Ok(Duration::from_secs(172_800)));
        for bad in ["", "5", "-1s", "1.5h", "1y", "s", "99999999999999999d"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_kept_is_read() {
        let days = |days: u64| Some(Duration::from_secs(days * 86_400));
        assert_eq!(parse_retention("forever"), Ok(Retention::default()));
        assert_eq!(parse_retention("30d"), Ok(Retention { age: days(30), bytes: None }));
        assert_eq!(parse_retention("1GiB"), Ok(Retention { age: None, bytes: Some(1 << 30) }));
        assert_eq!(parse_retention("1GiB,7d"), Ok(Retention { age: days(7), bytes: Some(1 << 30) }));
        for bad in ["", "30", "0d", "30d,7d", "1GiB,2GiB", "30d;1GiB", "forever,1d"] {
            assert!(parse_retention(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_printed_can_be_read() {
        for text in ["1GiB", "64MiB", "3KiB", "1000"] {
            assert_eq!(text.parse::<ByteSize>().unwrap().to_string(), text);
        }
        for text in ["500ms", "90s"] {
            assert_eq!(text.parse::<HumanDuration>().unwrap().to_string(), text);
        }
        assert_eq!("7".parse::<Count>().unwrap().to_string(), "7");
        assert!(
            "0".parse::<Count>().is_err()
                && "0s".parse::<HumanDuration>().is_err()
                && "0".parse::<ByteSize>().is_err()
        );
    }

    #[test]
    fn sizes_are_read() {
        assert_eq!(parse_bytes("16GiB"), Ok(16 << 30));
        assert_eq!(parse_bytes("10 mb"), Ok(10_000_000));
        assert_eq!(parse_bytes("4096"), Ok(4096));
        for bad in ["", "0", "-1", "GiB", "1.5GiB", "99999999TiB", "1XB"] {
            assert!(parse_bytes(bad).is_err(), "{bad}");
        }
    }
}
