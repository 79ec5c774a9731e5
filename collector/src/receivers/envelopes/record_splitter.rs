//! Splits a body into records: lines, the elements of one array, or values written over several lines.
//!
//! Nothing is copied: records are slices of the body, and errors inside a record are found when it is parsed later.
//!
//! Invariants: the work is linear in the size of the body, and a broken record invalidates as few of its neighbours as
//! possible.

pub(in crate::receivers) mod json_scanner;

use super::response::EXAMPLE;
use crate::receivers::record_consumer::RecordConsumer;
use crate::{Rejection, RejectionReason};
use json_scanner::{Found, element, value};
use memchr::memchr;
use serde::de::IgnoredAny;

/// The reason under which rejected text is counted; it is the same as the classifier's.
const NOT_JSON: &str = "not_json";

/// Passes every record of `body` to `records`.
pub(super) fn read(body: &[u8], records: &mut impl RecordConsumer) -> Result<(), Rejection> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let start = blank(body);
    match body.get(start) {
        None => {
            let detail = "the body of the request to /v1/envelopes is empty";
            return Err(Rejection::new(RejectionReason::Unreadable, detail).with_remedy(EXAMPLE));
        }
        Some(b'[') if !starts_line_of_many(body, start) => array(body, start, records),
        Some(b'{') if starts_over_lines(body, start) => values(body, records),
        Some(_) => lines(body, 1, records),
    }
    Ok(())
}

/// Returns the number of bytes of white space at the start of `bytes`.
fn blank(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !byte.is_ascii_whitespace()).unwrap_or(bytes.len())
}

fn is_blank(bytes: &[u8]) -> bool {
    blank(bytes) == bytes.len()
}

/// Returns the bytes from `start` to the end of its line, and the rest of the body.
fn line_at(body: &[u8], start: usize) -> (&[u8], &[u8]) {
    let rest = body.get(start..).unwrap_or_default();
    rest.split_at(memchr(b'\n', rest).unwrap_or(rest.len()))
}

/// Returns true if an array fills one line and more lines follow: the body is then a log of batches, not one array.
fn starts_line_of_many(body: &[u8], start: usize) -> bool {
    let (line, rest) = line_at(body, start);
    !is_blank(rest) && value(line).is_some_and(|end| is_blank(line.get(end..).unwrap_or_default()))
}

/// Returns true if an object begins on one line and ends on another: the body is then pretty-printed JSON, one object
/// or several. The object is parsed so that a line that was merely cut short is not taken for the beginning of one.
fn starts_over_lines(body: &[u8], start: usize) -> bool {
    let (line, rest) = line_at(body, start);
    if is_blank(rest) || value(line).is_some() {
        return false;
    }
    let whole = body.get(start..).unwrap_or_default();
    let object = value(whole).and_then(|end| whole.get(..end));
    object.is_some_and(|object| serde_json::from_slice::<IgnoredAny>(object).is_ok())
}

/// Passes each line on as a record. Blank lines are not records, but they count in the line numbers.
pub(super) fn lines(mut rest: &[u8], first: u64, records: &mut impl RecordConsumer) {
    let mut number = first;
    while !rest.is_empty() {
        let (line, after) = line_at(rest, 0);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if !is_blank(line) {
            records.line(number, line);
        }
        number += 1;
        rest = after.get(1..).unwrap_or_default();
    }
}

/// Passes values on one after another, each over any number of lines. A value that does not end is read line by line.
fn values(body: &[u8], records: &mut impl RecordConsumer) {
    let mut at = 0;
    let mut number = 1;
    loop {
        let rest = body.get(at..).unwrap_or_default();
        let start = blank(rest);
        let rest = rest.get(start..).unwrap_or_default();
        let length = match rest.first() {
            None => return,
            Some(b'{') => value(rest),
            Some(_) => Some(line_at(rest, 0).0.len()),
        };
        let Some(length) = length else { return lines(rest, number, records) };
        records.line(number, rest.get(..length).unwrap_or_default());
        number += 1;
        at += start + length;
    }
}

/// Passes on the elements of the array that starts at `start`. An element that cannot be separated from its neighbours
/// is passed on together with them, and rejected together with them.
fn array(body: &[u8], start: usize, records: &mut impl RecordConsumer) {
    let mut at = start + 1;
    let mut number = 1;
    loop {
        let rest = body.get(at..).unwrap_or_default();
        let (end, found) = element(rest);
        let text = rest.get(..end).unwrap_or_default().trim_ascii();
        at += end + 1;
        let only_nothing = number == 1 && found != Found::Comma;
        if !text.is_empty() {
            records.line(number, text);
        } else if found != Found::End && !only_nothing {
            records.reject(number, NOT_JSON, "an element of the array is missing".to_owned(), rest);
        }
        number += 1;
        match found {
            Found::Comma => {}
            Found::Close => break,
            Found::End => {
                let detail = "the array is not closed: the body was cut short".to_owned();
                return records.reject(number, NOT_JSON, detail, text);
            }
        }
    }
    let after = body.get(at..).unwrap_or_default().trim_ascii();
    if !after.is_empty() {
        records.reject(number, NOT_JSON, "there is more after the array".to_owned(), after);
    }
}

#[cfg(test)]
mod tests;
