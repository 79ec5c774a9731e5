//! Decodes lists of values: `{a,"b c",NULL}`, or their binary form. Lists have one dimension, as all list columns do.

use arrow::datatypes::DataType;
use bytes::{Buf, Bytes};
use datafusion::common::ScalarValue;
use pgwire::api::Type;

/// Decodes a list in braces.
pub(super) fn of_text(text: &str, item: &DataType) -> Option<ScalarValue> {
    let value = |word: Option<String>| ScalarValue::Utf8(word).cast_to(item).ok();
    let values = words(text)?.into_iter().map(value).collect::<Option<Vec<_>>>()?;
    Some(ScalarValue::List(ScalarValue::new_list(&values, item, true)))
}

/// Splits a list in braces into its words. An unquoted NULL becomes `None`.
pub(in super::super) fn words(text: &str) -> Option<Vec<Option<String>>> {
    let mut words = Vec::new();
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    while !rest.is_empty() {
        let (word, after) = word(rest)?;
        words.push(word);
        rest = match after.strip_prefix(',') {
            // A comma must be followed by another word.
            Some(more) => Some(more.trim_start()).filter(|more| !more.is_empty())?,
            None => Some(after).filter(|after| after.is_empty())?,
        };
    }
    Some(words)
}

fn word(text: &str) -> Option<(Option<String>, &str)> {
    if let Some(quoted) = text.strip_prefix('"') {
        return quoted_word(quoted).map(|(word, rest)| (Some(word), rest.trim_start()));
    }
    let end = text.find(',').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let word = word.trim_end();
    if word.is_empty() || word.contains(['{', '}', '"']) {
        return None;
    }
    Some(((!word.eq_ignore_ascii_case("null")).then(|| word.replace('\\', "")), rest))
}

fn quoted_word(text: &str) -> Option<(String, &str)> {
    let mut word = String::new();
    let mut letters = text.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '"' => return Some((word, &text[place + 1..])),
            '\\' => word.push(letters.next()?.1),
            other => word.push(other),
        }
    }
    None
}

/// Decodes the binary form: the number of dimensions, a flag for NULLs, the element type, the length and the lower
/// bound of each dimension, and the values.
pub(super) fn of_binary(bytes: &mut Bytes, item: &Type) -> Option<ScalarValue> {
    let dimensions = bytes.try_get_i32().ok()?;
    let (_, sent) = (bytes.try_get_i32().ok()?, bytes.try_get_u32().ok()?);
    if sent != item.oid() || dimensions > 1 {
        return None;
    }
    let count = if dimensions == 1 {
        let count = bytes.try_get_i32().ok()?;
        bytes.try_get_i32().ok()?;
        count
    } else {
        0
    };
    let data_type = super::natural(item)?;
    let values = (0..count).map(|_| value(bytes, item, &data_type)).collect::<Option<Vec<_>>>()?;
    Some(ScalarValue::List(ScalarValue::new_list(&values, &data_type, true)))
}

fn value(bytes: &mut Bytes, item: &Type, data_type: &DataType) -> Option<ScalarValue> {
    let Ok(length) = usize::try_from(bytes.try_get_i32().ok()?) else {
        return ScalarValue::try_from(data_type).ok();
    };
    if length > bytes.len() {
        return None;
    }
    // Numbers of any precision may decode to two types; a list has one.
    super::binary(bytes.split_to(length), item)?.cast_to(data_type).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read() {
        let expected = |words: &[Option<&str>]| {
            Some(words.iter().map(|word| word.map(str::to_owned)).collect::<Vec<_>>())
        };
        assert_eq!(words("{}"), Some(Vec::new()));
        assert_eq!(words("{a, b c,NULL}"), expected(&[Some("a"), Some("b c"), None]));
        assert_eq!(words(r#"{"a,\"b\\","NULL",""}"#), expected(&[Some(r#"a,"b\"#), Some("NULL"), Some("")]));
        for broken in ["{a,}", "{,a}", "{\"a}", "{{a},{b}}", "{\"a\"b}", "a"] {
            assert_eq!(words(broken), None, "{broken}");
        }
    }

    #[test]
    fn a_count_that_is_not_kept_is_an_error() {
        let mut bytes = Vec::new();
        for word in [1_i32, 0, Type::TEXT.oid().cast_signed(), i32::MAX, 1] {
            bytes.extend(word.to_be_bytes());
        }
        assert_eq!(of_binary(&mut bytes.into(), &Type::TEXT), None);
    }
}
