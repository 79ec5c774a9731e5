//! The messages of clients, parsed from bytes.
//!
//! Invariant: no bytes make the parser panic, regardless of the lengths that they state. Therefore messages of clients
//! are parsed here, while messages to clients are encoded by `pgwire`, whose parsers trust the counts inside a message.

use super::error::PgError;
use bytes::{Buf, Bytes};

/// A message after startup.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    Query(String),
    Parse {
        name: String,
        sql: String,
        types: Vec<u32>,
    },
    Bind(Bind),
    Describe(Target),
    Execute {
        portal: String,
        most: i32,
    },
    Close(Target),
    Flush,
    Sync,
    Terminate,
    /// A password or a SASL message; the authentication step knows which.
    Password(Bytes),
    /// Data of a `COPY`, which is always rejected.
    Copy,
}

/// The values of a statement, and the formats of its result.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Bind {
    pub(super) portal: String,
    pub(super) statement: String,
    pub(super) formats: Vec<i16>,
    pub(super) values: Vec<Option<Bytes>>,
    pub(super) results: Vec<i16>,
}

/// The object of a `Describe` or `Close` message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    Statement(String),
    Portal(String),
}

impl Message {
    /// Parses the body of a message; `None` for an unknown message type.
    pub(super) fn read(kind: u8, body: Bytes) -> Option<Result<Self, PgError>> {
        let body = Body(body);
        Some(match kind {
            b'Q' => body.query(),
            b'P' => body.parse(),
            b'B' => body.bind(),
            b'D' => body.target().map(Self::Describe),
            b'C' => body.target().map(Self::Close),
            b'E' => body.execute(),
            b'H' => Ok(Self::Flush),
            b'S' => Ok(Self::Sync),
            b'X' => Ok(Self::Terminate),
            b'p' => body.password(),
            b'd' | b'c' | b'f' => Ok(Self::Copy),
            _ => return None,
        })
    }

    /// Returns true if an error in this message makes the server skip messages until the client sends `Sync`.
    pub(super) fn is_followed_by_sync(&self) -> bool {
        matches!(
            self,
            Self::Parse { .. }
                | Self::Bind(_)
                | Self::Describe(_)
                | Self::Execute { .. }
                | Self::Close(_)
                | Self::Flush
        )
    }

    /// Returns true if an error in a message of this type makes the server skip messages until the client sends `Sync`.
    pub(super) fn is_extended(kind: u8) -> bool {
        b"PBDECH".contains(&kind)
    }
}

/// The unparsed rest of a message.
struct Body(Bytes);

impl Body {
    fn query(mut self) -> Result<Message, PgError> {
        Ok(Message::Query(self.text()?))
    }

    fn password(self) -> Result<Message, PgError> {
        Ok(Message::Password(self.0))
    }

    fn parse(mut self) -> Result<Message, PgError> {
        let (name, sql) = (self.text()?, self.text()?);
        let types = self.several(Self::u32)?;
        Ok(Message::Parse { name, sql, types })
    }

    fn bind(mut self) -> Result<Message, PgError> {
        Ok(Message::Bind(Bind {
            portal: self.text()?,
            statement: self.text()?,
            formats: self.several(Self::i16)?,
            values: self.several(Self::value)?,
            results: self.several(Self::i16)?,
        }))
    }

    fn execute(mut self) -> Result<Message, PgError> {
        let portal = self.text()?;
        Ok(Message::Execute { portal, most: self.u32()?.cast_signed() })
    }

    fn target(mut self) -> Result<Target, PgError> {
        let kind = self.take(1)?[0];
        let name = self.text()?;
        match kind {
            b'S' => Ok(Target::Statement(name)),
            b'P' => Ok(Target::Portal(name)),
            _ => Err(malformed()),
        }
    }

    /// Parses a text that ends with a zero byte.
    fn text(&mut self) -> Result<String, PgError> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or_else(malformed)?;
        let bytes = self.0.split_to(end);
        self.0.advance(1);
        String::from_utf8(bytes.into()).map_err(|_| PgError::error("22021", "a text is not UTF-8"))
    }

    /// Parses a length, or -1 for NULL, and as many bytes.
    fn value(&mut self) -> Result<Option<Bytes>, PgError> {
        match usize::try_from(self.u32()?.cast_signed()) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Ok(None),
        }
    }

    fn i16(&mut self) -> Result<i16, PgError> {
        self.take(2).map(|mut bytes| bytes.get_i16())
    }

    fn u32(&mut self) -> Result<u32, PgError> {
        self.take(4).map(|mut bytes| bytes.get_u32())
    }

    /// Parses a count of two bytes and as many items. Memory is allocated for items that exist, not for the count.
    fn several<T>(&mut self, one: impl Fn(&mut Self) -> Result<T, PgError>) -> Result<Vec<T>, PgError> {
        let count = self.i16()?.cast_unsigned();
        (0..count).map(|_| one(self)).collect()
    }

    fn take(&mut self, length: usize) -> Result<Bytes, PgError> {
        if length > self.0.len() {
            return Err(malformed());
        }
        Ok(self.0.split_to(length))
    }
}

fn malformed() -> PgError {
    PgError::error("08P01", "a message is shorter than its fields")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(kind: u8, body: &'static [u8]) -> Result<Message, PgError> {
        Message::read(kind, Bytes::from_static(body)).expect("a known kind")
    }

    #[test]
    fn messages_are_read() {
        assert_eq!(read(b'Q', b"SELECT 1\0"), Ok(Message::Query("SELECT 1".to_owned())));
        let bind = read(b'B', b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0");
        let values = vec![Some(Bytes::from_static(b"ab")), None];
        let (portal, statement) = ("p".to_owned(), "s".to_owned());
        let expected = Bind { portal, statement, formats: vec![1], values, results: Vec::new() };
        assert_eq!(bind, Ok(Message::Bind(expected)));
        assert_eq!(read(b'E', b"\0\0\0\0\x05"), Ok(Message::Execute { portal: String::new(), most: 5 }));
    }

    #[test]
    fn what_promises_more_than_it_holds_is_an_error() {
        for (kind, body) in [
            (b'Q', &b"no end"[..]),
            (b'P', b"n\0SELECT 1\0\xff\xff\0"),
            (b'B', b"p\0s\0\0\0\0\x01\x7f\xff\xff\xffx"),
            (b'D', b""),
            (b'D', b"?x\0"),
            (b'E', b"p\0\0"),
        ] {
            let error = Message::read(kind, Bytes::from_static(body)).expect("a known kind").unwrap_err();
            assert_eq!(error.code, "08P01", "{body:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(kind in any::<u8>(), body in proptest::collection::vec(any::<u8>(), 0..200)) {
            drop(Message::read(kind, Bytes::from(body)));
        }
    }
}
