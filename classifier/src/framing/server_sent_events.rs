//! Server-sent events: `event: message`, `data: {...}`, one on its own line or several in one text.

use std::borrow::Cow;

/// The fields of an event, as the standard names them.
const FIELDS: [&str; 4] = ["data", "event", "id", "retry"];

/// Reports whether a text opens with a field of an event, or with a comment such as `: ping`.
pub(crate) fn is_server_sent_events(text: &str) -> bool {
    let line = text.lines().next().unwrap_or_default();
    match line.split_once(':') {
        Some(("", comment)) => comment.is_empty() || comment.starts_with(' '),
        Some(("data" | "event", value)) => !value.is_empty(),
        // Prose may also begin with these words.
        Some(("id" | "retry", value)) => {
            let value = value.trim();
            !value.is_empty() && !value.contains(char::is_whitespace)
        }
        _ => false,
    }
}

/// Calls `read` with the data of each event; the data lines of one event are joined.
pub(crate) fn for_each_event(text: &str, mut read: impl FnMut(&str)) {
    let mut data: Option<Cow<'_, str>> = None;
    for line in text.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        let starts_event = line.trim().is_empty() || field == "event" && data.is_some();
        if starts_event {
            data.take().into_iter().for_each(|data| read(&data));
        }
        if field == "data" {
            match &mut data {
                None => data = Some(Cow::Borrowed(value)),
                Some(known) => {
                    let known = known.to_mut();
                    known.push('\n');
                    known.push_str(value);
                }
            }
        } else if !starts_event && !FIELDS.contains(&field) && !field.is_empty() {
            // This line continues a payload that was broken into lines without a `data:` on each.
            if let Some(known) = &mut data {
                let known = known.to_mut();
                known.push('\n');
                known.push_str(line);
            }
        }
    }
    data.into_iter().for_each(|data| read(&data));
}
