//! The known fields of `details` objects, found in one pass.

use crate::json::{Json, TapeOffset};
use crate::name_table::NameTable;
use std::sync::LazyLock;

/// A known field. Fields that are alternatives to each other are listed in order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DetailKey {
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

impl DetailKey {
    /// Reports whether a field is a standard part of an error.
    fn is_error_part(self) -> bool {
        matches!(
            self,
            Self::Success | Self::Code | Self::Message | Self::Details | Self::Data | Self::Retryable
        )
    }
}

const KEY_COUNT: usize = DetailKey::RetryAfterCamel as usize + 1;

const KEY_NAMES: [(&str, DetailKey); 49] = [
    ("success", DetailKey::Success),
    ("code", DetailKey::Code),
    ("message", DetailKey::Message),
    ("details", DetailKey::Details),
    ("data", DetailKey::Data),
    ("type", DetailKey::Type),
    ("http_status", DetailKey::HttpStatus),
    ("httpStatus", DetailKey::HttpStatus),
    ("http_code", DetailKey::HttpStatus),
    ("httpCode", DetailKey::HttpStatus),
    ("http_status_code", DetailKey::HttpStatus),
    ("statusCode", DetailKey::HttpStatus),
    ("status_code", DetailKey::HttpStatus),
    ("status", DetailKey::Status),
    ("retryable", DetailKey::Retryable),
    ("category", DetailKey::Category),
    ("operation", DetailKey::Operation),
    ("request_id", DetailKey::RequestId),
    ("requestId", DetailKey::RequestId),
    ("confirmation_token", DetailKey::ConfirmationToken),
    ("confirmationToken", DetailKey::ConfirmationToken),
    ("token", DetailKey::Token),
    ("confirmation", DetailKey::Confirmation),
    ("metric", DetailKey::Metric),
    ("current", DetailKey::Current),
    ("remaining", DetailKey::Remaining),
    ("hard_stop_threshold", DetailKey::HardStop),
    ("pause_threshold", DetailKey::Pause),
    ("warn_threshold", DetailKey::Warn),
    ("limit", DetailKey::Limit),
    ("resets_at", DetailKey::ResetsAt),
    ("reset_at", DetailKey::ResetsAt),
    ("resetsAt", DetailKey::ResetsAt),
    ("required_trust", DetailKey::RequiredTrust),
    ("minimum_trust_required", DetailKey::RequiredTrust),
    ("actual_trust", DetailKey::ActualTrust),
    ("adapter_trust", DetailKey::ActualTrust),
    ("danger_level", DetailKey::DangerLevel),
    ("dangerLevel", DetailKey::DangerLevel),
    ("retry_after_seconds", DetailKey::RetryAfterSeconds),
    ("retryAfterSeconds", DetailKey::RetryAfterSeconds),
    ("retry_after_ms", DetailKey::RetryAfterMillis),
    ("retryAfterMs", DetailKey::RetryAfterMillis),
    ("retry_after_millis", DetailKey::RetryAfterMillis),
    ("retry_after", DetailKey::RetryAfter),
    ("retry-after", DetailKey::RetryAfter),
    ("Retry-After", DetailKey::RetryAfter),
    ("retry_in", DetailKey::RetryAfter),
    ("retryAfter", DetailKey::RetryAfterCamel),
];

static KEY_TABLE: LazyLock<NameTable<DetailKey>> =
    LazyLock::new(|| NameTable::new(KEY_NAMES.map(|(name, key)| (name.to_owned(), key))));

/// The known fields of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Details<'t> {
    object: Json<'t>,
    offsets: [Option<TapeOffset>; KEY_COUNT],
    /// True if there are fields other than the standard parts of an error.
    has_extra_fields: bool,
}

impl<'t> Details<'t> {
    /// An object without fields.
    pub(crate) const EMPTY: Self =
        Self { object: Json::NULL, offsets: [None; KEY_COUNT], has_extra_fields: false };

    /// Sorts the fields of an object. Fields that are null, and values that are not objects, are ignored.
    pub(crate) fn read(object: Option<Json<'t>>) -> Self {
        let Some(object) = object else { return Self::EMPTY };
        let mut details = Self { object, ..Self::EMPTY };
        let table = &*KEY_TABLE;
        for (name, value, offset) in object.fields().with_offsets() {
            let key = table.get(name);
            details.has_extra_fields |= key.is_none_or(|key| !key.is_error_part());
            if let Some(key) = key
                && !value.is_null()
            {
                details.offsets[key as usize] = Some(offset);
            }
        }
        details
    }

    /// Returns the fields of an error object that are not read as its standard parts.
    pub(crate) fn extra_fields(&self, object: Option<Json<'t>>) -> impl Iterator<Item = (&'t str, Json<'t>)> {
        let table = &*KEY_TABLE;
        object.filter(|_| self.has_extra_fields).into_iter().flat_map(Json::fields).filter(|(name, value)| {
            !value.is_null() && table.get(name).is_none_or(|key| !key.is_error_part())
        })
    }

    pub(crate) fn get(&self, key: DetailKey) -> Option<Json<'t>> {
        self.object.value_at(self.offsets[key as usize]?)
    }

    pub(crate) fn text(&self, key: DetailKey) -> Option<&'t str> {
        self.get(key)?.as_str()
    }

    pub(crate) fn number(&self, key: DetailKey) -> Option<f64> {
        self.get(key)?.as_f64()
    }
}
