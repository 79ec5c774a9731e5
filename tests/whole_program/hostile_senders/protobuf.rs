//! OTLP messages written by hand, including messages that no encoder would write.

/// Returns a field that holds bytes.
pub(super) fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// Returns a request with these spans, or log records, of one resource.
pub(super) fn request(records: &[Vec<u8>]) -> Vec<u8> {
    let scope: Vec<u8> = records.iter().flat_map(|record| field(2, record)).collect();
    field(1, &field(2, &scope))
}

/// Returns a span that any server would accept.
pub(super) fn good_span() -> Vec<u8> {
    request(&[field(5, b"call")])
}

/// Returns a span with one attribute.
pub(super) fn span_with(value: &[u8]) -> Vec<u8> {
    [field(5, b"call"), field(9, &[field(1, b"key"), field(2, value)].concat())].concat()
}

/// Returns a list in a list in a list.
pub(super) fn deep_value(depth: usize) -> Vec<u8> {
    (0..depth).fold(field(1, b"x"), |value, _| field(5, &field(1, &value)))
}

/// Returns the same in JSON.
pub(super) fn deep_json(depth: usize) -> String {
    let open = r#"{"arrayValue":{"values":["#.repeat(depth);
    format!(r#"{open}{{"stringValue":"x"}}{}"#, "]}}".repeat(depth))
}
