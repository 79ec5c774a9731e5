//! Tests of large requests, which are processed one at a time.

use super::*;

/// Reads lines after a delay.
fn read_slowly(body: &[u8], sink: &mut RecordSink<'_>) -> Result<(), Rejection> {
    std::thread::sleep(std::time::Duration::from_millis(200));
    read_lines(body, sink)
}

/// Requests that are large by their body or by their rows are processed one at a time, and no small request waits for
/// them.
#[tokio::test]
async fn giants_wait_for_each_other_and_nobody_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { large_bytes: 2000, ..limits() };
    let pipeline = open_with(folder.path(), limits, WalOptions::default());
    let long = request(Source::Envelopes, read_slowly, &format!("{FAILED}\n").repeat(40));
    let yields_much = lines(&format!("[{}]", [r#"{"success":false,"error":"x"}"#; 20].join(",")));
    assert!(yields_much.body.len() < 2000 && long.body.len() > 2000);
    let large = [pipeline.clone(), pipeline.clone()].into_iter().zip([long, yields_much]);
    let large = large.map(|(pipeline, request)| tokio::spawn(async move { pipeline.submit(request).await }));
    let large: Vec<_> = large.collect();
    tokio::task::yield_now().await;
    for _ in 0..5 {
        assert_eq!(pipeline.submit(lines(FAILED)).await.unwrap().events, 1);
    }
    assert!(large.iter().all(|request| !request.is_finished()), "the small ones were first");
    for (request, events) in large.into_iter().zip([40, 20]) {
        assert_eq!(request.await.unwrap().unwrap().events, events);
    }
    assert_eq!(rows(&pipeline, Table::Events).len(), 65, "what was passed on is stored once");
    pipeline.close();
}

/// Returns a time that is an hour later at each call.
fn hours() -> i64 {
    use std::sync::atomic::AtomicI64;
    static HOURS: AtomicI64 = AtomicI64::new(0);
    fixed_time() + HOURS.fetch_add(1, Ordering::Relaxed) * 3_600_000_000
}

#[tokio::test]
async fn a_giant_that_waited_too_long_is_told_to_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let limits = Limits { large_bytes: 100, ..limits() };
    let pipeline = open_at(folder.path(), limits, WalOptions::default(), hours);
    let rejection = pipeline.submit(lines(&format!("{FAILED}\n{FAILED}"))).await.unwrap_err();
    assert_eq!(rejection.reason, RejectionReason::Busy);
    assert!(rejection.retry_after.is_some());
    assert_eq!(
        pipeline.submit(lines(WORKED)).await.unwrap_err().reason,
        RejectionReason::Busy,
        "its row is over 100"
    );
    assert_eq!(pipeline.submit(lines("{}")).await.unwrap().unrecognized, 1);
    pipeline.close();
}
