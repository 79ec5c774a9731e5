//! All limits of this library in one place, each with its reason.
//!
//! Input is treated as hostile: these limits bound the work and the memory that one record costs, whatever a sender
//! writes.
//!
//! Some limits depend on each other ([`LimitConstraint`]). The defaults are checked at compile time; limits that an
//! operator sets are checked by [`Limits::check`].

use std::fmt;

/// A constraint between limits: one value, possibly multiplied, must not exceed another. Limits are named like the
/// fields of their `Limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitConstraint {
    /// The limit that may be too large; `None` if this side is fixed.
    small: Option<&'static str>,
    size: usize,
    /// The factor by which the smaller value is multiplied.
    times: usize,
    /// The limit that may be too small; `None` if this side is fixed.
    large: Option<&'static str>,
    capacity: usize,
    why: &'static str,
}

impl LimitConstraint {
    /// Requires that a limit does not exceed another.
    #[must_use]
    pub const fn fits(small: (&'static str, usize), large: (&'static str, usize), why: &'static str) -> Self {
        Self { small: Some(small.0), size: small.1, times: 1, large: Some(large.0), capacity: large.1, why }
    }

    /// Multiplies the smaller value by a factor.
    #[must_use]
    pub const fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    /// Requires that a limit does not exceed a fixed value.
    #[must_use]
    pub const fn at_most(small: (&'static str, usize), capacity: usize, why: &'static str) -> Self {
        Self { small: Some(small.0), size: small.1, times: 1, large: None, capacity, why }
    }

    /// Requires that a limit is at least a fixed value.
    #[must_use]
    pub const fn at_least(large: (&'static str, usize), size: usize, why: &'static str) -> Self {
        Self { small: None, size, times: 1, large: Some(large.0), capacity: large.1, why }
    }

    /// Checks that all constraints hold.
    ///
    /// # Errors
    /// Returns the first constraint that does not hold.
    pub const fn check(all: &[Self]) -> Result<(), Self> {
        let mut index = 0;
        while index < all.len() {
            if all[index].size.saturating_mul(all[index].times) > all[index].capacity {
                return Err(all[index]);
            }
            index += 1;
        }
        Ok(())
    }

    /// Returns the names of the limits that do not fit together.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.small.into_iter().chain(self.large)
    }

    /// Describes the problem and its remedy. `name` maps the name of a limit to the one that the reader knows.
    #[must_use]
    pub fn describe(&self, name: impl Fn(&str) -> String) -> String {
        let Self { size, times, capacity, why, .. } = self;
        match (self.small.map(&name), self.large.map(&name)) {
            (Some(small), Some(large)) => {
                let repeated = if *times > 1 { format!("{times} times ") } else { String::new() };
                format!(
                    "{repeated}{small} ({size}) must be at most {large} ({capacity}): {why}; lower {small} or raise {large}"
                )
            }
            (Some(small), None) => format!("{small} ({size}) must be at most {capacity}: {why}"),
            (None, Some(large)) => format!("{large} ({capacity}) must be at least {size}: {why}"),
            (None, None) => (*why).to_owned(),
        }
    }
}

impl fmt::Display for LimitConstraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe(str::to_owned))
    }
}

impl std::error::Error for LimitConstraint {}

/// Limits on the cost of one record. [`Limits::DEFAULT`] suits every known deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum length of a line. Longer lines are not read: an envelope has a few hundred bytes, so a megabyte is
    /// a mistake.
    pub line_bytes: usize,
    /// The maximum nesting depth of objects and arrays. Deeper records are rejected, so that recursion stays shallow.
    pub json_depth: usize,
    /// The maximum number of wrappers and JSON-in-a-string layers that are opened: MCP needs two, gateways add one or
    /// two.
    pub envelope_levels: usize,
    /// The maximum number of events of one record. Further events are dropped, which is reported once.
    pub events_per_record: usize,
    /// The maximum length of a message. A longer one is truncated at a character boundary before it is read.
    pub message_bytes: usize,
    /// The number of bytes of a message that form its template, so that groups do not depend on the end of a very long
    /// text.
    pub template_bytes: usize,
    /// The size beyond which `details` and `attributes` accept no more fields and carry a truncation mark instead.
    pub details_bytes: usize,
    /// The budget for attributes of one record. They are written with each of its events until they have filled this
    /// many bytes, so that a batch of thousands does not repeat them thousands of times.
    pub attribute_bytes_per_record: usize,
    /// The length to which names (service, operation, ids, codes) are truncated, because they become labels and keys.
    pub name_bytes: usize,
}

impl Limits {
    /// The default limits, which suit every known deployment.
    pub const DEFAULT: Self = Self {
        line_bytes: 1 << 20,
        json_depth: 64,
        envelope_levels: MAX_ENVELOPE_LEVELS,
        events_per_record: 16_384,
        message_bytes: 8 << 10,
        template_bytes: 512,
        details_bytes: 64 << 10,
        attribute_bytes_per_record: 1 << 20,
        name_bytes: 256,
    };

    /// Checks that the limits fit together.
    ///
    /// # Errors
    /// Returns the first constraint that does not hold.
    pub const fn check(&self) -> Result<(), LimitConstraint> {
        let line = ("line_bytes", self.line_bytes);
        let message = ("message_bytes", self.message_bytes);
        let template = ("template_bytes", self.template_bytes);
        let details = ("details_bytes", self.details_bytes);
        let attributes = ("attribute_bytes_per_record", self.attribute_bytes_per_record);
        let names = ("name_bytes", self.name_bytes);
        LimitConstraint::check(&[
            LimitConstraint::at_most(
                line,
                MAX_LINE_BYTES,
                "a line is held in memory several times over while it is read",
            ),
            LimitConstraint::at_most(
                ("json_depth", self.json_depth),
                MAX_JSON_DEPTH,
                "values are walked by recursion",
            ),
            LimitConstraint::fits(template, message, "a template is made of a message"),
            LimitConstraint::fits(message, line, "a message is part of a line"),
            LimitConstraint::fits(details, line, "details are part of a line"),
            LimitConstraint::fits(details, attributes, "the attributes of one event must fit"),
            LimitConstraint::fits(names, template, "names are shorter than what is said about them"),
        ])
    }
}

/// The number of envelope levels. It is a constant and not a setting, because one parser is kept for each level.
pub(crate) const MAX_ENVELOPE_LEVELS: usize = 4;

/// The upper limit of [`Limits::line_bytes`].
const MAX_LINE_BYTES: usize = 64 << 20;
/// The upper limit of [`Limits::json_depth`]. At this depth, most of a thread's stack is still free.
const MAX_JSON_DEPTH: usize = 256;

/// The maximum time that a record may be ahead of its arrival, in microseconds. Beyond it, the sender's clock is
/// wrong.
pub(crate) const MAX_FUTURE_US: i64 = 24 * 60 * 60 * 1_000_000;

const _: () = assert!(Limits::DEFAULT.check().is_ok());

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Returns the first `limit` bytes of a text, shortened to a whole character.
pub(crate) fn truncate_str(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_together_is_told_with_both_names() {
        let limits = Limits { template_bytes: 9_000, ..Limits::DEFAULT };
        assert_eq!(
            limits.check().unwrap_err().to_string(),
            "template_bytes (9000) must be at most message_bytes (8192): a template is made of a message; \
             lower template_bytes or raise message_bytes"
        );
        let limits = Limits { json_depth: 1_000, ..Limits::DEFAULT };
        assert_eq!(
            limits.check().unwrap_err().to_string(),
            "json_depth (1000) must be at most 256: values are walked by recursion"
        );
    }
}
