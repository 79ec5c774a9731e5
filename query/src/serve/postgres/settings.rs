//! The settings of a session: those that PostgreSQL clients usually set, but none of the engine's own.

use super::error::PgError;
use std::collections::BTreeMap;
use std::time::Duration;

/// The PostgreSQL version that clients see. They choose their catalog queries by it.
pub(super) const SERVER_VERSION: &str = "15.0";
/// The maximum length of a stored value, in characters.
const MAX_LENGTH: usize = 1_000;
const STATEMENT_TIMEOUT: &str = "statement_timeout";

/// The effect when a client sets a setting.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// The value is stored, and has no effect.
    Stored,
    /// These values (in lower case) are accepted and have no effect; others are an error.
    Restricted(&'static [&'static str]),
    /// The setting keeps its value. Any other value than these gives a notice.
    Fixed(&'static [&'static str], &'static str),
    /// The setting cannot be changed.
    ReadOnly,
}

use Change::{Fixed, ReadOnly, Restricted, Stored};

/// Every setting: its name, its default, and the effect when a client sets it.
const SETTINGS: &[(&str, &str, Change)] = &[
    ("DateStyle", "ISO, MDY", Fixed(&["iso"], "dates are always given as in ISO 8601")),
    (
        "IntervalStyle",
        "postgres",
        Fixed(&["postgres"], "intervals are always given in the style of PostgreSQL"),
    ),
    (
        "TimeZone",
        "UTC",
        Fixed(&["utc", "etc/utc", "gmt", "z", "0", "default"], "times are always given in UTC"),
    ),
    ("application_name", "", Stored),
    ("bytea_output", "hex", Fixed(&["hex"], "bytes are always given in hex")),
    ("check_function_bodies", "on", Stored),
    ("client_encoding", "UTF8", Restricted(&["utf8", "utf-8", "unicode"])),
    ("client_min_messages", "notice", Stored),
    ("default_transaction_isolation", "read committed", Stored),
    (
        "default_transaction_read_only",
        "on",
        Fixed(&["on", "true", "1", "yes"], "everything is always read-only"),
    ),
    ("extra_float_digits", "1", Stored),
    ("idle_in_transaction_session_timeout", "0", Stored),
    ("idle_session_timeout", "0", Stored),
    ("in_hot_standby", "off", ReadOnly),
    ("integer_datetimes", "on", ReadOnly),
    ("is_superuser", "off", ReadOnly),
    ("jit", "off", Stored),
    ("lock_timeout", "0", Stored),
    ("max_identifier_length", "63", ReadOnly),
    ("row_security", "on", Stored),
    ("search_path", "public", Stored),
    ("server_encoding", "UTF8", ReadOnly),
    ("server_version", SERVER_VERSION, ReadOnly),
    ("server_version_num", "150000", ReadOnly),
    ("standard_conforming_strings", "on", Restricted(&["on", "true", "1", "yes"])),
    ("synchronize_seqscans", "on", Stored),
    ("transaction_isolation", "read committed", Stored),
    ("transaction_read_only", "on", Fixed(&["on", "true", "1", "yes"], "everything is always read-only")),
    ("transaction_timeout", "0", Stored),
];

/// The settings that are reported to the client at startup.
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

/// The outcome of setting a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The value is accepted.
    Done,
    /// The value is accepted, and the client gets a message with its name and value.
    Report(&'static str, String),
    /// The value has no effect, for this reason.
    Note(&'static str),
    /// The time limit of statements; `None` for that of the engine.
    Time(Option<Duration>),
}

/// The settings of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    changed: BTreeMap<&'static str, String>,
}

impl Settings {
    /// Sets a value, or the default.
    pub(super) fn set(&mut self, name: &str, value: Option<&str>) -> Result<Outcome, PgError> {
        if name.eq_ignore_ascii_case(STATEMENT_TIMEOUT) {
            return value.map_or(Ok(None), duration).map(Outcome::Time);
        }
        let (name, _, change) = find(name).ok_or_else(|| unsupported(name))?;
        let accepts = |known: &[&str], value: &str| {
            let value = value.to_lowercase();
            known.iter().any(|known| value == *known || value.split(',').next() == Some(*known))
        };
        match (change, value) {
            (ReadOnly, _) => Err(PgError::error("55P02", format!("{name} cannot be changed"))),
            (Stored, value) => Ok(self.remember(name, value)),
            (Restricted(known), Some(value)) if !accepts(known, value) => {
                Err(PgError::error("22023", format!("{name} cannot be '{value}'"))
                    .hint(format!("it is {}", known[0])))
            }
            (Fixed(known, note), Some(value)) if !accepts(known, value) => Ok(Outcome::Note(note)),
            (Restricted(_) | Fixed(..), _) => Ok(Outcome::Done),
        }
    }

    fn remember(&mut self, name: &'static str, value: Option<&str>) -> Outcome {
        let value = match value {
            Some(value) => {
                let value: String = value.chars().take(MAX_LENGTH).collect();
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

    /// Returns the name in its usual spelling, and the value.
    pub(super) fn show(&self, name: &str, time: Duration) -> Result<(&'static str, String), PgError> {
        if name.eq_ignore_ascii_case(STATEMENT_TIMEOUT) {
            return Ok((STATEMENT_TIMEOUT, format!("{}ms", time.as_millis())));
        }
        let (name, value, _) = find(name).ok_or_else(|| unknown(name))?;
        Ok((name, self.changed.get(name).cloned().unwrap_or_else(|| value.to_owned())))
    }

    /// Returns the settings that are reported at startup.
    pub(super) fn reported(&self) -> impl Iterator<Item = (&'static str, String)> {
        let value = |name: &'static str| self.changed.get(name).map_or(default(name), |value| Some(value));
        REPORTED.into_iter().filter_map(move |name| Some((name, value(name)?.to_owned())))
    }
}

/// Returns every setting with its default.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    SETTINGS.iter().map(|(name, value, _)| (*name, *value))
}

/// Returns the default of a setting.
pub(super) fn default(name: &str) -> Option<&'static str> {
    find(name).map(|(_, value, _)| value)
}

fn find(name: &str) -> Option<(&'static str, &'static str, Change)> {
    SETTINGS.iter().copied().find(|known| known.0.eq_ignore_ascii_case(name))
}

fn unknown(name: &str) -> PgError {
    PgError::error("42704", format!("there is no setting '{name}'"))
}

fn unsupported(name: &str) -> PgError {
    let known = name.to_lowercase();
    if known.starts_with("datafusion.") || known == "role" || known == "session_authorization" {
        return PgError::error("42501", format!("{name} cannot be changed"));
    }
    unknown(name).hint("statement_timeout and what drivers set by themselves can be set")
}

/// Parses a duration as PostgreSQL does: milliseconds, or a number with a unit.
fn duration(text: &str) -> Result<Option<Duration>, PgError> {
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

fn no_duration(text: &str) -> PgError {
    PgError::error("22023", format!("'{text}' is not a duration"))
        .hint("write milliseconds, or as in '5s' and '2min'")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_postgresql_writes_them() {
        let read = |text| duration(text).map_err(|error| error.code);
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
        let mut set = |name, value| settings.set(name, Some(value)).map_err(|error| error.code);
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
