//! Message templates such as `Missing required parameter '{param_name}'`, and the check whether a message fits one.

/// A message with `{placeholders}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageTemplate {
    text: String,
    /// The fixed parts. A placeholder separates each part from the next.
    fixed: Vec<String>,
}

impl MessageTemplate {
    /// Parses a template. Braces that are not closed are text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut fixed = vec![String::new()];
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let Some((_, after)) = after.split_once('}') else { break };
            push(&mut fixed, before);
            fixed.push(String::new());
            rest = after;
        }
        push(&mut fixed, rest);
        Self { text: text.to_owned(), fixed }
    }

    /// Returns the template as it was written.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns true if the message could have been created from this template. A template without placeholders may be
    /// followed by more text, as in `Invalid params: missing uri`.
    #[must_use]
    pub fn fits(&self, message: &str) -> bool {
        let Some((first, others)) = self.fixed.split_first() else { return false };
        let Some(mut rest) = strip_prefix_ignoring_case(message, first) else { return false };
        let Some((last, middle)) = others.split_last() else {
            return rest.is_empty() || !rest.starts_with(char::is_alphanumeric);
        };
        for part in middle {
            let Some(at) = rest.find(part.as_str()) else { return false };
            rest = &rest[at + part.len()..];
        }
        rest.ends_with(last.as_str())
    }
}

fn push(fixed: &mut [String], text: &str) {
    if let Some(last) = fixed.last_mut() {
        last.push_str(text);
    }
}

fn strip_prefix_ignoring_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_fits_its_template() {
        let fits = |template: &str, message: &str| MessageTemplate::new(template).fits(message);
        assert!(fits("Missing required parameter '{param}'", "Missing required parameter 'owner'"));
        assert!(!fits("Missing required parameter '{param}'", "owner is missing"));
        assert!(fits("Parameter '{a}' expected '{b}', got '{c}'", "Parameter 'x' expected 'int', got 'str'"));
        assert!(!fits("Parameter '{a}' expected '{b}', got '{c}'", "Parameter 'x' expected 'int'"));
        assert!(fits(
            "Payload exceeds {type} limit of {value}",
            "Payload exceeds request_size limit of 1048576"
        ));
        assert!(fits("Quota exhausted", "Quota exhausted"));
    }

    #[test]
    fn a_template_without_placeholders_may_be_continued_but_not_extended() {
        let template = MessageTemplate::new("Invalid params");
        assert!(template.fits("Invalid params: missing uri"));
        assert!(template.fits("invalid params"));
        assert!(!template.fits("Invalid paramsX"));
        assert!(!template.fits("Params invalid"));
    }

    #[test]
    fn an_open_brace_is_text() {
        assert!(MessageTemplate::new("odd {brace").fits("odd {brace"));
    }
}
