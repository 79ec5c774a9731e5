//! Bytes that violate the protocol, false lengths, and clients that send nothing.

use super::wire::{Wire, message, opening, startup, text};
use crate::whole_program::http_sql::with_example;
use crate::whole_program::server::Server;
use crate::whole_program::support::Folder;
use std::time::{Duration, Instant};

/// Checks that the server still answers another client.
#[track_caller]
fn assert_serving(server: &Server, after: &str) {
    let mut wire = Wire::connect(server);
    wire.ask("SELECT count(*) FROM events");
    assert_eq!(wire.kinds(), "TDCZ", "after {after}");
}

/// Scenario: what a client may send first: requests to encrypt, other versions, rubbish, lengths that are absurd, HTTP.
/// Guarantee: a request to encrypt is answered with no; the rest is told what is wrong, or hung up on; a good client is
/// let in afterwards, every time.
#[test]
fn bad_openings_are_refused() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let mut wire = Wire::open(&server);
    for code in [80_877_104, 80_877_103] {
        wire.send(&opening(code, &[]));
        assert_eq!(wire.byte(), b'N');
    }
    wire.send(&startup(&[("user", "ann")]));
    assert!(wire.kinds().ends_with('Z'));
    let refused: [(&str, Vec<u8>, Option<&str>); 9] = [
        ("an old version", opening(2 << 16, &[0]), Some("0A000")),
        ("no user", startup(&[("database", "faultline")]), Some("28000")),
        ("another database", startup(&[("user", "ann"), ("database", "secrets")]), Some("3D000")),
        ("replication", startup(&[("user", "ann"), ("replication", "true")]), Some("0A000")),
        ("a setting of the engine", startup(&[("user", "ann"), ("datafusion.x", "1")]), Some("42501")),
        ("an option", startup(&[("user", "ann"), ("options", "-c shared_buffers=1")]), Some("42704")),
        ("a length of nothing", vec![0, 0, 0, 0, 0, 0, 0, 0], Some("08P01")),
        ("a length of everything", vec![0xff; 64], Some("08P01")),
        ("HTTP", b"GET / HTTP/1.1\r\n\r\n".to_vec(), Some("08P01")),
    ];
    for (what, bytes, code) in refused {
        let mut wire = Wire::open(&server);
        wire.send(&bytes);
        let said = wire.next().unwrap_or_else(|| panic!("nothing is said to {what}"));
        assert_eq!((said.kind, said.field(b'C').as_deref()), (b'E', code), "{what}: {said:?}");
        assert_eq!(said.field(b'S').as_deref(), Some("FATAL"), "{what}");
        assert_eq!(wire.next(), None, "{what}");
    }
    assert_serving(&server, "bad openings");
    assert!(server.stop().success());
}

/// Scenario: after startup, messages that end before what they announce, formats and counts that do not fit, names that
/// are not there, texts that are not UTF-8, and one that is a megabyte too long.
/// Guarantee: each is an error with its code, and the same connection answers the next query.
#[test]
fn a_bad_message_is_an_error_and_the_connection_goes_on() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let mut wire = Wire::connect(&server);
    let sync = message(b'S', &[]);
    let parsed = message(b'P', &[text("s"), text("SELECT $1::int"), vec![0, 0]].concat());
    wire.send(&[parsed, sync.clone()].concat());
    assert_eq!(wire.kinds(), "1Z");
    let bad: [(&str, Vec<u8>, &str); 11] = [
        ("half a query", message(b'Q', b"SELECT 1"), "08P01"),
        ("no UTF-8", message(b'Q', b"SELECT '\xff'\0"), "22021"),
        ("types that are not there", message(b'P', b"x\0SELECT 1\0\xff\xff\0"), "08P01"),
        ("values that are not there", message(b'B', b"\0s\0\0\0\0\x02\x7f\xff\xff\xffx"), "08P01"),
        ("no value", message(b'B', b"\0s\0\0\0\0\0\0\0"), "08P01"),
        (
            "three formats for one value",
            message(b'B', b"\0s\0\0\x03\0\0\0\0\0\0\0\x01\0\0\0\x011\0\0"),
            "08P01",
        ),
        ("a format that does not exist", message(b'B', b"\0s\0\0\x01\0\x09\0\x01\0\0\0\x011\0\0"), "22P02"),
        ("a portal that is not there", message(b'E', b"nowhere\0\0\0\0\0"), "34000"),
        ("a statement that is not there", message(b'D', b"Snowhere\0"), "26000"),
        ("a target that does not exist", message(b'D', b"?x\0"), "08P01"),
        (
            "two statements in one",
            message(b'P', &[text(""), text("SELECT 1; SELECT 2"), vec![0, 0]].concat()),
            "42601",
        ),
    ];
    for (what, bytes, code) in bad {
        wire.send(&bytes);
        if bytes[0] != b'Q' {
            // Everything up to Sync is skipped.
            wire.send(&message(b'D', b"Salso nowhere\0"));
            wire.send(&sync);
        }
        let said = wire.until_ready();
        assert_eq!(said.len(), 2, "{what}: {said:?}");
        assert_eq!((said[0].kind, said[0].field(b'C').as_deref()), (b'E', Some(code)), "{what}: {said:?}");
        wire.ask("SELECT 1");
        assert_eq!(wire.kinds(), "TDCZ", "after {what}");
    }
    wire.ask(&format!("SELECT '{}'", "x".repeat(2 << 20)));
    assert_eq!(wire.until_ready()[0].field(b'C').as_deref(), Some("54000"));
    wire.ask(&format!("SELECT '{}'", "x".repeat(300 << 10)));
    assert_eq!(wire.until_ready()[0].field(b'C').as_deref(), Some("54000"));
    wire.ask("SELECT 1");
    assert_eq!(wire.kinds(), "TDCZ");
    assert!(server.stop().success());
}

/// Scenario: bytes after which nothing can be understood any more; a connection that ends in the middle of a message.
/// Guarantee: the client is told, and hung up on; others are not disturbed.
#[test]
fn out_of_step_is_the_end_of_one_connection_only() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let mut bystander = Wire::connect(&server);
    for (what, bytes) in [
        ("a kind that does not exist", message(0xf0, b"x")),
        ("a length below its own", vec![b'Q', 0, 0, 0, 3]),
        ("a negative length", vec![b'Q', 0xff, 0xff, 0xff, 0xff]),
    ] {
        let mut wire = Wire::connect(&server);
        wire.send(&bytes);
        let said = wire.next().unwrap_or_else(|| panic!("nothing is said to {what}"));
        assert_eq!(said.field(b'C').as_deref(), Some("08P01"), "{what}");
        assert_eq!(said.field(b'S').as_deref(), Some("FATAL"), "{what}");
        assert_eq!(wire.next(), None, "{what}");
    }
    for cut in [1, 4, 5, 9] {
        let mut wire = Wire::connect(&server);
        wire.send(&message(b'Q', &text("SELECT 1"))[..cut]);
        drop(wire);
    }
    bystander.ask("SELECT 1");
    assert_eq!(bystander.kinds(), "TDCZ");
    assert_serving(&server, "connections that ended badly");
    assert!(server.stop().success());
}

/// Scenario: two hundred clients that connect and say nothing, and one that says half of its first message.
/// Guarantee: others are served meanwhile, or at the latest when those who say nothing have been hung up on, which
/// takes seconds.
#[test]
fn who_says_nothing_is_hung_up_on() {
    let folder = Folder::new();
    let server = with_example(&folder);
    let mut half = Wire::open(&server);
    half.send(&startup(&[("user", "ann")])[..9]);
    let began = Instant::now();
    let mut silent: Vec<_> = (0..100).map(|_| Wire::open(&server)).collect();
    assert_serving(&server, "a hundred who say nothing");
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    silent.extend((0..100).map(|_| Wire::open(&server)));
    assert_eq!(half.next(), None);
    assert!(silent.iter_mut().all(|wire| wire.next().is_none()));
    assert!(began.elapsed() < Duration::from_secs(40), "{:?}", began.elapsed());
    assert_serving(&server, "two hundred who said nothing");
    assert!(server.stop().success());
}
