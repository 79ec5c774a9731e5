//! The share of secrets that are found, and the share of innocent texts that are left unchanged.
//!
//! `tests/corpus/secrets/secrets.ndjson` contains invented secrets in the contexts in which they occur, and
//! `innocent.ndjson` contains texts that only look like secrets. Each is classified as a record, and the resulting
//! events are searched. `{S}` marks the position of the secret, whose parts are joined here, so that no scanner
//! reports the file as a leak.

#[cfg(test)]
mod secrets {
    use classifier::{
        Call, Classifier, Event, HashKey, Limits, RecordOrigin, Registry, Rules, Sink, UnrecognizedReason,
    };
    use serde_json::{Value, json};
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::Arc;

    #[derive(Default)]
    struct Events(Vec<String>);

    impl Sink for Events {
        fn event(&mut self, event: &Event<'_>) {
            let mut json = String::new();
            event.write_json(&mut json, Some(1));
            self.0.push(json);
        }
        fn call(&mut self, _: &Call<'_>) {}
        fn unrecognized(&mut self, reason: UnrecognizedReason) {
            self.0.push(format!("{{\"unrecognized\":\"{}\"}}", reason.as_str()));
        }
    }

    fn classifier() -> Classifier {
        let rules = Rules::new(Registry::builtin().expect("the registry"), HashKey::FIXED, Limits::default());
        Classifier::new(Arc::new(rules))
    }

    fn entries(name: &str) -> Vec<Value> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/corpus/secrets").join(name);
        let text = std::fs::read_to_string(&path).expect("the corpus can be read");
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    fn events(classifier: &mut Classifier, record: &str) -> String {
        let mut events = Events::default();
        let origin = RecordOrigin { arrival: 1_790_000_000_000_000, ..RecordOrigin::default() };
        classifier.classify(record.as_bytes(), &origin, &mut events);
        assert!(!events.0.is_empty() && !events.0[0].contains("unrecognized"), "no event: {record}");
        events.0.join("\n")
    }

    /// Returns the records of an entry, one for each context that its text is put into.
    fn records(entry: &Value) -> Vec<String> {
        let failure = |message: &str, details: Value| {
            json!({"success": false, "error": {"code": "INTERNAL_ERROR", "message": message, "details": details}})
                .to_string()
        };
        if let Some(text) = entry["text"].as_str() {
            let nested = json!({"reply": text}).to_string();
            return vec![
                failure(text, json!({"count": 1})),
                failure("m", json!({"note": text, "upstream": [text]})),
                failure("m", json!({"upstream": nested})),
            ];
        }
        if let Some(line) = entry["line"].as_str() {
            return vec![line.to_owned()];
        }
        match (&entry["details"], &entry["record"]) {
            (Value::Null, record) => vec![record.to_string()],
            (details, _) => vec![failure("m", details.clone())],
        }
    }

    /// Inserts the secret at its mark, in strings of JSON texts of any depth.
    fn filled(entry: &Value, secret: &str) -> Value {
        match entry {
            Value::String(text) => match serde_json::from_str::<Value>(text) {
                Ok(inner @ (Value::Object(_) | Value::Array(_))) => filled(&inner, secret).to_string().into(),
                _ => text.replace("{S}", secret).into(),
            },
            Value::Array(items) => items.iter().map(|item| filled(item, secret)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(key, value)| (key.replace("{S}", secret), filled(value, secret)))
                .collect::<serde_json::Map<_, _>>()
                .into(),
            other => other.clone(),
        }
    }

    fn secret_of(entry: &Value) -> String {
        let parts = entry["secret"].as_array().expect("the parts of a secret");
        parts.iter().map(|part| part.as_str().expect("a part")).collect()
    }

    /// Returns true if a text contains a secret or its longer half, however often it was escaped.
    fn holds(text: &str, secret: &str) -> bool {
        let middle = secret.ceil_char_boundary(secret.len() / 2);
        let halves = [&secret[..middle], &secret[middle..]].into_iter().filter(|half| half.len() >= 6);
        let escaped = |part: &str| {
            let once = serde_json::to_string(part).expect("text");
            let twice = serde_json::to_string(&once[1..once.len() - 1]).expect("text");
            [part.to_owned(), once[1..once.len() - 1].to_owned(), twice[1..twice.len() - 1].to_owned()]
        };
        halves.chain([secret]).flat_map(escaped).any(|part| text.contains(&part))
    }

    /// Returns the problem with the events of an entry that contains a secret.
    fn leak(classifier: &mut Classifier, entry: &Value) -> Option<String> {
        let secret = secret_of(entry);
        let filled = filled(entry, &secret);
        for (index, record) in records(&filled).iter().enumerate() {
            let out = events(classifier, record);
            if holds(&out, &secret) {
                return Some(format!("{secret}\n    in  {record}\n    out {out}"));
            }
            let lost = filled["keep"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let escaped =
                |text: &str| serde_json::to_string(text).expect("text").trim_matches('"').to_owned();
            if let Some(word) = lost.into_iter().find(|word| index == 0 && !out.contains(&escaped(word))) {
                return Some(format!("eaten: {word}\n    in  {record}\n    out {out}"));
            }
        }
        None
    }

    /// Returns the problem with the events of an entry that contains no secret.
    fn change(classifier: &mut Classifier, entry: &Value) -> Option<String> {
        if let Some(details) = entry.get("details") {
            let out = events(classifier, &records(entry)[0]);
            let event: Value = serde_json::from_str(&out).expect("an event");
            return (&event["details"] != details).then_some(out);
        }
        let text = entry["text"].as_str().expect("a text");
        let records = records(entry);
        let out: Value = serde_json::from_str(&events(classifier, &records[0])).expect("an event");
        let noted: Value = serde_json::from_str(&events(classifier, &records[1])).expect("an event");
        let is_same = out["message"] == text
            && noted["details"]["note"] == text
            && noted["details"]["upstream"][0] == text;
        (!is_same).then(|| format!("{text}\n    out {}\n    note {}", out["message"], noted["details"]))
    }

    #[allow(clippy::print_stdout, clippy::cast_precision_loss)]
    fn report(name: &str, total: usize, wrong: &[(String, String)]) -> f64 {
        let mut by_place: BTreeMap<&str, usize> = BTreeMap::new();
        for (place, _) in wrong {
            *by_place.entry(place).or_default() += 1;
        }
        let share = wrong.len() as f64 * 100.0 / total as f64;
        println!("{name}: {} of {total} wrong ({share:.2} %) {by_place:?}", wrong.len());
        for (place, what) in wrong {
            println!("  {place}: {what}");
        }
        share
    }

    /// Recall is at least 98 %, and at most 1 % of the innocent texts are changed.
    #[test]
    fn secrets_are_taken_out_and_innocent_texts_stay() {
        let mut classifier = classifier();
        let secrets = entries("secrets.ndjson");
        let innocent = entries("innocent.ndjson");
        let place = |entry: &Value| entry["place"].as_str().unwrap_or("text").to_owned();
        let leaks: Vec<_> =
            secrets.iter().filter_map(|entry| Some((place(entry), leak(&mut classifier, entry)?))).collect();
        let changes: Vec<_> = innocent
            .iter()
            .filter_map(|entry| Some((place(entry), change(&mut classifier, entry)?)))
            .collect();
        let missed = report("secrets", secrets.len(), &leaks);
        let changed = report("innocent texts", innocent.len(), &changes);
        let places: std::collections::BTreeSet<_> = secrets.iter().map(place).collect();
        assert!(
            secrets.len() >= 300 && innocent.len() >= 300 && places.len() >= 20,
            "the corpus is too small"
        );
        assert!(missed <= 2.0, "recall is {:.2} %", 100.0 - missed);
        assert!(changed <= 1.0, "{changed:.2} % of the innocent texts are changed");
    }
}
