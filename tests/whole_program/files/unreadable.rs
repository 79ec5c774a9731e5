//! Tests of files that cannot be read: they are reported once, counted, and do not affect others.
//!
//! The tests may run as root, for whom permissions do not apply, so these files are unreadable for everybody.

use super::{Bench, PATIENCE, line, stored};
use crate::whole_program::otlp::client::gzip;
use crate::whole_program::server::Server;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::time::{Duration, Instant};

fn until(server: &Server, what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(
            began.elapsed() < PATIENCE,
            "not yet: {what}\n{}\n{}",
            server.status()["files"],
            server.said()
        );
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Scenario: beside a good log there are, under names that the pattern matches, a folder, a link to nowhere, a pipe
/// that nobody writes to, bytes that are not text, an archive that is cut off, and one that is none; later the link
/// leads somewhere, a file has vanished, and both archives are replaced by whole ones.
/// Guarantee: the good one is read at once; what cannot be read is told of once each, and counted in the status and the
/// metrics; and everything is picked up when it can be read.
#[test]
fn what_cannot_be_read_harms_nobody_and_is_tried_again() {
    let bench = Bench::new();
    let whole = |number: u64| gzip(format!("{}\n", line(number)).as_bytes());
    std::fs::write(bench.log("app.log"), format!("{}\n", line(0))).expect("a file");
    std::fs::create_dir(bench.log("app.log.folder")).expect("a folder");
    std::os::unix::fs::symlink(bench.log("later"), bench.log("app.log.link")).expect("a link");
    mknodat(CWD, bench.log("app.log.pipe"), FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    std::fs::write(bench.log("app.log.bytes"), [0xff, 0, 0xfe, b'\n'].repeat(1000)).expect("a file");
    std::fs::write(bench.log("app.log.1.gz"), &whole(2)[..20]).expect("a file");
    std::fs::write(bench.log("app.log.2.gz"), "no gzip at all").expect("a file");
    std::fs::write(bench.log("app.log.gone"), "not whole, and soon away").expect("a file");
    let server = bench.serve();
    until(&server, "the good log is read", || stored(&bench.data_dir()).contains_key("r0"));
    std::fs::remove_file(bench.log("app.log.gone")).expect("it was there");
    let unreadable = || server.status()["files"]["read_errors"].as_u64().expect("a count");
    until(&server, "archives are found to be unreadable", || unreadable() >= 2);
    let exported = String::from_utf8(server.get("/metrics").is(200).body).expect("UTF-8");
    assert!(exported.contains(&format!("faultline_file_read_errors_total {}\n", unreadable())), "{exported}");
    assert!(exported.contains("faultline_file_lines_total ") && exported.contains("faultline_files_open "));
    let rejected = || server.status()["sources"]["files"]["rejected_records"].as_u64().expect("a count");
    until(&server, "bytes that are no text are rejected, not lost", || rejected() == 1000);

    std::fs::write(bench.log("later"), format!("{}\n", line(1))).expect("a file");
    for number in [1, 2] {
        let (new, path) = (bench.log("new"), bench.log(&format!("app.log.{number}.gz")));
        std::fs::write(&new, whole(1 + number)).expect("a file");
        std::fs::rename(new, path).expect("it can be replaced");
    }
    until(&server, "all are read", || stored(&bench.data_dir()).len() >= 4);
    bench.stores_each_once(4);
    for number in [1, 2] {
        let told = format!("app.log.{number}.gz: ");
        assert_eq!(server.said().matches(&told).count(), 1, "{}", server.said());
    }
    assert!(server.stop().success());
}
