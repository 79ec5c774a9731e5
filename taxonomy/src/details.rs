//! The fields of `details` that mean something to us, found in one pass.

use crate::json::{Json, Place};
use crate::known::Known;
use std::sync::LazyLock;

/// A field with a meaning. Fields that rank among each other stand in the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Success,
    Code,
    Message,
    Details,
    Data,
    Retryable,
    Type,
    HttpStatus,
    Status,
    Category,
    Operation,
    RequestId,
    ConfirmationToken,
    Token,
    Confirmation,
    Metric,
    Current,
    Remaining,
    HardStop,
    Pause,
    Warn,
    Limit,
    ResetsAt,
    RequiredTrust,
    ActualTrust,
    DangerLevel,
    RetryAfterSeconds,
    RetryAfterMillis,
    RetryAfter,
    RetryAfterCamel,
}

impl Key {
    /// What every error is made of.
    fn is_of_error(self) -> bool {
        matches!(
            self,
            Self::Success | Self::Code | Self::Message | Self::Details | Self::Data | Self::Retryable
        )
    }
}

const KEYS: usize = Key::RetryAfterCamel as usize + 1;

const NAMES: [(&str, Key); 43] = [
    ("success", Key::Success),
    ("code", Key::Code),
    ("message", Key::Message),
    ("details", Key::Details),
    ("data", Key::Data),
    ("type", Key::Type),
    ("http_status", Key::HttpStatus),
    ("status", Key::Status),
    ("retryable", Key::Retryable),
    ("category", Key::Category),
    ("operation", Key::Operation),
    ("request_id", Key::RequestId),
    ("requestId", Key::RequestId),
    ("confirmation_token", Key::ConfirmationToken),
    ("confirmationToken", Key::ConfirmationToken),
    ("token", Key::Token),
    ("confirmation", Key::Confirmation),
    ("metric", Key::Metric),
    ("current", Key::Current),
    ("remaining", Key::Remaining),
    ("hard_stop_threshold", Key::HardStop),
    ("pause_threshold", Key::Pause),
    ("warn_threshold", Key::Warn),
    ("limit", Key::Limit),
    ("resets_at", Key::ResetsAt),
    ("reset_at", Key::ResetsAt),
    ("resetsAt", Key::ResetsAt),
    ("required_trust", Key::RequiredTrust),
    ("minimum_trust_required", Key::RequiredTrust),
    ("actual_trust", Key::ActualTrust),
    ("adapter_trust", Key::ActualTrust),
    ("danger_level", Key::DangerLevel),
    ("dangerLevel", Key::DangerLevel),
    ("retry_after_seconds", Key::RetryAfterSeconds),
    ("retryAfterSeconds", Key::RetryAfterSeconds),
    ("retry_after_ms", Key::RetryAfterMillis),
    ("retryAfterMs", Key::RetryAfterMillis),
    ("retry_after_millis", Key::RetryAfterMillis),
    ("retry_after", Key::RetryAfter),
    ("retry-after", Key::RetryAfter),
    ("Retry-After", Key::RetryAfter),
    ("retry_in", Key::RetryAfter),
    ("retryAfter", Key::RetryAfterCamel),
];

static KNOWN: LazyLock<Known<Key>> =
    LazyLock::new(|| Known::new(NAMES.map(|(name, key)| (name.to_owned(), key))));

/// The meaningful fields of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Details<'t> {
    object: Json<'t>,
    places: [Option<Place>; KEYS],
    /// There are fields beside those that make up an error.
    has_others: bool,
}

impl<'t> Details<'t> {
    /// Nothing.
    pub(crate) const NONE: Self = Self { object: Json::NULL, places: [None; KEYS], has_others: false };

    /// Sorts the fields of an object, if it is one; those that are null do not count.
    pub(crate) fn read(object: Option<Json<'t>>) -> Self {
        let Some(object) = object else { return Self::NONE };
        let mut details = Self { object, ..Self::NONE };
        let known = &*KNOWN;
        for (name, value, place) in object.fields().with_places() {
            let key = known.get(name);
            details.has_others |= key.is_none_or(|key| !key.is_of_error());
            if let Some(key) = key
                && !value.is_null()
            {
                details.places[key as usize] = Some(place);
            }
        }
        details
    }

    /// The fields of an error object that are not already read as its parts.
    pub(crate) fn others(&self, object: Option<Json<'t>>) -> impl Iterator<Item = (&'t str, Json<'t>)> {
        let known = &*KNOWN;
        object
            .filter(|_| self.has_others)
            .into_iter()
            .flat_map(Json::fields)
            .filter(|(name, value)| !value.is_null() && known.get(name).is_none_or(|key| !key.is_of_error()))
    }

    pub(crate) fn get(&self, key: Key) -> Option<Json<'t>> {
        self.object.at(self.places[key as usize]?)
    }

    pub(crate) fn text(&self, key: Key) -> Option<&'t str> {
        self.get(key)?.as_str()
    }

    pub(crate) fn number(&self, key: Key) -> Option<f64> {
        self.get(key)?.as_f64()
    }
}
