//! Encodes and decodes protobuf by hand, for the few messages that no SDK would send, and for responses.

/// Returns a field that holds bytes: a text, a message, an id.
pub(crate) fn field(number: u64, bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [varint(number << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// Returns a field that holds a number.
pub(crate) fn number(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3), varint(value)].concat()
}

/// Returns a field that holds eight bytes, such as a time.
pub(crate) fn fixed(number: u64, value: u64) -> Vec<u8> {
    [varint(number << 3 | 1), value.to_le_bytes().to_vec()].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 127 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Returns an attribute that is a text, as the field of its owner.
pub(crate) fn attribute(of: u64, key: &str, text: &str) -> Vec<u8> {
    any_attribute(of, key, field(1, text))
}

/// Returns an attribute of any value.
pub(crate) fn any_attribute(of: u64, key: &str, value: impl AsRef<[u8]>) -> Vec<u8> {
    field(of, [field(1, key), field(2, value)].concat())
}

/// Returns a value that is a map of texts.
pub(crate) fn map(pairs: &[(&str, &str)]) -> Vec<u8> {
    field(6, pairs.iter().flat_map(|(key, text)| attribute(1, key, text)).collect::<Vec<_>>())
}

/// Returns a failed server span with ids of its own; more fields may follow.
pub(crate) fn span(id: u8, more: &[Vec<u8>]) -> Vec<u8> {
    let base = [
        field(1, [id; 16]),
        field(2, [id; 8]),
        field(5, "call"),
        number(6, 2),
        fixed(7, 1_793_520_000_000_000_000),
        fixed(8, 1_793_520_000_001_000_000),
        attribute(9, "error.code", "-32602"),
    ];
    [base.concat(), more.concat()].concat()
}

/// Returns a request for traces or for logs, of one resource.
pub(crate) fn request(resource: &[Vec<u8>], records: &[Vec<u8>]) -> Vec<u8> {
    let records: Vec<u8> = records.iter().flat_map(|record| field(2, record)).collect();
    field(1, [field(1, resource.concat()), field(2, records)].concat())
}

/// The value of a field in a response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Held {
    Number(u64),
    Bytes(Vec<u8>),
}

impl Held {
    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Bytes(bytes) => std::str::from_utf8(bytes).expect("UTF-8"),
            Self::Number(number) => panic!("a number: {number}"),
        }
    }
}

/// Returns the fields of a message.
#[track_caller]
pub(crate) fn fields(mut bytes: &[u8]) -> Vec<(u64, Held)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = take_varint(&mut bytes);
        let held = match key & 7 {
            0 => Held::Number(take_varint(&mut bytes)),
            2 => {
                let length = take_varint(&mut bytes) as usize;
                let (held, rest) = bytes.split_at(length);
                bytes = rest;
                Held::Bytes(held.to_vec())
            }
            other => panic!("wire type {other}"),
        };
        fields.push((key >> 3, held));
    }
    fields
}

fn take_varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("a varint ends");
        *bytes = rest;
        value |= u64::from(first & 127) << shift;
        if first & 128 == 0 {
            break;
        }
    }
    value
}

/// `google.rpc.Status`: its code, its message, and the kinds of its details.
#[derive(Debug, PartialEq)]
pub(crate) struct Status {
    pub(crate) code: u64,
    pub(crate) message: String,
    pub(crate) details: Vec<String>,
}

/// Reads a status.
#[track_caller]
pub(crate) fn status(bytes: &[u8]) -> Status {
    let mut status = Status { code: 0, message: String::new(), details: Vec::new() };
    for (number, held) in fields(bytes) {
        match (number, held) {
            (1, Held::Number(code)) => status.code = code,
            (2, held) => status.message = held.text().to_owned(),
            (3, Held::Bytes(any)) => status.details.push(fields(&any)[0].1.text().to_owned()),
            other => panic!("no field of a status: {other:?}"),
        }
    }
    status
}
