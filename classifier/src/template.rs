//! The template of a message: the part that stays the same when the same problem occurs again.
//!
//! By convention, dynamic values are in single quotes. In addition, numbers, hex ids, UUIDs, URLs, paths, e-mail
//! addresses, times and redaction marks become placeholders, so that `Resource 'issue' not found: '17'` and
//! `...: '18'` belong to one group.
//!
//! Invariant: the same message gives the same template in every version, because stored fingerprints depend on it. A
//! golden file verifies this.

mod values;

use values::{address, ipv6_length, is_absolute_path, number_length, path_length, time_length, uuid_length};

/// Information leaks that were noticed while the template was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Leaks {
    /// True if the message shows a path of the server's file system.
    pub(crate) path: bool,
    /// True if the message shows a stack frame or the class of an exception.
    pub(crate) internals: bool,
}

/// Appends the template of a message to `out`.
pub(crate) fn write(out: &mut String, message: &str) -> Leaks {
    let mut scanner = Scanner {
        text: message,
        bytes: message.as_bytes(),
        position: 0,
        written: 0,
        has_address_bytes: memchr::memchr3(b'/', b'\\', b'@', message.as_bytes()).is_some(),
        leaks: Leaks::default(),
    };
    while scanner.position < scanner.bytes.len() {
        scanner.step(out);
    }
    scanner.flush(out);
    scanner.leaks
}

/// Returns the template of a message.
#[must_use]
pub fn from_message(message: &str) -> String {
    let mut out = String::new();
    write(&mut out, message);
    out
}

struct Scanner<'t> {
    text: &'t str,
    bytes: &'t [u8],
    position: usize,
    /// The position up to which the template is written. The text from here to `position` is copied unchanged. Most of
    /// a message is, so it is copied in long stretches.
    written: usize,
    /// False if the message contains no `/`, `\` or `@`, so that there are no paths, URLs or addresses to look for.
    has_address_bytes: bool,
    leaks: Leaks,
}

/// The maximum length of a quoted value. If it is longer, the quote is treated as an apostrophe.
const MAX_QUOTED_BYTES: usize = 1024;

impl Scanner<'_> {
    fn byte(&self, index: usize) -> u8 {
        self.bytes.get(index).copied().unwrap_or(0)
    }

    /// Returns true if a word can start here.
    fn at_word_start(&self) -> bool {
        self.position == 0
            || !(is_word(self.bytes[self.position - 1]) || self.bytes[self.position - 1] == b'}')
    }

    fn replace(&mut self, out: &mut String, length: usize, placeholder: &str) {
        self.flush(out);
        out.push_str(placeholder);
        self.position += length;
        self.written = self.position;
    }

    fn advance_to(&mut self, end: usize) {
        self.position = end;
    }

    fn flush(&mut self, out: &mut String) {
        out.push_str(&self.text[self.written..self.position]);
        self.written = self.position;
    }

    fn step(&mut self, out: &mut String) {
        match self.bytes[self.position] {
            quote @ (b'\'' | b'"' | b'`') => self.quoted(out, quote),
            b'[' => self.redaction_mark(out),
            b'{' => self.existing_placeholder(),
            b'/' | b'\\' | b'~' | b'.' if self.at_word_start() => self.rooted_path(out),
            byte if is_word(byte) => self.word(out),
            _ => {
                let rest = &self.bytes[self.position..];
                let end = rest.iter().position(|&byte| is_special(byte)).unwrap_or(rest.len()).max(1);
                self.advance_to(self.position + end);
            }
        }
    }

    /// Replaces a value in quotes. An apostrophe inside a word does not open one.
    fn quoted(&mut self, out: &mut String, quote: u8) {
        let start = self.position + 1;
        // A byte that is a letter or a digit now may be a placeholder in an existing template.
        let is_glued = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'{' | b'}');
        let opens = self.position == 0 || !is_glued(self.bytes[self.position - 1]);
        let closes = |(at, &byte): (usize, &u8)| byte == quote && !is_glued(self.byte(start + at + 1));
        let rest = &self.bytes[start..];
        let length = rest.iter().enumerate().take(MAX_QUOTED_BYTES).position(closes);
        match length.filter(|_| opens) {
            Some(length) => {
                self.leaks.path |= is_absolute_path(&rest[..length]);
                let placeholder = match quote {
                    b'\'' => "'{value}'",
                    b'"' => "\"{value}\"",
                    _ => "`{value}`",
                };
                self.replace(out, length + 2, placeholder);
            }
            None => self.advance_to(start),
        }
    }

    /// Replaces `[redacted]`, `[token:...]` and `[client:...]`, because redaction marks are as dynamic as the values
    /// they hide.
    fn redaction_mark(&mut self, out: &mut String) {
        let rest = &self.text[self.position..];
        let is_mark = ["[redacted]", "[token:", "[client:"].iter().any(|mark| rest.starts_with(mark));
        match rest.find(']').filter(|_| is_mark) {
            Some(end) => self.replace(out, end + 1, "{redacted}"),
            None => self.advance_to(self.position + 1),
        }
    }

    /// Skips a placeholder that the message already contains.
    fn existing_placeholder(&mut self) {
        let rest = &self.bytes[self.position + 1..];
        let letters = rest.iter().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let end = if letters > 0 && rest.get(letters) == Some(&b'}') { letters + 2 } else { 1 };
        self.advance_to(self.position + end);
    }

    /// Replaces a path that starts at the root, at the home directory or at the current directory.
    fn rooted_path(&mut self, out: &mut String) {
        let length = path_length(&self.bytes[self.position..]);
        let path = &self.bytes[self.position..self.position + length];
        let signs = path.iter().take_while(|byte| b"/\\~.".contains(byte)).count();
        if path.contains(&b'/') | path.contains(&b'\\') && length > signs && signs < 4 {
            self.leaks.path |= is_absolute_path(path);
            self.replace(out, length, "{path}");
        } else {
            self.advance_to(self.position + signs.max(1));
        }
    }

    fn word(&mut self, out: &mut String) {
        let rest = &self.bytes[self.position..];
        let mut classes = 0;
        let length = rest.iter().position(|&byte| {
            classes |= BYTE_CLASS[usize::from(byte)];
            !is_word(byte)
        });
        let length = length.unwrap_or(rest.len());
        self.leaks.internals |= shows_internals(&rest[..length]) || is_source_location(rest, length);
        if self.has_address_bytes
            && let Some((length, placeholder)) = address(rest, length)
        {
            self.leaks.path |= rest[1..].starts_with(b":\\");
            return self.replace(out, length, placeholder);
        }
        if classes & CLASS_DIGIT == 0 {
            return self.advance_to(self.position + length);
        }
        if let Some(length) = time_length(rest) {
            return self.replace(out, length, "{time}");
        }
        if rest.get(length) == Some(&b':')
            && let Some(length) = ipv6_length(rest)
        {
            return self.replace(out, length, "{address}");
        }
        self.plain_word(out, length);
    }

    /// Replaces the dynamic segments of a word: `task-123` keeps its name and loses its number.
    fn plain_word(&mut self, out: &mut String, length: usize) {
        let end = self.position + length;
        while self.position < end {
            let rest = &self.bytes[self.position..end];
            if let Some(length) = uuid_length(rest) {
                self.replace(out, length, "{uuid}");
                continue;
            }
            let segment = rest.iter().position(|&byte| matches!(byte, b'_' | b'-')).unwrap_or(rest.len());
            match segment {
                0 => self.advance_to(self.position + 1),
                _ => match classify_segment(&rest[..segment]) {
                    Segment::Word => self.advance_to(self.position + segment),
                    Segment::Whole(placeholder) => self.replace(out, segment, placeholder),
                    Segment::Measure(digits) => {
                        self.replace(out, digits, "{number}");
                        self.advance_to(self.position + segment - digits);
                    }
                    Segment::Number => {
                        let length = number_length(&self.bytes[self.position..]);
                        self.flush(out);
                        let before = out.len().checked_sub(1).map(|last| out.as_bytes()[last]);
                        // A minus sign belongs to its number if no word precedes it.
                        if before == Some(b'-')
                            && !out[..out.len() - 1].ends_with(|c: char| c.is_alphanumeric() || c == '}')
                        {
                            out.pop();
                        }
                        self.replace(out, length, "{number}");
                        if self.position > end {
                            return;
                        }
                    }
                },
            }
        }
    }
}

/// Returns true for words that occur only in stack traces: `Traceback`, `panicked`, or a class such as `ValueError`.
fn shows_internals(word: &[u8]) -> bool {
    let class =
        |ending: &[u8]| word.strip_suffix(ending).and_then(<[u8]>::last).is_some_and(u8::is_ascii_lowercase);
    match word.last() {
        Some(b'r') => class(b"Error"),
        Some(b'n') => class(b"Exception"),
        Some(b'k') => word == b"Traceback",
        Some(b'd') => word == b"panicked",
        Some(b'e') => word == b"backtrace",
        _ => false,
    }
}

/// Returns true for a location in a source file, as stack traces and crash logs show it.
fn is_source_location(rest: &[u8], word: usize) -> bool {
    const SOURCE_EXTENSIONS: [&[u8]; 18] = [
        b"js", b"ts", b"jsx", b"tsx", b"mjs", b"py", b"go", b"rs", b"rb", b"java", b"kt", b"cs", b"cpp",
        b"c", b"php", b"ex", b"erl", b"scala",
    ];
    match &rest[word..] {
        [b'.', after @ ..] => {
            let letters = after.iter().take(6).take_while(|byte| byte.is_ascii_alphabetic()).count();
            let has_line = matches!(after.get(letters..), Some([b':', b'0'..=b'9', ..]));
            has_line && SOURCE_EXTENSIONS.contains(&&after[..letters])
        }
        [b' ', b'"', after @ ..] if &rest[..word] == b"File" => {
            memchr::memmem::find(&after[..after.len().min(MAX_QUOTED_BYTES)], b"\", line ").is_some()
        }
        [b' ', b'0'..=b'9', ..] => &rest[..word] == b"goroutine",
        _ => false,
    }
}

/// The class of a run of letters and digits.
enum Segment {
    Word,
    Number,
    /// A number with a unit, such as `30ms`. The value is the number of digits.
    Measure(usize),
    Whole(&'static str),
}

fn classify_segment(segment: &[u8]) -> Segment {
    let digits = segment.iter().filter(|byte| byte.is_ascii_digit()).count();
    if digits == 0 {
        return Segment::Word;
    }
    if digits == segment.len() {
        return Segment::Number;
    }
    let leading = segment.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let unit = &segment[leading..];
    let is_hex = |digits: &[u8]| !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let has_exponent =
        leading > 0 && matches!(unit, [b'e' | b'E', power @ ..] if power.iter().all(u8::is_ascii_digit));
    // A hex id may happen to look like a number, so both have the same placeholder.
    if has_exponent || segment.strip_prefix(b"0x").is_some_and(is_hex) {
        return Segment::Whole("{number}");
    }
    if leading == digits && is_unit(unit) {
        return Segment::Measure(digits);
    }
    if segment.len() >= 4 && is_hex(segment) {
        return Segment::Whole("{number}");
    }
    if leading == digits && unit.len() <= 3 {
        return Segment::Measure(digits);
    }
    // `utf8`, `sha256` and `ipv6` are words; `a1b2c3` is an id.
    let trailing = segment.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    if trailing == digits && digits <= 3 || segment.len() < 6 {
        return Segment::Word;
    }
    Segment::Whole("{id}")
}

/// Returns true for the usual units of time, size and rate. None of them consists only of hex digits.
fn is_unit(letters: &[u8]) -> bool {
    const UNITS: [&[u8]; 23] = [
        b"ns", b"us", b"ms", b"s", b"sec", b"secs", b"m", b"min", b"mins", b"h", b"hr", b"hrs", b"k", b"kb",
        b"mb", b"gb", b"tb", b"kib", b"mib", b"gib", b"x", b"px", b"th",
    ];
    UNITS.iter().any(|unit| unit.eq_ignore_ascii_case(letters))
}

/// Returns true for the bytes of words: letters, digits, `_` and `-`. Bytes of other scripts count as letters.
const fn is_word(byte: u8) -> bool {
    BYTE_CLASS[byte as usize] & CLASS_WORD != 0
}

/// Returns true for the bytes at which a value or a word may begin.
const fn is_special(byte: u8) -> bool {
    BYTE_CLASS[byte as usize] != 0
}

const CLASS_WORD: u8 = 1;
const CLASS_DIGIT: u8 = 2;
const CLASS_OPENING: u8 = 4;

const BYTE_CLASS: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = match byte as u8 {
            b'0'..=b'9' => CLASS_WORD | CLASS_DIGIT,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'-' | 0x80.. => CLASS_WORD,
            b'\'' | b'"' | b'`' | b'[' | b'{' | b'/' | b'\\' | b'~' | b'.' => CLASS_OPENING,
            _ => 0,
        };
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests;
