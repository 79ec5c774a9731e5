//! The quota fields of a rate limit: its name, how much of it is used, and when it resets.

use crate::category::Category;
use crate::details::{DetailKey, Details};
use crate::string_enum::string_enum;
use crate::time;
use std::fmt;

string_enum! {
    /// The level that a quota has reached.
    QuotaLevel {
        /// Close to the limit; requests still work.
        Warning = "warning",
        /// On hold until someone agrees to go on.
        Pause = "pause",
        /// Used up until it resets.
        Exhausted = "exhausted",
        /// A rate limit of the target was hit.
        Exceeded = "exceeded",
    }
}

/// The quota fields of an event.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Quota<'a> {
    /// The name of the quota, such as `requests_per_hour` or `cost_per_day`; not redacted yet.
    pub(crate) metric: Option<&'a str>,
    /// The used part of the quota.
    pub(crate) current: Option<f64>,
    /// The size of the quota.
    pub(crate) limit: Option<f64>,
    /// The level that the quota has reached.
    pub(crate) level: Option<QuotaLevel>,
    /// The time at which the quota resets, in microseconds.
    pub(crate) resets_at: Option<i64>,
}

/// The detail fields that may contain the limit, the hardest threshold first.
const LIMITS: [DetailKey; 4] = [DetailKey::HardStop, DetailKey::Pause, DetailKey::Warn, DetailKey::Limit];

impl<'a> Quota<'a> {
    /// Reads the quota of a rate limit. Other categories have none.
    pub(crate) fn read(category: Category, canonical: &str, details: &Details<'a>) -> Self {
        if category != Category::RateLimit {
            return Self::default();
        }
        let used = || Some(details.number(DetailKey::Limit)? - details.number(DetailKey::Remaining)?);
        Self {
            metric: details.text(DetailKey::Metric),
            current: details.number(DetailKey::Current).or_else(|| used().filter(|used| *used >= 0.0)),
            limit: LIMITS.iter().find_map(|&key| details.number(key)),
            level: Some(level(canonical)),
            resets_at: details.get(DetailKey::ResetsAt).and_then(time::read),
        }
    }
}

fn level(canonical: &str) -> QuotaLevel {
    match canonical {
        "RATE_LIMIT_QUOTA_WARNING" => QuotaLevel::Warning,
        "RATE_LIMIT_QUOTA_PAUSE" => QuotaLevel::Pause,
        "RATE_LIMIT_QUOTA_EXHAUSTED" => QuotaLevel::Exhausted,
        _ => QuotaLevel::Exceeded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Parser;

    fn check(canonical: &str, details: &str, expected: Quota<'_>) {
        Parser::new(64)
            .parse(details.as_bytes(), |json| {
                assert_eq!(Quota::read(Category::RateLimit, canonical, &Details::read(Some(json))), expected);
            })
            .expect(details);
    }

    #[test]
    fn the_hardest_threshold_is_the_limit() {
        check(
            "RATE_LIMIT_QUOTA_PAUSE",
            r#"{"metric":"cost_per_day","current":48.5,"pause_threshold":48,"hard_stop_threshold":50}"#,
            Quota {
                metric: Some("cost_per_day"),
                current: Some(48.5),
                limit: Some(50.0),
                level: Some(QuotaLevel::Pause),
                resets_at: None,
            },
        );
    }

    #[test]
    fn what_remains_tells_what_is_used() {
        check(
            "RATE_LIMIT_EXCEEDED",
            r#"{"limit":5000,"remaining":0,"resets_at":"1970-01-01T00:00:01Z"}"#,
            Quota {
                metric: None,
                current: Some(5000.0),
                limit: Some(5000.0),
                level: Some(QuotaLevel::Exceeded),
                resets_at: Some(1_000_000),
            },
        );
    }
}
