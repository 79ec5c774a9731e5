//! Tests of failures: rejections, files that cannot be read, more files than may be open.

use super::*;

#[test]
fn what_was_refused_for_now_is_read_again() {
    let mut bench = Bench::new();
    *bench.to.refuses.lock().unwrap() =
        Some(|_| Some(Rejection::retryable(RejectionReason::WalFull, "full", Duration::from_secs(2))));
    bench.append("a.log", "one\n");
    bench.now += Duration::from_secs(1);
    assert_eq!(bench.tailer.round(bench.now), PollOutcome::RejectionBody(Duration::from_secs(2)));
    bench.append("a.log", "two\n");
    bench.rename("a.log", "a.log.1");
    assert_eq!(bench.tailer.round(bench.now), PollOutcome::RejectionBody(Duration::from_secs(2)));
    bench.stored(&[]);
    *bench.to.refuses.lock().unwrap() = None;
    bench.pass(1);
    bench.stored(&["one", "two"]);
}

#[test]
fn a_record_that_is_refused_for_ever_costs_only_itself() {
    let mut bench = Bench::new();
    *bench.to.refuses.lock().unwrap() = Some(|body| {
        let is_bad = body.windows(3).any(|word| word == b"bad");
        is_bad.then(|| Rejection::new(RejectionReason::TooLarge, "it yields too much"))
    });
    bench.append("a.log", "one\ntwo\nbad\nthree\nfour\nfive\nsix\n");
    bench.pass(1);
    bench.stored(&["one", "two", "three", "four", "five", "six"]);
    assert_eq!(bench.to.counters.skipped.get(), 1);
    *bench.to.refuses.lock().unwrap() = None;
    bench.crash();
    bench.pass(1);
    bench.stored(&["one", "two", "three", "four", "five", "six"]);
}

#[test]
fn a_file_that_cannot_be_read_is_tried_again() {
    let mut bench = Bench::new();
    // Even root cannot read a dangling link, and a directory is not a file.
    fs::create_dir(bench.path("folder.log")).unwrap();
    std::os::unix::fs::symlink(bench.path("later"), bench.path("link.log")).unwrap();
    bench.append("a.log.gz", "not gzip at all");
    bench.append("b.log", "one\n");
    bench.pass(5);
    bench.stored(&["one"]);
    assert_eq!(bench.to.counters.unreadable.get(), 1);
    bench.append("later", "two\n");
    bench.pass(60);
    bench.stored(&["one", "two"]);
    assert!(bench.to.counters.unreadable.get() <= 4, "not every second");
}

#[test]
fn more_files_than_may_be_open_are_read_one_after_the_other() {
    let mut bench = Bench::new();
    let lines: Vec<String> = (0..600).map(|number| format!("line {number}")).collect();
    for (number, line) in lines.iter().enumerate() {
        bench.append(&format!("{number}.log"), format!("{line}\n"));
    }
    bench.pass(1);
    assert!(bench.to.counters.waiting.get() > 0);
    assert!(bench.to.counters.open.get() <= 256);
    bench.pass(5);
    bench.stored(&all(&lines));
    bench.crash();
    bench.append("7.log", "again\n");
    bench.pass(5);
    assert_eq!(bench.to.store.lock().unwrap().lines.len(), 601);
}
