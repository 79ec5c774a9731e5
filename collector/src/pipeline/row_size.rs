//! What rows weigh in memory while they are gathered, roughly and on the safe side.
//!
//! A body can yield far more than it holds: the context of a record goes with each of its events, and a call
//! of a dozen bytes can be a row of its own. So rows are weighed as they are made, not bodies.

use classifier::Event;

/// What an event weighs beside its texts: some forty cells of one to eight bytes.
const EVENT_BYTES: usize = 256;
/// A name that recurs is kept once. Names up to this length are part of what a row weighs anyway; what is
/// longer may be different in every row, and is weighed.
const NAME_BYTES: usize = 32;

/// An event as a row.
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
        event.quota_metric.as_deref(),
        event.required_trust.as_deref(),
        event.actual_trust.as_deref(),
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

    /// What stands once in a record and goes with each of its events is weighed with each of them.
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
