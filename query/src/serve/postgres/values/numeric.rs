//! Decodes numbers of any precision. No column has such a type: whole numbers become integers, and others become
//! floats.

use bytes::{Buf, Bytes};
use datafusion::common::ScalarValue;

const NEGATIVE: u16 = 0x4000;

/// Decodes a number in digits.
pub(super) fn of_text(text: &str) -> Option<ScalarValue> {
    let text = text.trim();
    match text.parse::<i64>() {
        Ok(whole) => Some(ScalarValue::Int64(Some(whole))),
        Err(_) => text.parse::<f64>().ok().map(|number| ScalarValue::Float64(Some(number))),
    }
}

/// Decodes the binary form: the number of digits, the position of the first one, the sign, the scale, and digits of
/// base 10,000.
pub(super) fn of_binary(bytes: &mut Bytes) -> Option<ScalarValue> {
    let count = bytes.try_get_u16().ok()?;
    let weight = bytes.try_get_i16().ok()?;
    let sign = bytes.try_get_u16().ok()?;
    bytes.try_get_u16().ok()?;
    let digits = (0..count).map(|_| bytes.try_get_u16().ok().filter(|digit| *digit < 10_000));
    let digits = digits.collect::<Option<Vec<_>>>()?;
    let sign = match sign {
        0 => "",
        NEGATIVE => "-",
        // NaN and infinities cannot be compared with any column.
        _ => return None,
    };
    let digits: String = digits.into_iter().map(|digit| format!("{digit:04}")).collect();
    let places = (i32::from(weight) + 1 - i32::from(count)) * 4;
    let number = format!("{sign}0{digits}e{places}").parse::<f64>().ok()?;
    // An integer is exact where a float is not.
    let zeros = usize::try_from(places).ok().filter(|zeros| *zeros <= 20);
    let whole = zeros.and_then(|zeros| format!("{sign}0{digits}{}", "0".repeat(zeros)).parse::<i64>().ok());
    Some(whole.map_or(ScalarValue::Float64(Some(number)), |whole| ScalarValue::Int64(Some(whole))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(words: &[u16]) -> Option<ScalarValue> {
        of_binary(&mut words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<_>>().into())
    }

    #[test]
    fn numbers_are_read() {
        assert_eq!(of_text("12"), Some(ScalarValue::Int64(Some(12))));
        assert_eq!(of_text("-1.25"), Some(ScalarValue::Float64(Some(-1.25))));
        assert_eq!(of_text("twelve"), None);
        assert_eq!(binary(&[2, 0, NEGATIVE, 2, 1, 2500]), Some(ScalarValue::Float64(Some(-1.25))));
        assert_eq!(binary(&[1, 1, 0, 0, 3]), Some(ScalarValue::Int64(Some(30_000))));
        assert_eq!(binary(&[0, 0, 0, 0]), Some(ScalarValue::Int64(Some(0))));
        assert_eq!(binary(&[1, 0, 0xc000, 0, 3]), None);
        assert_eq!(binary(&[9, 0, 0, 0, 3]), None);
    }
}
