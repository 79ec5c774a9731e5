//! Tests of the record boundaries in bodies of every form.

use super::*;
use crate::receivers::record_consumer::test_consumer::TestConsumer;
use proptest::prelude::*;

/// Checks the records of `body`, and the numbers of the records that the splitter rejects.
fn check(body: &str, expected: &[(u64, &str)], rejected: &[u64]) {
    let mut records = TestConsumer::default();
    read(body.as_bytes(), &mut records).unwrap();
    let lines: Vec<_> = records.lines.iter().map(|(number, line)| (*number, line.as_str())).collect();
    assert_eq!(lines, expected, "{body:?}");
    let places: Vec<_> = records.rejected.iter().map(|(number, ..)| *number).collect();
    assert_eq!(places, rejected, "{body:?}: {:?}", records.rejected);
}

#[test]
fn lines() {
    check("{\"a\":1}", &[(1, "{\"a\":1}")], &[]);
    check("{\"a\":1}\n", &[(1, "{\"a\":1}")], &[]);
    check("{\"a\":1}\r\n{\"b\":2}\r\n", &[(1, "{\"a\":1}"), (2, "{\"b\":2}")], &[]);
    check("\u{feff}{\"a\":1}\n\n  \n{\"b\":2}", &[(1, "{\"a\":1}"), (4, "{\"b\":2}")], &[]);
    check("\n\n{\"a\":1}\n", &[(3, "{\"a\":1}")], &[]);
    check("level=info msg=x\n{\"a\":1}", &[(1, "level=info msg=x"), (2, "{\"a\":1}")], &[]);
    check("{\"a\":1} {\"b\":2}", &[(1, "{\"a\":1} {\"b\":2}")], &[]);
}

#[test]
fn a_line_that_was_cut_costs_only_itself() {
    check("{\"a\":{\"x\":1}\n{\"b\":2}", &[(1, "{\"a\":{\"x\":1}"), (2, "{\"b\":2}")], &[]);
    check("{\"a\":\"x\n{\"b\":2}\n", &[(1, "{\"a\":\"x"), (2, "{\"b\":2}")], &[]);
    check("{\"a\":\n{\"b\":2}}\n", &[(1, "{\"a\":\n{\"b\":2}}")], &[]);
    check("{\"a\"\n{\"b\":2}}\n", &[(1, "{\"a\""), (2, "{\"b\":2}}")], &[]);
}

#[test]
fn lists_of_lists_are_lines() {
    check("[1,2]\n[3]\n", &[(1, "[1,2]"), (2, "[3]")], &[]);
    check("[1,2]\n{\"a\":1}\n", &[(1, "[1,2]"), (2, "{\"a\":1}")], &[]);
}

#[test]
fn values_over_several_lines() {
    let pretty = "{\n  \"a\": \"}\",\n  \"b\": [1]\n}";
    check(pretty, &[(1, pretty)], &[]);
    check(&format!("{pretty}\n{pretty}\n"), &[(1, pretty), (2, pretty)], &[]);
    check(&format!("{pretty}\n{{\"c\":3}}\nx y\n"), &[(1, pretty), (2, "{\"c\":3}"), (3, "x y")], &[]);
    check(&format!("{pretty}\n{{\"c\":\nz"), &[(1, pretty), (2, "{\"c\":"), (3, "z")], &[]);
}

#[test]
fn arrays() {
    check("[]", &[], &[]);
    check(" [ ] \n", &[], &[]);
    check("[{\"a\":1},{\"b\":[2,3]}]", &[(1, "{\"a\":1}"), (2, "{\"b\":[2,3]}")], &[]);
    check("[\n  {\"a\":1},\n  {\"b\":2}\n]\n", &[(1, "{\"a\":1}"), (2, "{\"b\":2}")], &[]);
    check(r#"[{"a":"],[\"{"},"x,y"]"#, &[(1, r#"{"a":"],[\"{"}"#), (2, "\"x,y\"")], &[]);
    check(r#"[{"a":"\\"},{"b":"\\\""}]"#, &[(1, r#"{"a":"\\"}"#), (2, r#"{"b":"\\\""}"#)], &[]);
    check("[1 2,true]", &[(1, "1 2"), (2, "true")], &[]);
}

#[test]
fn a_bad_element_costs_only_itself() {
    check("[{\"a\":1},{bad},{\"b\":2}]", &[(1, "{\"a\":1}"), (2, "{bad}"), (3, "{\"b\":2}")], &[]);
    check("[{\"a\":[1},{\"b\":2}]", &[(1, "{\"a\":[1}"), (2, "{\"b\":2}")], &[]);
    check("[{\"a\":1]}},{\"b\":2}]", &[(1, "{\"a\":1")], &[2]);
    check("[{\"a\":\"x\n},{\"b\":2}]", &[(1, "{\"a\":\"x\n}"), (2, "{\"b\":2}")], &[]);
    check("[}},{\"b\":2}]", &[(1, "}}"), (2, "{\"b\":2}")], &[]);
    check("[1,,2]", &[(1, "1"), (3, "2")], &[2]);
    check("[1,]", &[(1, "1")], &[2]);
    check("[,]", &[], &[1, 2]);
}

#[test]
fn an_array_that_does_not_end_or_ends_early() {
    check("[", &[], &[2]);
    check("[{\"a\":1},{\"b\":2}", &[(1, "{\"a\":1}"), (2, "{\"b\":2}")], &[3]);
    check("[{\"a\":1},{\"b\":", &[(1, "{\"a\":1}"), (2, "{\"b\":")], &[3]);
    check("[{\"a\":1}] tail", &[(1, "{\"a\":1}")], &[2]);
}

#[test]
fn depth_beyond_the_stack_is_counted() {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    check(&format!("[{deep},1]"), &[(1, &deep), (2, "1")], &[]);
}

/// A piece of a log may start with any bytes, and must still be read line by line.
#[test]
fn strict_lines_are_lines_whatever_they_start_with() {
    for first in ["[INFO] starting", "[INFO starting", "[1,2]", "{", "[{\"a\":1},"] {
        let body = format!("{first}\r\n\n{{\"b\":2}}\n");
        let mut records = TestConsumer::default();
        super::lines(body.as_bytes(), 1, &mut records);
        assert_eq!(records.lines, [(1, first.to_owned()), (3, "{\"b\":2}".to_owned())]);
        assert!(records.rejected.is_empty());
    }
    let mut records = TestConsumer::default();
    super::lines(b"\n \n", 1, &mut records);
    assert!(records.lines.is_empty());
}

#[test]
fn nothing_at_all() {
    for body in ["", " \n\t\r\n", "\u{feff}"] {
        let rejection = read(body.as_bytes(), &mut TestConsumer::default()).unwrap_err();
        assert_eq!(
            (rejection.reason, rejection.detail.as_str()),
            (RejectionReason::Unreadable, "the body of the request to /v1/envelopes is empty")
        );
        assert!(rejection.remedy().contains("--data-binary"));
    }
}

proptest! {
    #[test]
    fn any_bytes_are_split(body in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&body, &mut TestConsumer::default());
    }

    #[test]
    fn any_brackets_are_split(body in "[\\[\\]{},\"\\\\a\n ]{0,200}") {
        let _ = read(body.as_bytes(), &mut TestConsumer::default());
    }

    /// What JSON writers write comes back element by element, however it is laid out.
    #[test]
    fn elements_come_back(texts in proptest::collection::vec(".{0,20}", 1..20), pretty: bool) {
        let values: Vec<_> = texts.iter().map(|text| serde_json::json!({"t": [text, {"x": text}]})).collect();
        let list = serde_json::Value::from(values.clone());
        let body = if pretty { serde_json::to_string_pretty(&list) } else { serde_json::to_string(&list) };
        let mut records = TestConsumer::default();
        read(body.unwrap().as_bytes(), &mut records).unwrap();
        let found: Vec<serde_json::Value> =
            records.lines.iter().map(|(_, line)| serde_json::from_str(line).unwrap()).collect();
        prop_assert_eq!(found, values);
        prop_assert!(records.rejected.is_empty());
    }
}
