//! Tests of a stop while rows wait to be flushed: they are in the WAL in any case, so a stop does not wait for them for
//! long.

use super::threads::{Thread, Traced};
use super::{FLUSH_AT_ONCE, until};
use crate::whole_program::durability::ledger::{Batch, Ledger};
use crate::whole_program::durability::load::send;
use crate::whole_program::server::Server;
use crate::whole_program::support::Folder;
use std::time::{Duration, Instant};

/// Scenario: flushing is slow, and rows wait for it; SIGTERM, and then another.
/// Guarantee: as `serve --help` says, the second ends the server at once, with exit code 5; everything acknowledged is
/// there, once, and still is when the next server has flushed it.
#[test]
fn a_second_signal_does_not_wait_for_flushing() {
    let folder = Folder::new();
    let mut server = Server::start_with(&folder, &FLUSH_AT_ONCE);
    let slow = Traced::attach(&server, Thread::Flusher, "fdatasync", "delay_enter=1000000");
    let ledger = Ledger::default();
    for number in 0..8 {
        let batch = Batch::new(format!("n{number}"), 2, false);
        assert_eq!(send(server.address("otlp_http"), &ledger, &batch).status, 200);
    }
    server.signal("TERM");
    until("it stops taking requests", || server.said().contains("stopping: finishing"));
    std::thread::sleep(Duration::from_millis(500));
    assert!(!server.has_ended(), "it flushes what is left");
    let began = Instant::now();
    server.signal("TERM");
    let status = server.wait();
    assert!(began.elapsed() < Duration::from_secs(5), "it took {:?}\n{}", began.elapsed(), server.said());
    assert_eq!(status.code(), Some(5), "{}", server.said());
    slow.detach();
    ledger.check(server.data_dir());
    let server = Server::start_with(&folder, &FLUSH_AT_ONCE);
    let data_dir = server.data_dir().to_owned();
    assert!(server.stop().success());
    ledger.check(&data_dir);
}
