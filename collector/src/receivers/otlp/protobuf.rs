//! Decodes the protobuf wire format in place.
//!
//! A [`MessageReader`] yields the fields of one message in order. A nested message is decoded only when the caller
//! needs it. Every length is checked against the remaining bytes. Groups are rejected: no OTLP message has them.

use crate::{Rejection, RejectionReason};

/// The value of a field, by wire type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum FieldValue<'a> {
    /// An integer, an enum value or a boolean.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// A string, bytes, a nested message or a packed list.
    Bytes(BodySlice<'a>),
    /// Four bytes.
    Fixed32(u32),
}

/// A slice of the body, with its offset.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BodySlice<'a> {
    pub(super) bytes: &'a [u8],
    /// Its offset in the body.
    pub(super) at: usize,
}

/// An error in the encoding of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DecodeError {
    /// The description of the error.
    pub(super) what: &'static str,
    /// The offset of the error in the body.
    pub(super) at: usize,
}

impl From<DecodeError> for Rejection {
    fn from(malformed: DecodeError) -> Self {
        let DecodeError { what, at } = malformed;
        Self::new(RejectionReason::Unreadable, format!("not a protobuf message: {what} at byte {at}"))
    }
}

/// Returns the error for a field whose wire type does not match its number.
pub(super) fn wrong_type<T>(message: &MessageReader<'_>) -> Result<T, DecodeError> {
    Err(message.malformed("a field of another type than it should be"))
}

/// Iterates over the fields of one message.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessageReader<'a> {
    rest: &'a [u8],
    /// The offset in the body at which the message ends.
    end: usize,
}

impl<'a> MessageReader<'a> {
    pub(super) fn of_body(body: &'a [u8]) -> Self {
        Self { rest: body, end: body.len() }
    }

    pub(super) fn new(slice: BodySlice<'a>) -> Self {
        Self { rest: slice.bytes, end: slice.at + slice.bytes.len() }
    }

    /// Returns the number and value of the next field; `None` at the end. It is always inlined: callers destructure the
    /// result at once, and it would otherwise be passed through memory.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Result<Option<(u64, FieldValue<'a>)>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let key = self.varint()?;
        let field = match key & 7 {
            0 => FieldValue::Varint(self.varint()?),
            1 => FieldValue::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => FieldValue::Bytes(self.slice()?),
            5 => FieldValue::Fixed32(u32::from_le_bytes(self.fixed()?)),
            _ => return Err(self.malformed("a group, or no known type of field,")),
        };
        match key >> 3 {
            0 => Err(self.malformed("a field without a number")),
            number => Ok(Some((number, field))),
        }
    }

    /// Returns the next number of a packed field; `None` at the end.
    pub(super) fn next_packed(&mut self) -> Result<Option<u64>, DecodeError> {
        if self.rest.is_empty() { Ok(None) } else { self.varint().map(Some) }
    }

    /// Returns a decode error at the current offset.
    #[cold]
    pub(super) fn malformed(&self, what: &'static str) -> DecodeError {
        DecodeError { what, at: self.end - self.rest.len() }
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, DecodeError> {
        match self.rest.split_first() {
            Some((&byte, rest)) if byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for (index, &byte) in self.rest.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (index * 7);
            if byte < 0x80 {
                self.rest = self.rest.get(index + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        let what = if self.rest.len() < 10 { "the end inside a number" } else { "a number too long" };
        Err(self.malformed(what))
    }

    #[inline]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.rest.split_first_chunk::<N>() {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(*bytes)
            }
            None => Err(self.malformed("the end inside a number")),
        }
    }

    #[inline]
    fn slice(&mut self) -> Result<BodySlice<'a>, DecodeError> {
        let length = self.varint()?;
        let at = self.end - self.rest.len();
        match usize::try_from(length).ok().and_then(|length| self.rest.split_at_checked(length)) {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(BodySlice { bytes, at })
            }
            None => Err(self.malformed("a length beyond the end")),
        }
    }
}

#[cfg(test)]
mod tests;
