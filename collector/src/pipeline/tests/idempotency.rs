//! Tests of one `Idempotency-Key` with different requests.

use super::*;

/// One key is used with other bodies, parameters or formats, concurrently and later: only the first request is stored
/// and acknowledged. Each token has its own keys.
#[tokio::test]
async fn a_key_with_another_content_is_rejected_and_stores_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let pipeline = open(&folder);
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..40 {
        let (pipeline, body) = (pipeline.clone(), format!("{FAILED}\n{number}"));
        tasks.spawn(async move { pipeline.submit(with_key(&body, "k")).await });
    }
    let outcomes = tasks.join_all().await;
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1, "{outcomes:?}");
    let refused = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    assert!(refused.into_iter().all(|rejection| rejection.reason == RejectionReason::KeyReused));
    assert_eq!(rows(&pipeline, Table::Events).len(), 1);
    assert_eq!(
        pipeline.counters().of(Source::Envelopes).rejected_requests[RejectionReason::KeyReused as usize]
            .get(),
        39
    );
    let first = pipeline.submit(with_key(FAILED, "abc")).await.unwrap();
    pipeline.close();
    let pipeline = open(&folder);
    let gzip = |level| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
        std::io::Write::write_all(&mut encoder, FAILED.as_bytes()).unwrap();
        let (body, encoding) = (encoder.finish().unwrap().into(), Encoding::Gzip);
        Request { body, encoding, ..with_key(FAILED, "abc") }
    };
    for same in [with_key(FAILED, "abc"), gzip(0), gzip(9)] {
        assert_eq!(pipeline.submit(same).await.unwrap(), first);
    }
    let environment = Some("staging".to_owned());
    let defaults = Defaults { environment, ..with_key("", "abc").defaults };
    let form = Some(IdempotencyKey { token: None, key: "abc".to_owned(), form: "document" });
    for other in [
        with_key(WORKED, "abc"),
        with_key(&format!("{FAILED}\n"), "abc"),
        Request { defaults, ..with_key(FAILED, "abc") },
        Request { idempotency_key: form, ..with_key(FAILED, "abc") },
    ] {
        assert_eq!(pipeline.submit(other).await.unwrap_err().reason, RejectionReason::KeyReused);
    }
    assert_eq!(rows(&pipeline, Table::Events).len(), 2);
    for (token, events) in [("a", 3), ("b", 4), ("a", 4)] {
        let key = IdempotencyKey { token: Some(token.to_owned()), key: "abc".to_owned(), form: "lines" };
        pipeline.submit(Request { idempotency_key: Some(key), ..lines(FAILED) }).await.unwrap();
        assert_eq!(rows(&pipeline, Table::Events).len(), events, "{token}");
    }
    pipeline.close();
}
