//! Secrets of each known kind, each of which is unique.

/// The number of kinds of secrets.
pub(crate) const KINDS: usize = 18;
/// The kinds of secrets that are headers.
const WHOLE_LINES: [usize; 2] = [15, 17];

/// All secrets that were handed out, and the harmless words beside them that must survive.
#[derive(Default)]
pub(crate) struct Canaries {
    count: u32,
    /// Fields, with texts that must not be found anywhere.
    pub(crate) secrets: Vec<(String, String)>,
    /// Fields, with texts that must be found in the data directory.
    pub(crate) neighbours: Vec<(String, String)>,
}

impl Canaries {
    /// Returns a text for each kind of secret: `near secret past`. With `kept`, the words around it must be stored.
    pub(crate) fn texts(&mut self, field: &str, kept: bool) -> Vec<String> {
        (0..KINDS).map(|kind| self.text(field, kind, kept)).collect()
    }

    /// Returns a text with a secret of one kind.
    pub(crate) fn text(&mut self, field: &str, kind: usize, kept: bool) -> String {
        let number = self.next();
        let (near, past) = (format!("near{number}q"), format!("past{number}q"));
        let (text, secret) = secret(kind, number);
        let field = format!("{field}, kind {kind}");
        if kept {
            self.neighbours.push((field.clone(), near.clone()));
            // The value of a header extends to the end of its line.
            if !WHOLE_LINES.contains(&kind) {
                self.neighbours.push((field.clone(), past.clone()));
            }
        }
        self.secrets.push((field, secret));
        format!("{near} {text} {past}")
    }

    /// Returns a secret without surrounding text, for fields that must not contain white space.
    pub(crate) fn bare(&mut self, field: &str, kind: usize) -> String {
        let (text, secret) = secret(kind, self.next());
        self.secrets.push((format!("{field}, kind {kind}"), secret));
        text
    }

    /// Returns a word that is a secret only because of its key.
    pub(crate) fn word(&mut self, field: &str) -> String {
        let word = format!("hunter{}Zq", self.next());
        self.secrets.push((field.to_owned(), word.clone()));
        word
    }

    fn next(&mut self) -> u32 {
        self.count += 1;
        1_000_000 + self.count
    }
}

/// Returns a secret as it occurs in a text, and the part of it that must not be found.
fn secret(kind: usize, number: u32) -> (String, String) {
    let word = format!("k{number}Zq");
    let text = match kind {
        0 => format!("conf_{word}"),
        1 => format!("quota_continue_{word}"),
        2 => format!("Bearer {word}abcdef"),
        3 => format!("eyJhbGciOiJIUzI1NiJ9.{word}.c2lnbmF0dXJl"),
        4 => format!("ghp_{word}0123456789abcdef"),
        5 => format!("sk-proj-{word}A1b2C3d4"),
        6 => format!("AKIA{}XYZW", word.to_ascii_uppercase()),
        7 => format!("password={word}"),
        8 => format!("api_key: {word}"),
        9 => card(number),
        10 => format!("{word}@example.com"),
        11 => format!("-----BEGIN PRIVATE KEY-----{word}-----END PRIVATE KEY-----"),
        12 => format!("postgres://app:{word}@db.internal/prod"),
        13 => format!("xoxb-{word}-0123456789"),
        14 => format!("glpat-{word}0123456789"),
        15 => format!("Authorization: Basic {word}YWxhZGRpbg=="),
        16 => format!("{{\"client_secret\":\"{word}\"}}"),
        _ => format!("Cookie: sid={word}; theme={word}"),
    };
    let secret = match kind {
        6 => word.to_ascii_uppercase(),
        9 => text.clone(),
        _ => word,
    };
    (text, secret)
}

/// Returns a card number that passes the Luhn check.
fn card(number: u32) -> String {
    let body = format!("41111111{number:07}");
    let digit = |(place, byte): (usize, u8)| {
        let digit = u32::from(byte - b'0') * if place % 2 == 0 { 2 } else { 1 };
        if digit > 9 { digit - 9 } else { digit }
    };
    let sum: u32 = body.bytes().enumerate().map(digit).sum();
    format!("{body}{}", (10 - sum % 10) % 10)
}
