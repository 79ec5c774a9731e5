//! The events of one span, in lists that are reused for the next span.

use classifier::telemetry::{Attribute, SpanEvent};
use std::borrow::Cow;
use std::ops::Range;

/// The events of a span, with the attributes of all events in one list: a list for each event would be an allocation
/// for each.
#[derive(Default)]
pub(super) struct SpanEventBuffer<'a> {
    events: Vec<Event<'a>>,
    pub(super) attributes: Vec<Attribute<'a>>,
}

struct Event<'a> {
    time_ns: u64,
    name: Cow<'a, str>,
    attributes: Range<usize>,
}

impl<'a> SpanEventBuffer<'a> {
    pub(super) fn clear(&mut self) {
        self.events.clear();
        self.attributes.clear();
    }

    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// Adds an event, whose attributes are those from index `first` on.
    pub(super) fn push(&mut self, time_ns: u64, name: Cow<'a, str>, first: usize) {
        self.events.push(Event { time_ns, name, attributes: first..self.attributes.len() });
    }

    pub(super) fn views(&self) -> Vec<SpanEvent<'_>> {
        self.events.iter().map(|event| self.view(event)).collect()
    }

    fn view<'e>(&'e self, event: &'e Event<'a>) -> SpanEvent<'e> {
        let attributes = self.attributes.get(event.attributes.clone()).unwrap_or_default();
        SpanEvent { time_ns: event.time_ns, name: &event.name, attributes }
    }
}
