//! The approximate size of rows in memory while they are collected, estimated rather too high than too low.
//!
//! A body can yield far more than its own size: the context of a record is repeated in each of its events, and a call
//! of a dozen bytes can become a row of its own. So the rows are measured as they are created, not the bodies.

use classifier::Event;

/// The size of an event without its texts: about forty cells of one to eight bytes.
const EVENT_BYTES: usize = 256;
/// The length of a name that is included in the size of every row. A recurring name is stored once, but longer names
/// may differ in every row, so the bytes beyond this length are counted.
const NAME_BYTES: usize = 32;

/// Returns the approximate size of an event as a row, in bytes.
pub(super) fn event_bytes(event: &Event<'_>) -> usize {
    let context = &event.context;
    let texts = [
        event.message.as_deref(),
        event.details,
        event.attributes,
        context.request_id.as_deref(),
        context.session_id.as_deref(),
        context.trace_id.as_deref(),
        context.span_id.as_deref(),
    ];
    let names = [
        event.code.as_deref(),
        Some(&*event.canonical),
        event.template,
        context.service.as_deref(),
        context.service_version.as_deref(),
        context.environment.as_deref(),
        context.client.as_deref(),
        context.operation.as_deref(),
        event.quota.metric.as_deref(),
        event.denial.required_trust.as_deref(),
        event.denial.actual_trust.as_deref(),
    ];
    let texts: usize = texts.into_iter().flatten().map(str::len).sum();
    let names: usize = names.into_iter().flatten().map(|name| name.len().saturating_sub(NAME_BYTES)).sum();
    EVENT_BYTES + texts + names
}

#[cfg(test)]
mod tests {
    use super::*;
    use classifier::{Classifier, HashKey, RecordOrigin, Registry, Rules, Sink};

    #[derive(Default)]
    struct Sizes(Vec<usize>);

    impl Sink for Sizes {
        fn event(&mut self, event: &Event<'_>) {
            self.0.push(event_bytes(event));
        }

        fn call(&mut self, _: &classifier::Call<'_>) {}

        fn unrecognized(&mut self, _: classifier::UnrecognizedReason) {}
    }

    fn sizes(line: &str) -> Vec<usize> {
        let registry = Registry::builtin().unwrap();
        let rules = Rules::new(registry, HashKey::FIXED, classifier::Limits::default());
        let mut sizes = Sizes::default();
        Classifier::new(rules.into()).classify(line.as_bytes(), &RecordOrigin::default(), &mut sizes);
        sizes.0
    }

    /// Context that is given once in a record and repeated in each of its events counts for each of them.
    #[test]
    fn what_is_repeated_is_weighed_each_time() {
        let item = r#"{"success":false,"error":{"code":"INTERNAL_ERROR","message":"x"}}"#;
        let long = "i".repeat(200);
        let batch = |context: &str| format!(r#"{{"success":true,{context}"results":[{item},{item}]}}"#);
        let plain = sizes(&batch(""));
        assert_eq!(plain.len(), 2);
        assert!(plain.iter().all(|size| (256..300).contains(size)), "{plain:?}");
        for field in ["request_id", "session_id", "trace_id", "x"] {
            let heavy = sizes(&batch(&format!(r#""{field}":"{long}","#)));
            assert!(heavy.iter().all(|size| *size >= 256 + 200), "{field}: {heavy:?}");
        }
    }
}
