//! Every bound of this library, in one place, each with its reason.
//!
//! Input is hostile until proven otherwise: whatever a sender writes, the work and the memory that one
//! record costs are bounded by these numbers.

/// Bounds on what one record may cost. [`Limits::default`] serves everyone we know of.
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

/// The defaults, as a constant so that their relations can be checked when compiling.
const DEFAULT: Limits = Limits {
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

/// One parser is kept for each level, so this one is fixed.
pub(crate) const MAX_ENVELOPE_LEVELS: usize = 4;

/// A time further ahead of its arrival than this is a broken clock, in microseconds.
pub(crate) const FUTURE_US: i64 = 24 * 60 * 60 * 1_000_000;

const _: () = {
    assert!(DEFAULT.template_bytes <= DEFAULT.message_bytes);
    assert!(DEFAULT.message_bytes < DEFAULT.line_bytes);
    assert!(DEFAULT.details_bytes < DEFAULT.line_bytes);
    assert!(DEFAULT.details_bytes <= DEFAULT.attribute_bytes_per_record);
    assert!(DEFAULT.name_bytes < DEFAULT.template_bytes);
    assert!(DEFAULT.envelope_levels < DEFAULT.json_depth);
};

impl Default for Limits {
    fn default() -> Self {
        DEFAULT
    }
}

/// The first `limit` bytes of a text, shortened to a whole character.
pub(crate) fn cut(text: &str, limit: usize) -> &str {
    &text[..text.floor_char_boundary(limit)]
}
