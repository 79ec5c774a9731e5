//! What a connection has set, and what it may set: what PostgreSQL clients set as a matter of course, and nothing of the
//! engine's.

use super::failure::Failure;
use std::collections::BTreeMap;
use std::time::Duration;

/// The version that clients take us for: they ask an older one differently, and a newer one more.
pub(super) const SERVER_VERSION: &str = "15.0";
/// Characters of a value that is remembered.
const LONGEST: usize = 1_000;
const STATEMENT_TIMEOUT: &str = "statement_timeout";

/// How a setting takes a new value.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// It is remembered, and changes nothing that we do.
    Remembered,
    /// Only these are accepted, in lower case: it stays as it is.
    Only(&'static [&'static str]),
    /// Anything is accepted; it stays as it is, and a client that wanted something else is told so.
    Stays(&'static [&'static str], &'static str),
    /// It is as it is.
    Never,
}

use Change::{Never, Only, Remembered, Stays};

/// Every setting that there is: its name, its value, and how that changes.
const SETTINGS: &[(&str, &str, Change)] = &[
    ("DateStyle", "ISO, MDY", Stays(&["iso"], "dates are always given as in ISO 8601")),
    (
        "IntervalStyle",
        "postgres",
        Stays(&["postgres"], "intervals are always given in the style of PostgreSQL"),
    ),
    (
        "TimeZone",
        "UTC",
        Stays(&["utc", "etc/utc", "gmt", "z", "0", "default"], "times are always given in UTC"),
    ),
    ("application_name", "", Remembered),
    ("bytea_output", "hex", Stays(&["hex"], "bytes are always given in hex")),
    ("check_function_bodies", "on", Remembered),
    ("client_encoding", "UTF8", Only(&["utf8", "utf-8", "unicode"])),
    ("client_min_messages", "notice", Remembered),
    ("default_transaction_isolation", "read committed", Remembered),
    (
        "default_transaction_read_only",
        "on",
        Stays(&["on", "true", "1", "yes"], "everything is always read-only"),
    ),
    ("extra_float_digits", "1", Remembered),
    ("idle_in_transaction_session_timeout", "0", Remembered),
    ("idle_session_timeout", "0", Remembered),
    ("in_hot_standby", "off", Never),
    ("integer_datetimes", "on", Never),
    ("is_superuser", "off", Never),
    ("jit", "off", Remembered),
    ("lock_timeout", "0", Remembered),
    ("max_identifier_length", "63", Never),
    ("row_security", "on", Remembered),
    ("search_path", "public", Remembered),
    ("server_encoding", "UTF8", Never),
    ("server_version", SERVER_VERSION, Never),
    ("server_version_num", "150000", Never),
    ("standard_conforming_strings", "on", Only(&["on", "true", "1", "yes"])),
    ("synchronize_seqscans", "on", Remembered),
    ("transaction_isolation", "read committed", Remembered),
    ("transaction_read_only", "on", Stays(&["on", "true", "1", "yes"], "everything is always read-only")),
    ("transaction_timeout", "0", Remembered),
];

/// Those that a client is told of when it comes.
const REPORTED: [&str; 11] = [
    "DateStyle",
    "IntervalStyle",
    "TimeZone",
    "application_name",
    "client_encoding",
    "default_transaction_read_only",
    "in_hot_standby",
    "integer_datetimes",
    "is_superuser",
    "server_encoding",
    "standard_conforming_strings",
];

/// What became of a new value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It is in force, or nothing hangs on it.
    Done,
    /// It is in force, and the client has to be told: its name and value.
    Report(&'static str, String),
    /// It is not in force, for this reason.
    Note(&'static str),
    /// How long statements may run; nothing for as long as the engine allows.
    Time(Option<Duration>),
}

/// What a connection has set.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    changed: BTreeMap<&'static str, String>,
}

impl Settings {
    /// Takes a new value, or the default again.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>) -> Result<Outcome, Failure> {
        if name.eq_ignore_ascii_case(STATEMENT_TIMEOUT) {
            return value.map_or(Ok(None), duration).map(Outcome::Time);
        }
        let (name, _, change) = find(name).ok_or_else(|| refused(name))?;
        let accepts = |known: &[&str], value: &str| {
            let value = value.to_lowercase();
            known.iter().any(|known| value == *known || value.split(',').next() == Some(*known))
        };
        match (change, value) {
            (Never, _) => Err(Failure::error("55P02", format!("{name} cannot be changed"))),
            (Remembered, value) => Ok(self.remember(name, value)),
            (Only(known), Some(value)) if !accepts(known, value) => {
                Err(Failure::error("22023", format!("{name} cannot be '{value}'"))
                    .hint(format!("it is {}", known[0])))
            }
            (Stays(known, note), Some(value)) if !accepts(known, value) => Ok(Outcome::Note(note)),
            (Only(_) | Stays(..), _) => Ok(Outcome::Done),
        }
    }

    fn remember(&mut self, name: &'static str, value: Option<&str>) -> Outcome {
        let value = match value {
            Some(value) => {
                let value: String = value.chars().take(LONGEST).collect();
                self.changed.insert(name, value.clone());
                value
            }
            None => {
                self.changed.remove(name);
                default(name).unwrap_or_default().to_owned()
            }
        };
        if REPORTED.contains(&name) { Outcome::Report(name, value) } else { Outcome::Done }
    }

    /// The name as it is written, and the value.
    pub(super) fn show(&self, name: &str, time: Duration) -> Result<(&'static str, String), Failure> {
        if name.eq_ignore_ascii_case(STATEMENT_TIMEOUT) {
            return Ok((STATEMENT_TIMEOUT, format!("{}ms", time.as_millis())));
        }
        let (name, value, _) = find(name).ok_or_else(|| unknown(name))?;
        Ok((name, self.changed.get(name).cloned().unwrap_or_else(|| value.to_owned())))
    }

    /// What a client is told when it comes.
    pub(super) fn reported(&self) -> impl Iterator<Item = (&'static str, String)> {
        let value = |name: &'static str| self.changed.get(name).map_or(default(name), |value| Some(value));
        REPORTED.into_iter().filter_map(move |name| Some((name, value(name)?.to_owned())))
    }
}

/// Every setting, with its value when nobody has changed it.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    SETTINGS.iter().map(|(name, value, _)| (*name, *value))
}

/// The value of a setting that nobody has changed.
pub(super) fn default(name: &str) -> Option<&'static str> {
    find(name).map(|(_, value, _)| value)
}

fn find(name: &str) -> Option<(&'static str, &'static str, Change)> {
    SETTINGS.iter().copied().find(|known| known.0.eq_ignore_ascii_case(name))
}

fn unknown(name: &str) -> Failure {
    Failure::error("42704", format!("there is no setting '{name}'"))
}

fn refused(name: &str) -> Failure {
    let known = name.to_lowercase();
    if known.starts_with("datafusion.") || known == "role" || known == "session_authorization" {
        return Failure::error("42501", format!("{name} cannot be changed"));
    }
    unknown(name).hint("statement_timeout and what drivers set by themselves can be set")
}

/// A duration as PostgreSQL writes it: milliseconds, or a number with a unit.
fn duration(text: &str) -> Result<Option<Duration>, Failure> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim() {
        "us" => 1,
        "" | "ms" => 1_000,
        "s" => 1_000_000,
        "min" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        _ => return Err(no_duration(text)),
    };
    let micros = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let micros = micros.ok_or_else(|| no_duration(text))?;
    Ok(Some(Duration::from_micros(micros)).filter(|time| !time.is_zero()))
}

fn no_duration(text: &str) -> Failure {
    Failure::error("22023", format!("'{text}' is no duration"))
        .hint("write milliseconds, or as in '5s' and '2min'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_postgresql_writes_them() {
        let read = |text| duration(text).map_err(|failure| failure.code);
        assert_eq!(read("250"), Ok(Some(Duration::from_millis(250))));
        assert_eq!(read(" 2 min"), Ok(Some(Duration::from_secs(120))));
        assert_eq!(read("0"), Ok(None));
        assert_eq!(read("-1"), Err("22023"));
        assert_eq!(read("99999999999999999999"), Err("22023"));
        assert_eq!(read("5 fortnights"), Err("22023"));
    }

    #[test]
    fn what_drivers_set_is_accepted_and_the_rest_is_not() {
        let mut settings = Settings::default();
        let mut set = |name, value| settings.set(name, Some(value)).map_err(|failure| failure.code);
        assert_eq!(set("extra_float_digits", "3"), Ok(Outcome::Done));
        assert_eq!(set("datestyle", "ISO, DMY"), Ok(Outcome::Done));
        assert!(matches!(set("timezone", "Europe/Berlin"), Ok(Outcome::Note(_))));
        assert_eq!(set("application_name", "x"), Ok(Outcome::Report("application_name", "x".to_owned())));
        assert_eq!(set("client_encoding", "LATIN1"), Err("22023"));
        assert_eq!(set("server_version", "9"), Err("55P02"));
        assert_eq!(set("datafusion.execution.batch_size", "1"), Err("42501"));
        assert_eq!(set("shared_preload_libraries", "x"), Err("42704"));
    }
}
