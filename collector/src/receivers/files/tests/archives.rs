//! Tests of archives: they are read once, and not at all if their content was read before.

use super::*;

fn gzip(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

fn zstd(text: &str) -> Vec<u8> {
    zstd::encode_all(text.as_bytes(), 1).unwrap()
}

#[test]
fn archives_are_read_once() {
    let mut bench = Bench::new();
    let lines = numbered(0..30_000);
    bench.append("a.log.1.gz", gzip(&joined(&lines[..15_000])));
    bench.append("b.log.zst", zstd(&joined(&lines[15_000..])));
    bench.pass(1);
    bench.stored(&[]);
    bench.pass(5);
    bench.stored(&all(&lines));
    assert_eq!(bench.to.counters.archives.get(), 2);
    bench.crash();
    bench.pass(5);
    bench.rename("a.log.1.gz", "a.log.2.gz");
    bench.pass(5);
    bench.stop_for_long();
    bench.pass(5);
    bench.stored(&all(&lines));
}

#[test]
fn an_archive_that_was_interrupted_goes_on() {
    let mut bench = Bench::new();
    let lines = numbered(0..30_000);
    bench.append("a.log.1.gz", gzip(&joined(&lines)));
    bench.pass(3);
    bench.now += Duration::from_secs(1);
    bench.tailer.round(bench.now);
    let begun = bench.to.store.lock().unwrap().lines.len();
    assert!(begun > 0 && begun < lines.len(), "{begun}");
    bench.crash();
    bench.pass(6);
    bench.stored(&all(&lines));
}

/// Does what logrotate does with `compress`: the file is renamed, compressed and deleted.
#[test]
fn an_archive_of_what_was_read_is_not_read_again() {
    for (text, size) in [("one\n".to_owned(), 1), (joined(&numbered(0..5000)), 5000)] {
        let mut bench = Bench::new();
        bench.append("a.log", &text);
        bench.pass(1);
        bench.rename("a.log", "a.log.1");
        bench.append("a.log", "new\n");
        bench.pass(2);
        let packed = gzip(&fs::read_to_string(bench.path("a.log.1")).unwrap());
        bench.append("a.log.1.gz", packed);
        bench.pass(5);
        bench.remove("a.log.1");
        bench.pass(20);
        assert_eq!(bench.to.store.lock().unwrap().lines.len(), size + 1);
        assert_eq!((bench.to.counters.archives.get(), bench.to.counters.copies.get()), (1, 1));
        bench.rename("a.log.1.gz", "a.log.2.gz");
        bench.stop_for_long();
        bench.pass(20);
        assert_eq!(bench.to.store.lock().unwrap().lines.len(), size + 1);
    }
}

/// The file is rotated and compressed while the tailer is stopped: the archive has lines that were not read yet.
#[test]
fn an_archive_completes_what_was_read() {
    let mut bench = Bench::new();
    let lines = numbered(0..100);
    bench.append("a.log", joined(&lines[..60]));
    bench.pass(1);
    bench.stop_for_long();
    bench.remove("a.log");
    bench.append("a.log-20260131.zst", zstd(&joined(&lines)));
    bench.pass(6);
    bench.stored(&all(&lines));
}

#[test]
fn a_broken_archive_gives_what_it_has_and_is_tried_again() {
    let mut bench = Bench::new();
    let lines = numbered(0..40_000);
    let packed = gzip(&joined(&lines));
    bench.append("a.log.gz", &packed[..packed.len() / 2]);
    bench.pass(10);
    assert!(bench.to.counters.unreadable.get() > 0);
    bench.append("a.log.gz", &packed[packed.len() / 2..]);
    bench.pass(60);
    bench.stored(&all(&lines));
}
