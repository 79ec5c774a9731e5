//! Every bound of this library, in one place, each with its reason.
//!
//! Input is hostile until proven otherwise: whatever a sender writes, the work and the memory that one
//! record costs are bounded by these numbers.
//!
//! Some bounds only make sense beside others ([`LimitConstraint`]). For the defaults that is checked when compiling, for what an
//! operator sets by [`Limits::check`].

use std::fmt;

/// A relation of bounds: so much must fit into so much. Bounds are named as the fields of their `Limits` are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitConstraint {
    /// The bound that may be too large; none when it is fixed.
    small: Option<&'static str>,
    size: usize,
    /// How often it must fit.
    times: usize,
    /// The bound that may be too small; none when it is fixed.
    large: Option<&'static str>,
    capacity: usize,
    why: &'static str,
}

impl LimitConstraint {
    /// A bound must not exceed another.
    #[must_use]
    pub const fn fits(small: (&'static str, usize), large: (&'static str, usize), why: &'static str) -> Self {
        Self { small: Some(small.0), size: small.1, times: 1, large: Some(large.0), capacity: large.1, why }
    }

    /// So often.
    #[must_use]
    pub const fn times(self, times: usize) -> Self {
        Self { times, ..self }
    }

    /// A bound must not exceed what is fixed.
    #[must_use]
    pub const fn at_most(small: (&'static str, usize), capacity: usize, why: &'static str) -> Self {
        Self { small: Some(small.0), size: small.1, times: 1, large: None, capacity, why }
    }

    /// A bound must not be less than what is fixed.
    #[must_use]
    pub const fn at_least(large: (&'static str, usize), size: usize, why: &'static str) -> Self {
        Self { small: None, size, times: 1, large: Some(large.0), capacity: large.1, why }
    }

    /// Whether all of these hold.
    ///
    /// # Errors
    /// The first that does not.
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

    /// The bounds that do not fit together.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.small.into_iter().chain(self.large)
    }

    /// What is wrong and what to do, with the names that the reader knows the bounds by.
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

/// Bounds on what one record may cost. [`Limits::DEFAULT`] serves everyone we know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A longer line is not read: an envelope is a few hundred bytes, a megabyte is a mistake.
    pub line_bytes: usize,
    /// Objects and arrays nested deeper are refused, so that recursion stays shallow.
    pub json_depth: usize,
    /// How many wrappers and JSON-in-a-string layers are opened: MCP needs two, gateways add one or two.
    pub envelope_levels: usize,
    /// Events one record may yield; the rest are counted, not kept.
    pub events_per_record: usize,
    /// A message longer than this is cut (at a character) before anything reads it.
    pub message_bytes: usize,
    /// Only this much of a message makes its template: groups do not depend on a novel's last page.
    pub template_bytes: usize,
    /// `details` and `attributes` stop taking fields beyond this size, and say so.
    pub details_bytes: usize,
    /// The attributes of a record go with each of its events, until they have filled this many bytes: a
    /// batch of thousands must not repeat them thousands of times.
    pub attribute_bytes_per_record: usize,
    /// Names (service, operation, ids, codes) are cut here: they become labels and keys.
    pub name_bytes: usize,
}

impl Limits {
    /// What serves everyone we know of.
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

    /// Whether the bounds fit together.
    ///
    /// # Errors
    /// The first relation that does not hold.
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

/// One parser is kept for each level, so this one is fixed and no setting.
pub(crate) const MAX_ENVELOPE_LEVELS: usize = 4;

/// No line can be allowed to be longer.
const MAX_LINE_BYTES: usize = 64 << 20;
/// No value can be allowed to be nested deeper: at this depth, the stack of a thread still has most of its room.
const MAX_JSON_DEPTH: usize = 256;

/// A time further ahead of its arrival than this is a broken clock, in microseconds.
pub(crate) const MAX_FUTURE_US: i64 = 24 * 60 * 60 * 1_000_000;

const _: () = assert!(Limits::DEFAULT.check().is_ok());

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The first `limit` bytes of a text, shortened to a whole character.
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
