//! The fields of OTLP/JSON that are read, as structs that borrow from the text.

use super::scalar::Scalar;
use crate::receivers::otlp::Signal;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::marker::PhantomData;

/// The most items of one list that are kept, whatever the limits: a struct needs more memory than the text `{}`.
const KEPT: usize = 1024;

/// An export request of any signal, so that one that was sent to the wrong path is rejected with a remedy.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExportRequest<'a> {
    #[serde(borrow)]
    resource_spans: Option<&'a RawValue>,
    #[serde(borrow)]
    resource_logs: Option<&'a RawValue>,
    #[serde(borrow)]
    resource_metrics: Option<&'a RawValue>,
}

impl<'a> ExportRequest<'a> {
    /// Returns the resources of `signal`. A request with only another signal is an error, not an empty request.
    pub(super) fn list(&self, signal: Signal) -> Result<Option<&'a RawValue>, &'static str> {
        let (list, what) = match signal {
            Signal::Traces => (
                self.resource_spans,
                "the request holds no resourceSpans, but another signal; logs go to /v1/logs, metrics to /v1/metrics",
            ),
            Signal::Logs => (
                self.resource_logs,
                "the request holds no resourceLogs, but another signal; spans go to /v1/traces, metrics to /v1/metrics",
            ),
            Signal::Metrics => (
                self.resource_metrics,
                "the request holds no resourceMetrics, but another signal; spans go to /v1/traces, logs to /v1/logs",
            ),
        };
        let any = self.resource_spans.or(self.resource_logs).or(self.resource_metrics);
        if list.is_none() && any.is_some() { Err(what) } else { Ok(list) }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceEntry<'a> {
    #[serde(borrow)]
    pub(super) resource: Option<ResourceFields<'a>>,
    #[serde(borrow)]
    scope_spans: Option<&'a RawValue>,
    #[serde(borrow)]
    scope_logs: Option<&'a RawValue>,
    #[serde(borrow)]
    scope_metrics: Option<&'a RawValue>,
}

impl<'a> ResourceEntry<'a> {
    pub(super) fn list(&self, signal: Signal) -> Option<&'a RawValue> {
        match signal {
            Signal::Traces => self.scope_spans,
            Signal::Logs => self.scope_logs,
            Signal::Metrics => self.scope_metrics,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ScopeEntry<'a> {
    #[serde(borrow)]
    spans: Option<&'a RawValue>,
    #[serde(borrow)]
    log_records: Option<&'a RawValue>,
    #[serde(borrow)]
    metrics: Option<&'a RawValue>,
}

impl<'a> ScopeEntry<'a> {
    pub(super) fn list(&self, signal: Signal) -> Option<&'a RawValue> {
        match signal {
            Signal::Traces => self.spans,
            Signal::Logs => self.log_records,
            Signal::Metrics => self.metrics,
        }
    }
}

/// The first attributes of a list.
pub(super) type Attributes<'a> = Option<CappedList<KeyValue<'a>>>;

#[derive(Deserialize)]
pub(super) struct ResourceFields<'a> {
    #[serde(borrow)]
    pub(super) attributes: Attributes<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpanFields<'a> {
    #[serde(borrow)]
    pub(super) trace_id: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) span_id: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) parent_span_id: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) kind: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) start_time_unix_nano: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) end_time_unix_nano: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) status: Option<StatusFields<'a>>,
    #[serde(borrow)]
    pub(super) attributes: Attributes<'a>,
    #[serde(borrow)]
    pub(super) events: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
pub(super) struct StatusFields<'a> {
    #[serde(borrow)]
    pub(super) code: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) message: Option<Scalar<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EventFields<'a> {
    #[serde(borrow)]
    pub(super) time_unix_nano: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) name: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) attributes: Attributes<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LogFields<'a> {
    #[serde(borrow)]
    pub(super) time_unix_nano: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) observed_time_unix_nano: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) severity_number: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) event_name: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) body: Option<AnyValueFields<'a>>,
    #[serde(borrow)]
    pub(super) attributes: Attributes<'a>,
    #[serde(borrow)]
    pub(super) trace_id: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) span_id: Option<Scalar<'a>>,
}

#[derive(Deserialize)]
pub(super) struct KeyValue<'a> {
    #[serde(borrow)]
    pub(super) key: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) value: Option<AnyValueFields<'a>>,
}

/// An `AnyValue`, one level deep.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AnyValueFields<'a> {
    #[serde(borrow)]
    pub(super) string_value: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) bool_value: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) int_value: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) double_value: Option<Scalar<'a>>,
    #[serde(borrow)]
    pub(super) array_value: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) kvlist_value: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) bytes_value: Option<Scalar<'a>>,
}

/// The first items of a list; the rest is skipped.
pub(super) struct CappedList<T>(pub(super) Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for CappedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut kept = Vec::new();
        let keep = |item: Item<T>| {
            match item {
                Item(Some(item)) if kept.len() < KEPT => kept.push(item),
                _ => {}
            }
            Ok(())
        };
        Each(keep, PhantomData).deserialize(deserializer)?;
        Ok(Self(kept))
    }
}

/// An item, or `null`.
struct Item<T>(Option<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Item<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Option::deserialize(deserializer).map(Self)
    }
}

/// Calls `item` for each item of the list `raw`, one at a time.
pub(super) fn each<'a, T: Deserialize<'a>>(
    raw: &'a RawValue,
    item: impl FnMut(T) -> Result<(), serde_json::Error>,
) -> Result<(), serde_json::Error> {
    Each(item, PhantomData).deserialize(&mut serde_json::Deserializer::from_str(raw.get()))
}

struct Each<F, T>(F, PhantomData<T>);

impl<'de, T, F> DeserializeSeed<'de> for Each<F, T>
where
    T: Deserialize<'de>,
    F: FnMut(T) -> Result<(), serde_json::Error>,
{
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, T, F> Visitor<'de> for Each<F, T>
where
    T: Deserialize<'de>,
    F: FnMut(T) -> Result<(), serde_json::Error>,
{
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            (self.0)(item).map_err(A::Error::custom)?;
        }
        Ok(())
    }
}
