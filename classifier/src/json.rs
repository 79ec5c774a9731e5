//! JSON as a flat tape: one parse, no tree, no copies of strings.
//!
//! [`Parser`] copies a document once into a padded buffer that it keeps, lets `simd-json` unescape it in
//! place, and provides [`Json`]: a cheap, borrowed view of one value on the tape. A subtree is a slice, so
//! skipping one costs nothing.
//!
//! Invariants: depth is bounded while parsing, so recursion over a [`Json`] is bounded too; if a key is
//! repeated, the last value counts, as in the parsers that most senders use.

mod lone_surrogates;
mod oversized_numbers;
pub(crate) mod write;

pub use lone_surrogates::replace_lone_surrogates;
pub use oversized_numbers::quote_oversized_numbers;

use crate::reason::UnrecognizedReason;
use simd_json::{Buffers, ErrorType, INPUT_PADDING, Node, StaticNode, Tape};
use std::borrow::Cow;
use std::mem;
use std::num::NonZeroU32;

/// One JSON value on a tape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Json<'t>(&'t [Node<'t>]);

impl Json<'_> {
    /// A missing value, which reads as `null`.
    pub(crate) const NULL: Self = Json(&[]);
}

impl<'t> Json<'t> {
    /// Reports whether both are the same node of the same tape.
    pub(crate) fn is_same_node(self, other: Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }

    fn node(self) -> Node<'t> {
        self.0.first().copied().unwrap_or(Node::Static(StaticNode::Null))
    }

    /// Returns the text of a string.
    #[must_use]
    pub(crate) fn as_str(self) -> Option<&'t str> {
        match self.node() {
            Node::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns a boolean; the texts `true` and `false` count, since some emitters quote them.
    #[must_use]
    pub(crate) fn as_bool(self) -> Option<bool> {
        match self.node() {
            Node::Static(StaticNode::Bool(value)) => Some(value),
            Node::String("true") => Some(true),
            Node::String("false") => Some(false),
            _ => None,
        }
    }

    /// Returns a whole number, even if it is written `404.0`.
    #[must_use]
    pub(crate) fn as_i64(self) -> Option<i64> {
        match self.node() {
            Node::Static(StaticNode::I64(value)) => Some(value),
            Node::Static(StaticNode::U64(value)) => i64::try_from(value).ok(),
            Node::Static(StaticNode::F64(value)) => exact_integer(value),
            _ => None,
        }
    }

    /// Returns a number of any kind.
    #[must_use]
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn as_f64(self) -> Option<f64> {
        match self.node() {
            Node::Static(StaticNode::I64(value)) => Some(value as f64),
            Node::Static(StaticNode::U64(value)) => Some(value as f64),
            Node::Static(StaticNode::F64(value)) => Some(value),
            _ => None,
        }
    }

    /// Reports whether the value is `null`.
    #[must_use]
    pub(crate) fn is_null(self) -> bool {
        matches!(self.node(), Node::Static(StaticNode::Null))
    }

    /// Reports whether the value is an object.
    #[must_use]
    pub(crate) fn is_object(self) -> bool {
        matches!(self.node(), Node::Object { .. })
    }

    /// Reports whether the value is an array.
    #[must_use]
    pub(crate) fn is_array(self) -> bool {
        matches!(self.node(), Node::Array { .. })
    }

    /// Returns the fields of an object in document order; empty for any other value.
    #[must_use]
    pub(crate) fn fields(self) -> Fields<'t> {
        Fields(if self.is_object() { &self.0[1..] } else { &[] })
    }

    /// Returns the elements of an array; empty for any other value.
    #[must_use]
    pub(crate) fn items(self) -> Items<'t> {
        Items(if self.is_array() { &self.0[1..] } else { &[] })
    }

    /// Returns the value at an offset of this object.
    #[must_use]
    #[inline]
    pub(crate) fn value_at(self, offset: TapeOffset) -> Option<Json<'t>> {
        let rest = self.0.get(offset.0.get() as usize..)?;
        split_value(rest).map(|(value, _)| value)
    }

    /// Returns the value of a field; the last one if the key is repeated.
    #[must_use]
    pub(crate) fn get(self, key: &str) -> Option<Json<'t>> {
        let mut found = None;
        for (name, value) in self.fields() {
            if name == key {
                found = Some(value);
            }
        }
        found
    }

    /// Returns the value of a field that is present and not `null`.
    #[must_use]
    pub(crate) fn present(self, key: &str) -> Option<Json<'t>> {
        self.get(key).filter(|value| !value.is_null())
    }

    /// Returns the value at a dotted path; a key that itself contains the dots takes precedence.
    #[must_use]
    pub(crate) fn path(self, path: &str) -> Option<Json<'t>> {
        if let Some(value) = self.get(path) {
            return Some(value);
        }
        let (head, rest) = path.split_once('.')?;
        self.get(head)?.path(rest)
    }

    /// Returns the value as a scalar, for writing it out again.
    pub(crate) fn scalar(self) -> Option<Scalar<'t>> {
        match self.node() {
            Node::String(text) => Some(Scalar::Text(text)),
            Node::Static(StaticNode::I64(value)) => Some(Scalar::Signed(value)),
            Node::Static(StaticNode::U64(value)) => Some(Scalar::Unsigned(value)),
            Node::Static(StaticNode::F64(value)) => Some(Scalar::Float(value)),
            Node::Static(StaticNode::Bool(value)) => Some(Scalar::Bool(value)),
            Node::Static(StaticNode::Null) => Some(Scalar::Null),
            Node::Object { .. } | Node::Array { .. } => None,
        }
    }
}

/// A scalar value that belongs to no document.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ScalarNode<'t>(Node<'t>);

impl<'t> ScalarNode<'t> {
    pub(crate) const NULL: Self = Self(Node::Static(StaticNode::Null));

    pub(crate) fn text(text: &'t str) -> Self {
        Self(Node::String(text))
    }

    pub(crate) fn int(value: i64) -> Self {
        Self(Node::Static(StaticNode::I64(value)))
    }

    pub(crate) fn float(value: f64) -> Self {
        Self(Node::Static(StaticNode::F64(value)))
    }

    pub(crate) fn bool(value: bool) -> Self {
        Self(Node::Static(StaticNode::Bool(value)))
    }

    pub(crate) fn as_json(&self) -> Json<'_> {
        Json(std::slice::from_ref(&self.0))
    }
}

/// The offset of a field's value within its object: a quarter of the size of a [`Json`], for tables of many
/// fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TapeOffset(NonZeroU32);

/// A value that is neither an object nor an array.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Scalar<'t> {
    Text(&'t str),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Bool(bool),
    Null,
}

/// Returns the integer that a float represents exactly, if there is one.
#[allow(clippy::cast_possible_truncation)]
pub(crate) fn exact_integer(value: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (value.fract() == 0.0 && value.abs() <= EXACT).then_some(value as i64)
}

fn split_value<'t>(nodes: &'t [Node<'t>]) -> Option<(Json<'t>, &'t [Node<'t>])> {
    let size = match nodes.first()? {
        Node::Object { count, .. } | Node::Array { count, .. } => count + 1,
        _ => 1,
    };
    nodes.split_at_checked(size).map(|(value, rest)| (Json(value), rest))
}

/// An iterator over the fields of an object.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'t>(&'t [Node<'t>]);

impl<'t> Iterator for Fields<'t> {
    type Item = (&'t str, Json<'t>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (Node::String(key), rest) = self.0.split_first()? else { return None };
        let (value, rest) = split_value(rest)?;
        self.0 = rest;
        Some((key, value))
    }
}

impl<'t> Fields<'t> {
    /// Returns each field with the offset of its value.
    #[inline]
    pub(crate) fn with_offsets(self) -> impl Iterator<Item = (&'t str, Json<'t>, TapeOffset)> {
        let mut fields = self;
        // The object itself and the first key precede every value, so no value has offset zero.
        let mut index = 1;
        std::iter::from_fn(move || {
            let (key, value) = fields.next()?;
            let offset = TapeOffset(NonZeroU32::new(index + 1)?);
            index += 1 + u32::try_from(value.0.len()).ok()?;
            Some((key, value, offset))
        })
    }
}

/// An iterator over the elements of an array.
#[derive(Debug, Clone)]
pub(crate) struct Items<'t>(&'t [Node<'t>]);

impl<'t> Iterator for Items<'t> {
    type Item = Json<'t>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (value, rest) = split_value(self.0)?;
        self.0 = rest;
        Some(value)
    }
}

/// A parser that reuses its buffers for one document after another.
pub(crate) struct Parser {
    /// The document, unescaped in place, followed by the padding that SIMD loads may read past its end.
    input: Vec<u8>,
    buffers: Buffers,
    /// Empty between documents; kept for its allocation.
    tape: Tape<'static>,
}

impl Parser {
    pub(crate) fn new(max_depth: usize) -> Self {
        Self { input: Vec::new(), buffers: Buffers::with_max_depth(1024, max_depth), tape: Tape(Vec::new()) }
    }

    /// Parses one document and calls `read` with it. A document that is not JSON is parsed again after its
    /// lone surrogates and oversized numbers are repaired.
    pub(crate) fn parse<R>(
        &mut self,
        text: &[u8],
        read: impl FnOnce(Json<'_>) -> R,
    ) -> Result<R, UnrecognizedReason> {
        let mut read = Some(read);
        let parsed = self.parse_strictly(text, &mut read);
        if !matches!(parsed, Err(UnrecognizedReason::NotJson { .. })) {
            return parsed;
        }
        let repaired = replace_lone_surrogates(text);
        match (quote_oversized_numbers(&repaired), &repaired) {
            (Cow::Borrowed(_), Cow::Borrowed(_)) => parsed,
            (document, _) => self.parse_strictly(&document, &mut read),
        }
    }

    /// Parses a document without repairs; takes `read` only if the document is JSON.
    fn parse_strictly<R>(
        &mut self,
        text: &[u8],
        read: &mut Option<impl FnOnce(Json<'_>) -> R>,
    ) -> Result<R, UnrecognizedReason> {
        self.input.clear();
        self.input.extend_from_slice(text);
        self.input.resize(text.len() + INPUT_PADDING, 0);
        let mut tape = mem::replace(&mut self.tape, Tape(Vec::new())).reset();
        let parsed = simd_json::fill_tape_padded(&mut self.input, text.len(), &mut self.buffers, &mut tape);
        let result = match parsed {
            Ok(()) => {
                read.take().map(|read| read(Json(&tape.0))).ok_or(UnrecognizedReason::NotJson { at: 0 })
            }
            Err(error) => Err(unrecognized_reason(&error)),
        };
        self.tape = tape.reset();
        result
    }

    /// Calls `fill` to put the fields of an object on the tape, then `read` with the object; returns `None`
    /// if `fill` returns false.
    pub(crate) fn build_object<'l, R>(
        &mut self,
        fill: impl FnOnce(&mut ObjectBuilder<'l>) -> bool,
        read: impl FnOnce(Json<'_>) -> R,
    ) -> Option<R> {
        let mut object = ObjectBuilder::new(mem::replace(&mut self.tape, Tape(Vec::new())).reset());
        let result = fill(&mut object).then(|| read(object.as_json()));
        self.tape = object.0.reset();
        result
    }
}

/// A builder that puts an object on a tape field by field, from a text that is not JSON.
pub(crate) struct ObjectBuilder<'l>(Tape<'l>);

impl<'l> ObjectBuilder<'l> {
    fn new(mut tape: Tape<'l>) -> Self {
        tape.0.push(Node::Object { len: 0, count: 0 });
        Self(tape)
    }

    pub(crate) fn push_text(&mut self, key: &'l str, value: &'l str) {
        self.push(key, Node::String(value));
    }

    pub(crate) fn push_number(&mut self, key: &'l str, value: u64) {
        self.push(key, Node::Static(StaticNode::U64(value)));
    }

    fn push(&mut self, key: &'l str, value: Node<'l>) {
        self.0.0.extend([Node::String(key), value]);
        if let Some(Node::Object { len, count }) = self.0.0.first_mut() {
            *len += 1;
            *count += 2;
        }
    }

    fn as_json(&self) -> Json<'_> {
        Json(&self.0.0)
    }
}

fn unrecognized_reason(error: &simd_json::Error) -> UnrecognizedReason {
    match error.error() {
        ErrorType::DepthLimitExceeded => UnrecognizedReason::TooDeep,
        ErrorType::InvalidUtf8 => UnrecognizedReason::InvalidUtf8,
        _ => UnrecognizedReason::NotJson { at: error.index() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_json<R>(text: &str, read: impl FnOnce(Json<'_>) -> R) -> R {
        Parser::new(64).parse(text.as_bytes(), read).expect("valid JSON")
    }

    #[test]
    fn the_last_of_repeated_keys_counts() {
        with_json(r#"{"a":1,"b":2,"a":3}"#, |json| assert_eq!(json.get("a").and_then(Json::as_i64), Some(3)));
    }

    #[test]
    fn subtrees_are_skipped_whole() {
        with_json(r#"{"a":{"x":[1,{"y":2}]},"b":[[],{}],"c":7}"#, |json| {
            assert_eq!(json.get("c").and_then(Json::as_i64), Some(7));
            assert_eq!(json.path("a.x").map(|x| x.items().count()), Some(2));
            assert_eq!(json.fields().map(|(key, _)| key).collect::<Vec<_>>(), ["a", "b", "c"]);
        });
    }

    #[test]
    fn a_key_with_dots_is_found_before_a_path() {
        with_json(r#"{"a.b":1,"a":{"b":2}}"#, |json| {
            assert_eq!(json.path("a.b").and_then(Json::as_i64), Some(1));
        });
    }

    #[test]
    fn numbers_written_as_floats_are_whole() {
        with_json("[-32603.0,1.5,99999999999999999999]", |json| {
            let numbers: Vec<_> = json.items().map(Json::as_i64).collect();
            assert_eq!(numbers, [Some(-32603), None, None]);
        });
    }

    #[test]
    fn numbers_beyond_floats_are_texts() {
        let long = "9".repeat(400);
        for (number, text) in [
            (&*long, Some(&*long)),
            ("1e400", Some("1e400")),
            ("-1.5e+400", Some("-1.5e+400")),
            ("-0.0e-999", None),
            ("1e-400", None),
            ("0e400", None),
            ("1e308", None),
        ] {
            with_json(&format!("{{\"n\":[{number}],\"m\":\"\\ud83d\"}}"), |json| {
                let value = json.get("n").and_then(|list| list.items().next()).unwrap();
                assert_eq!((value.as_str(), value.as_f64().is_some()), (text, text.is_none()), "{number}");
            });
        }
        assert!(matches!(Parser::new(64).parse(b"[1e400", |_| ()), Err(UnrecognizedReason::NotJson { .. })));
    }

    #[test]
    fn bad_documents_say_why() {
        let parse = |bytes: &[u8]| Parser::new(64).parse(bytes, |_| ());
        assert!(matches!(parse(b"{\"a\":"), Err(UnrecognizedReason::NotJson { .. })));
        assert_eq!(parse(&[b'['; 100_000]), Err(UnrecognizedReason::TooDeep));
        assert_eq!(parse(b"{\"a\":\"\xff\xfe\"}"), Err(UnrecognizedReason::InvalidUtf8));
        let nested = |depth| [vec![b'['; depth], vec![b']'; depth]].concat();
        assert_eq!(parse(&nested(64)), Ok(()));
        assert_eq!(parse(&nested(65)), Err(UnrecognizedReason::TooDeep));
    }

    #[test]
    fn a_parser_survives_a_bad_document() {
        let mut parser = Parser::new(64);
        assert!(parser.parse(b"{nope", |_| ()).is_err());
        assert_eq!(parser.parse(b"[1]", |json| json.items().count()), Ok(1));
    }
}
