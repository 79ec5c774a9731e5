//! The prefix of a log line: time, level, and the name of a server or a logger.
//!
//! Examples: `2026-03-17T21:02:23Z [weather] [info] `, `[E 2026-03-17 21:02:23,000 proxy.server] `,
//! `Mar 17 21:02:23 host weather[812]: `, `2026-03-17T21:02:23Z stdout F `, `weather-1  | `.

use crate::time;

/// The maximum number of parts of a prefix.
const MAX_PARTS: usize = 12;
/// The maximum length of the name of a server or a logger, in bytes.
const MAX_NAME_BYTES: usize = 96;

/// The parts that precede the message of a log line.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Prefix<'t> {
    /// The time in microseconds since 1970. A time without a zone is taken as UTC.
    pub(crate) time: Option<i64>,
    /// The server that the line is about.
    pub(crate) service: Option<&'t str>,
    pub(crate) level: Option<&'t str>,
    /// The number of parts that were recognized.
    pub(crate) parts: usize,
}

const LEVELS: [&str; 15] = [
    "trace",
    "debug",
    "verbose",
    "info",
    "information",
    "notice",
    "log",
    "warn",
    "warning",
    "error",
    "err",
    "fatal",
    "critical",
    "crit",
    "severe",
];

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl<'t> Prefix<'t> {
    /// Reads the parts at the start of a text; returns them with the rest of the text.
    pub(crate) fn read(text: &'t str) -> (Self, &'t str) {
        let mut prefix = Self::default();
        let mut rest = text.trim_start();
        for _ in 0..MAX_PARTS {
            let Some(next) = prefix.read_part(rest) else { break };
            prefix.parts += 1;
            rest = next.trim_start_matches([' ', '\t', '-', '|', ':', ',']);
        }
        (prefix, rest)
    }

    fn read_part(&mut self, text: &'t str) -> Option<&'t str> {
        match text.as_bytes().first()? {
            b'[' => self.read_bracket(text),
            b'0'..=b'9' => self.read_time(text),
            _ => self
                .read_stream(text)
                .or_else(|| self.read_syslog(text))
                .or_else(|| self.read_glog(text))
                .or_else(|| self.read_level(text))
                .or_else(|| self.read_server(text))
                .or_else(|| self.read_compose(text))
                .or_else(|| self.read_logger(text)),
        }
    }

    /// Reads a time: `2026-03-17T21:02:23.5Z`, `2026-03-17 21:02:23,500`.
    fn read_time(&mut self, text: &'t str) -> Option<&'t str> {
        let (written, end) = time_length(text)?;
        let rest = &text[end..];
        let read = time::parse(written).or_else(|| time::parse(&format!("{written}Z")));
        self.time = self.time.or(read);
        read.map(|_| rest)
    }

    /// Reads a bracket: `[info]`, `[weather]`, `[2026-03-17 21:02:23]`,
    /// `[E 2026-03-17 21:02:23,000 proxy.server]`.
    fn read_bracket(&mut self, text: &'t str) -> Option<&'t str> {
        let (inside, rest) = text[1..].split_once(']')?;
        if inside.is_empty() || inside.len() > MAX_NAME_BYTES || inside.contains(['{', '"', '\n']) {
            return None;
        }
        let mut words = inside;
        let mut is_ours = false;
        while !words.is_empty() {
            let after_time = self.read_time(words);
            let after_level = after_time.or_else(|| self.read_level(words));
            let Some(after) = after_level.or_else(|| self.read_level_letter(words)) else {
                // A number is a process id.
                let is_name = words.contains(|c: char| c.is_ascii_alphabetic()) && !words.contains(' ');
                let is_number = words.bytes().all(|byte| byte.is_ascii_digit());
                is_ours |= is_name || is_number || words == "server stderr";
                let names_server = is_name && !words.eq_ignore_ascii_case("mcp");
                self.service = self.service.or(Some(words).filter(|_| names_server));
                break;
            };
            is_ours = true;
            words = after.trim_start();
        }
        is_ours.then_some(rest)
    }

    /// Reads a level that is one letter before a time: `E 2026-...`.
    fn read_level_letter(&mut self, text: &'t str) -> Option<&'t str> {
        let (letter, rest) = text.split_once(' ')?;
        matches!(letter, "E" | "W" | "I" | "D" | "F").then(|| {
            self.level = self.level.or(Some(letter));
            rest
        })
    }

    fn read_level(&mut self, text: &'t str) -> Option<&'t str> {
        let end = text.bytes().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(text.len());
        let (word, rest) = text.split_at(end);
        let is_level = LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level));
        // `Error: ...` and `fatal: ...` open a message; a level is in capitals or between other parts.
        let is_word = word.bytes().any(|byte| byte.is_ascii_lowercase());
        let ends = rest.is_empty() || rest.starts_with([' ', '\t', ':', ']', '|']);
        let is_sentence = self.parts == 0 || word.starts_with(|c: char| c.is_ascii_uppercase());
        let opens_message = is_word
            && (rest.starts_with(':') && (self.time.is_none() || is_sentence)
                || is_sentence && rest.starts_with(' '));
        (is_level && ends && !opens_message && self.level.is_none()).then(|| {
            self.level = self.level.or(Some(word));
            rest
        })
    }

    /// Reads `stdout F `, as container runtimes write it.
    fn read_stream(&self, text: &'t str) -> Option<&'t str> {
        let rest = text.strip_prefix("stdout ").or_else(|| text.strip_prefix("stderr "))?;
        rest.strip_prefix("F ").or_else(|| rest.strip_prefix("P "))
    }

    /// Reads `Mar 17 21:02:23 host weather[812]: `. It has no year, so the time is not used.
    fn read_syslog(&mut self, text: &'t str) -> Option<&'t str> {
        let month = text.get(..3).filter(|month| MONTHS.contains(month))?;
        let mut words = text[month.len()..].split_ascii_whitespace();
        let (day, clock, _host) = (words.next()?, words.next()?, words.next()?);
        let is_time = day.len() <= 2
            && day.bytes().all(|byte| byte.is_ascii_digit())
            && clock.matches(':').count() == 2;
        let (head, rest) = text.split_once(": ").filter(|(head, _)| is_time && head.len() <= 160)?;
        let name = head.rsplit(' ').next().unwrap_or_default();
        let name = name.split('[').next().unwrap_or_default();
        self.service = self.service.or(Some(name).filter(|name| is_name(name)));
        Some(rest)
    }

    /// Reads `E0520 13:46:29.975004 78921 server.go:70] `, as Go programs write it. It has no year, so the time is not
    /// used.
    fn read_glog(&mut self, text: &'t str) -> Option<&'t str> {
        const MAX_HEAD_BYTES: usize = 80;
        let (head, rest) = text.split_once("] ").filter(|(head, _)| head.len() <= MAX_HEAD_BYTES)?;
        let (day, after) = head.split_once(' ')?;
        let (level, digits) = day.split_at_checked(1)?;
        let is_head = matches!(level, "E" | "W" | "I" | "F")
            && digits.len() == 4
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && after.matches(':').count() >= 3;
        is_head.then(|| {
            self.level = self.level.or(Some(level));
            rest
        })
    }

    /// Reads `MCP server "weather": ` and `MCP server "weather" `.
    fn read_server(&mut self, text: &'t str) -> Option<&'t str> {
        let rest =
            ["MCP server ", "mcp server ", "MCP Server "].iter().find_map(|lead| text.strip_prefix(lead))?;
        let quote = rest.chars().next().filter(|quote| matches!(quote, '"' | '\'' | '`'))?;
        let (name, rest) = rest[1..].split_once(quote)?;
        let rest = rest.strip_prefix(':').or_else(|| rest.strip_prefix(' '))?;
        (name.len() <= MAX_NAME_BYTES).then(|| {
            self.service = Some(name);
            rest
        })
    }

    /// Reads `weather-1  | `, as docker compose writes it.
    fn read_compose(&mut self, text: &'t str) -> Option<&'t str> {
        let (name, rest) = text.split_once('|').filter(|_| self.parts == 0)?;
        let name = name.trim_end();
        let is_ours = is_name(name) && rest.starts_with(' ');
        is_ours.then(|| {
            self.service = self.service.or(Some(name));
            rest
        })
    }

    /// Reads the name of a logger after a time or a level, `proxy.server: ` or `rmcp::service: `. It does not
    /// name a server.
    fn read_logger(&self, text: &'t str) -> Option<&'t str> {
        if self.parts == 0 {
            return None;
        }
        let end = text.find([' ', '\t', '{'])?;
        let name = text[..end].trim_end_matches(':');
        let rest = &text[name.len()..];
        let is_separated =
            rest.starts_with(':') || rest.starts_with(" - ") || rest.trim_start().starts_with('{');
        let has_parts = name.contains(['.', ':', '/', '_'])
            || rest.starts_with(" - ")
            || self.level.is_some_and(|level| level.bytes().all(|byte| byte.is_ascii_uppercase()));
        (is_separated && has_parts && is_name(name)).then_some(rest)
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/'))
}

/// Returns the timestamp at the start of a text, and the position after it.
fn time_length(text: &str) -> Option<(&str, usize)> {
    const SHAPE: &[u8; 19] = b"0000-00-00T00:00:00";
    let bytes = text.as_bytes();
    let fixed: &[u8; 19] = bytes.first_chunk()?;
    let fits = fixed.iter().zip(SHAPE).all(|(byte, shape)| match shape {
        b'0' => byte.is_ascii_digit(),
        b'T' => matches!(byte, b'T' | b' '),
        other => byte == other,
    });
    if !fits {
        return None;
    }
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = SHAPE.len();
    if matches!(bytes.get(end), Some(b'.' | b',')) {
        end += 1 + digits(end + 1);
    }
    let fraction_end = end;
    // Some loggers write a second fraction after the first one.
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
        return Some((&text[..fraction_end], end));
    }
    match bytes.get(end) {
        Some(b'Z') => end += 1,
        Some(b'+' | b'-') if digits(end + 1) == 4 => end += 5,
        Some(b'+' | b'-') if digits(end + 1) == 2 && bytes.get(end + 3) == Some(&b':') => end += 6,
        _ => {}
    }
    (end <= bytes.len()).then(|| (&text[..end], end))
}
