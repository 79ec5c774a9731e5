//! `faultline health`, for probes.

use super::server::{Server, forbid_flushing};
use super::support::{Folder, faultline};
use std::net::TcpListener;

fn health(address: impl std::fmt::Display) -> super::support::Run {
    faultline(&["health", "--server", &format!("http://{address}")])
}

/// Guarantee: 0 when requests are taken, also where tokens are asked for; 1 with the server's reason when they are not,
/// and when nobody is there or nobody answers.
#[test]
fn the_exit_code_says_whether_requests_are_taken() {
    let folder = Folder::new();
    let server = Server::start_in(&folder, &[("FAULTLINE_TOKENS", "query:flt_0123456789abcdef0123")], &[]);
    let address = server.address("web");
    assert_eq!(health(address).ends_with(0).out, "{\"ready\":true}\n");
    assert!(server.stop().success());
    let run = health(address).ends_with(1);
    assert!(run.err.contains("check that a server listens there"), "{}", run.err);

    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let run = health(silent.local_addr().expect("an address")).ends_with(1);
    assert!(run.err.contains("no answer within"), "{}", run.err);
    faultline(&["health", "--server", "nowhere"]).ends_with(2);
}

#[test]
fn a_full_server_is_not_ready_and_says_why() {
    let folder = Folder::new();
    forbid_flushing(&folder);
    let server = Server::start_with(&folder, &["--wal-bytes", "1MiB"]);
    let line = format!("{}\n", super::support::OPEN.replace("Method", &"long ".repeat(10_000)));
    for _ in 0..200 {
        if server.post_lines(&line.repeat(4)).status != 200 {
            break;
        }
    }
    let run = health(server.address("web")).ends_with(1);
    assert!(run.err.contains("wal_full"), "{}", run.err);
}
