//! A writer for the few protobuf messages of OTLP that the world sends, without generated code. A message consists of
//! fields with a number, a wire type and a value.

/// A message that is being written.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u64 = 0;
const FIXED64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;

impl Message {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn integer(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3 | VARINT);
        self.varint(value);
        self
    }

    pub(super) fn fixed64(mut self, field: u64, value: u64) -> Self {
        self.varint(field << 3 | FIXED64);
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(super) fn bytes(mut self, field: u64, value: &[u8]) -> Self {
        self.varint(field << 3 | LENGTH_DELIMITED);
        self.varint(value.len() as u64);
        self.0.extend(value);
        self
    }

    pub(super) fn text(self, field: u64, value: &str) -> Self {
        self.bytes(field, value.as_bytes())
    }

    pub(super) fn message(self, field: u64, value: &Self) -> Self {
        self.bytes(field, &value.0)
    }

    /// Writes seven bits per byte, the lowest first; the highest bit of a byte says that more bytes follow.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the example of the protobuf encoding's specification: 150 as field 1, and a text as field 2.
    #[test]
    fn the_published_examples_are_written() {
        let message = Message::default().integer(1, 150).text(2, "testing");
        assert_eq!(message.into_bytes(), b"\x08\x96\x01\x12\x07testing");
    }
}
