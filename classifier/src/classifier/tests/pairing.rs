//! Replies and their requests in one stream: operation, duration, request id and arguments; tasks that are polled; and
//! tool results that name no tool.

use super::*;

/// A sink that keeps the failures of a stream with their context, and the calls that did not fail.
#[derive(Default)]
struct StreamSink(Vec<String>);

impl Sink for StreamSink {
    fn event(&mut self, event: &Event<'_>) {
        let context = &event.context;
        let text = |value: &Option<std::borrow::Cow<'_, str>>| value.as_deref().unwrap_or("-").to_owned();
        self.0.push(format!(
            "{} {} {} {:?}",
            event.category,
            text(&context.operation),
            text(&context.request_id),
            context.duration_us
        ));
    }
    fn call(&mut self, call: &Call<'_>) {
        if !matches!(call.outcome, Outcome::Failed | Outcome::Hidden) {
            self.0.push(format!("{} {} {:?}", call.outcome, call.operation.unwrap_or("-"), call.duration_us));
        }
    }
    fn unrecognized(&mut self, reason: UnrecognizedReason) {
        self.0.push(format!("? {}", reason.as_str()));
    }
}

fn stream_with(tracker: &mut RequestTracker, lines: &[&str]) -> Vec<String> {
    let mut classifier = Classifier::new(rules(""));
    let mut sink = StreamSink::default();
    lines.iter().for_each(|line| classifier.classify_stream(line.as_bytes(), &origin(), tracker, &mut sink));
    sink.0
}

#[track_caller]
fn check_stream(lines: &[&str], expected: &[&str]) {
    assert_eq!(stream_with(&mut RequestTracker::default(), lines), expected);
}

#[test]
fn a_reply_gets_what_its_request_says() {
    check_stream(
        &[
            r#"{"time":"2026-05-04T08:00:00Z","jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"route","arguments":{"to":"Bern"}}}"#,
            r#"{"time":"2026-05-04T08:00:00.1Z","jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"file:///x"}}"#,
            r#"{"time":"2026-05-04T08:00:00.25Z","jsonrpc":"2.0","id":2,"result":{"contents":[]}}"#,
            r#"{"time":"2026-05-04T08:00:01.5Z","jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"Access denied"}],"isError":true}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Access denied"}}"#,
        ],
        &[
            "? not_a_reply",
            "? not_a_reply",
            "ok resources/read Some(150000)",
            "PERMISSION route 1 Some(1500000)",
            // The request was answered already, so this reply belongs to another one.
            "PERMISSION - 1 None",
        ],
    );
}

#[test]
fn ids_belong_to_their_session() {
    check_stream(
        &[
            r#"{"session_id":"a","jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"one"}}"#,
            r#"{"session_id":"b","jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"two"}}"#,
            r#"{"session_id":"a","jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"session_id":"b","jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"session_id":"c","jsonrpc":"2.0","id":1,"result":{}}"#,
        ],
        &["? not_a_reply", "? not_a_reply", "ok one None", "ok two None", "ok - None"],
    );
}

#[test]
fn lines_of_a_host_are_paired_behind_their_prefix() {
    check_stream(
        &[
            r#"2026-05-04T08:00:00Z [maps] [info] Message from client: {"method":"tools/call","params":{"name":"route"},"jsonrpc":"2.0","id":4}"#,
            r#"2026-05-04T08:00:02Z [maps] [info] Message from server: {"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"Access denied"}}"#,
        ],
        &["? not_a_reply", "PERMISSION route 4 Some(2000000)"],
    );
}

#[test]
fn arguments_are_hashed_not_shown() {
    let run = |arguments: &str| {
        let mut sink = JsonSink::default();
        let mut tracker = RequestTracker::default();
        let mut classifier = Classifier::new(rules(""));
        let request = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{arguments}}}}}"#
        );
        for line in [&request, r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"boom"}}"#] {
            classifier.classify_stream(line.as_bytes(), &origin(), &mut tracker, &mut sink);
        }
        sink.0.remove(0)["attributes"]["arguments_hash"].as_str().map(str::to_owned)
    };
    let hash = run(r#"{"a":1}"#).expect("a hash");
    assert_eq!(hash.len(), 16);
    assert_eq!(run(r#"{"a":1}"#), Some(hash.clone()));
    assert_ne!(run(r#"{"a":2}"#), Some(hash));
}

#[test]
fn a_task_counts_once_however_often_it_is_polled() {
    let poll = r#"{"jsonrpc":"2.0","id":9,"result":{"taskId":"t-7","status":"working"}}"#;
    let end = r#"{"time":"2026-05-04T08:01:00Z","jsonrpc":"2.0","id":9,"result":{"taskId":"t-7","status":"completed","result":{"content":[{"type":"text","text":"Access denied"}],"isError":true}}}"#;
    check_stream(
        &[
            r#"{"time":"2026-05-04T08:00:00Z","jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"render"}}"#,
            r#"{"time":"2026-05-04T08:00:00Z","jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t-7","status":"working"}}"#,
            poll,
            poll,
            r#"{"jsonrpc":"2.0","method":"notifications/tasks","params":{"taskId":"t-7","status":"working"}}"#,
            end,
            end,
        ],
        &[
            "? not_a_reply",
            "pending render Some(0)",
            "? repeated_state",
            "? repeated_state",
            "? repeated_state",
            "PERMISSION render 9 Some(60000000)",
            "? repeated_state",
        ],
    );
}

#[test]
fn a_result_that_is_fetched_belongs_to_its_task() {
    let result = r#"{"jsonrpc":"2.0","id":3,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}},"content":[{"type":"text","text":"Access denied"}],"isError":true}}"#;
    check_stream(
        &[
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"render"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"task":{"taskId":"t","status":"working"}}}"#,
            r#"{"jsonrpc":"2.0","id":2,"result":{"taskId":"t","status":"completed"}}"#,
            result,
            result,
        ],
        &[
            "? not_a_reply",
            "pending render None",
            "? repeated_state",
            "PERMISSION render 3 None",
            "? repeated_state",
        ],
    );
}

#[test]
fn a_tool_result_knows_its_tool() {
    let result = r#"{"type":"user","sessionId":"s","timestamp":"2026-05-04T08:00:03Z","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","is_error":true,"content":"Access denied"}]}}"#;
    check_stream(
        &[
            r#"{"type":"assistant","sessionId":"s","timestamp":"2026-05-04T08:00:01Z","message":{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"mcp__maps__route","input":{}}]}}"#,
            result,
            result,
        ],
        &["? not_a_reply", "PERMISSION route toolu_1 Some(2000000)", "? repeated_state"],
    );
    check_stream(
        &[
            r#"{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"route","arguments":"{}"}}]}"#,
            r#"{"role":"tool","tool_call_id":"c1","content":"Error: Access denied"}"#,
        ],
        &["? not_a_reply", "PERMISSION route c1 None"],
    );
}

/// The output of a host's own tools is data, even if it reads like an error.
#[test]
fn the_output_of_a_built_in_tool_is_data() {
    check_stream(
        &[
            r#"{"type":"assistant","message":{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}]}}"#,
            r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"Error: this is what the file says"}]}}"#,
        ],
        &["? not_a_reply", "ok Read None"],
    );
}

#[test]
fn a_full_tracker_forgets_the_oldest() {
    let mut tracker = RequestTracker::new(2);
    let requests: Vec<String> = (0..50)
        .map(|id| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t{id}"}}}}"#)
        })
        .collect();
    let lines: Vec<&str> = requests.iter().map(String::as_str).collect();
    stream_with(&mut tracker, &lines);
    assert_eq!(tracker.len(), 2);
    let replies = [r#"{"jsonrpc":"2.0","id":0,"result":{}}"#, r#"{"jsonrpc":"2.0","id":49,"result":{}}"#];
    assert_eq!(stream_with(&mut tracker, &replies), ["ok - None", "ok t49 None"]);
}
