//! Tests of the layout of rows.

use super::*;
use arrow::array::{ArrayRef, Int64Array, StringArray};
use std::sync::Arc;

fn text(values: &[Option<&str>]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn layout(columns: Vec<(&str, ArrayRef)>, vertical: bool) -> Layout {
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    )
    .unwrap();
    render(&batch.schema(), &[batch], OutputStyle::default(), vertical).unwrap()
}

#[test]
fn figures_stand_to_the_right_and_null_is_told_from_nothing() {
    let columns = vec![
        ("n", Arc::new(Int64Array::from(vec![Some(1), Some(1000), None])) as ArrayRef),
        ("word", text(&[Some("a"), Some(""), None])),
        ("last", text(&[Some("x"), Some("y"), Some("日本")])),
    ];
    assert_eq!(
        layout(columns, false).text,
        "   n  word  last\n   1  a     x\n1000        y\nNULL  NULL  日本\n"
    );
}

#[test]
fn what_a_terminal_could_act_on_is_shown() {
    let shown = layout(vec![("a\u{1b}", text(&[Some("b\u{1b}[2J\nc\u{202e}")]))], false).text;
    assert_eq!(shown, "a\\u{1b}\nb\\u{1b}[2J\\nc\\u{202e}\n");
}

#[test]
fn records_leave_out_what_has_no_value() {
    let columns = vec![
        ("long", text(&[Some("a"), None])),
        ("b", text(&[None, None])),
        ("c", text(&[Some("x"), Some("y")])),
    ];
    let layout = layout(columns, true);
    let lines: Vec<&str> = layout.text.lines().collect();
    assert!(lines[0].starts_with("── record 1 ──"), "{lines:?}");
    assert_eq!((lines[1], lines[2]), ("long  a", "c     x"));
    assert_eq!((lines[4], lines[5]), ("long  NULL", "c     y"));
    assert_eq!(layout.left_out.unwrap(), "1 column without a value: b");
}

#[test]
fn the_widest_columns_are_cut_first() {
    assert_eq!(fit_widths(&[5, 40, 10], &[5, 12, 10], 40), Some(vec![5, 21, 10]));
    assert_eq!(fit_widths(&[30, 40, 10], &[12, 12, 10], 50), Some(vec![18, 18, 10]));
    assert_eq!(fit_widths(&[5, 6], &[5, 6], 80), Some(vec![5, 6]));
    assert_eq!(fit_widths(&[20, 40], &[20, 12], 30), None, "a figure is not cut");
    for available in 0..100 {
        let widths = fit_widths(&[30, 40, 10, 3], &[12, 12, 10, 3], available);
        assert_eq!(widths.is_some(), available >= 43, "{available}");
        assert!(widths.is_none_or(|widths| total_width(&widths) <= available));
    }
}

#[test]
fn texts_are_cut_and_wrapped_by_what_they_take_on_the_screen() {
    assert_eq!(truncate("abc", 3), "abc");
    assert_eq!(truncate("abcd", 3), "ab…");
    assert_eq!(truncate("日本語", 4), "日…");
    assert_eq!(wrap("abcdef", 4), ["abcd", "ef"]);
    assert_eq!(wrap("日本語", 4), ["日本", "語"]);
    assert_eq!(wrap("", 4), [""]);
}

#[test]
fn no_rows_have_headings() {
    assert_eq!(layout(vec![("a", text(&[])), ("b", text(&[]))], false).text, "a  b\n");
}
