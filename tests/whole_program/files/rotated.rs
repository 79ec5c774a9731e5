//! Tests of rotation under load, and of kills during a rotation.

use super::writer::Writer;
use super::{Bench, PATIENCE};
use crate::whole_program::durability::kill::Dice;
use std::process::Command;
use std::time::{Duration, Instant};

const ROUNDS: u64 = 4;

/// Renames `app.log.1` to `app.log.2` and so on, as far as the files exist.
fn make_room(bench: &Bench) {
    let name = |number: u64| bench.log(&format!("app.log.{number}"));
    for number in (1..20).rev().filter(|number| name(*number).exists()) {
        std::fs::rename(name(number), name(number + 1)).expect("a file can be renamed");
    }
}

/// Scenario: a log is written to at speed and rotated by renaming while its writer still has it open; the server is
/// killed in every round, sometimes right after a rotation, and started again, sometimes after another one.
/// Guarantee: every line is stored once.
#[test]
fn rotation_by_renaming_and_kills() {
    let (bench, mut dice) = (Bench::new(), Dice::new());
    let writer = Writer::start(&bench.log("app.log"));
    let rotate = |pause: u64| {
        make_room(&bench);
        std::fs::rename(bench.log("app.log"), bench.log("app.log.1")).expect("the log can be renamed");
        std::thread::sleep(Duration::from_millis(pause));
        writer.reopen();
    };
    for _ in 0..ROUNDS {
        let server = bench.serve();
        std::thread::sleep(Duration::from_millis(dice.below(900)));
        rotate(dice.below(300));
        std::thread::sleep(Duration::from_millis(dice.below(900)));
        server.kill();
        if dice.below(2) == 0 {
            rotate(0);
        }
    }
    let server = bench.serve();
    let written = writer.end();
    bench.stores_all(written);
    let files = &server.status()["files"];
    assert_eq!((&files["read_errors"], &files["records_skipped"]), (&0.into(), &0.into()), "{files}");
    assert!(server.stop().success());
    bench.stores_each_once(written);
}

/// Scenario: the same with copies: the log is copied and emptied, while nobody writes a line; older copies are packed.
/// Guarantee: every line is stored once, though every one is in two files, and many in three.
#[test]
fn rotation_by_copying_and_kills() {
    let (bench, mut dice) = (Bench::new(), Dice::new());
    let writer = Writer::start(&bench.log("app.log"));
    let rotate = |pause: u64| {
        make_room(&bench);
        writer.meanwhile(|| {
            std::fs::copy(bench.log("app.log"), bench.log("app.log.1")).expect("the log can be copied");
            std::thread::sleep(Duration::from_millis(pause));
            let log = std::fs::File::options().write(true).open(bench.log("app.log")).expect("the log");
            log.set_len(0).expect("the log can be emptied");
        });
    };
    for _ in 0..ROUNDS {
        let server = bench.serve();
        std::thread::sleep(Duration::from_millis(dice.below(900)));
        rotate(dice.below(1500));
        std::thread::sleep(Duration::from_millis(dice.below(900)));
        server.kill();
        if dice.below(2) == 0 {
            rotate(0);
        }
    }
    let server = bench.serve();
    let written = writer.end();
    bench.stores_all(written);
    let packed = Command::new("gzip").arg(bench.log("app.log.2")).status().expect("gzip is there");
    assert!(packed.success());
    let began = Instant::now();
    while server.status()["files"]["changes"]["archived"] != 1 {
        assert!(began.elapsed() < PATIENCE, "the archive is not looked at: {}", server.status()["files"]);
        std::thread::sleep(Duration::from_millis(200));
    }
    let files = server.status()["files"].clone();
    assert!(files["changes"]["copied"].as_u64() >= Some(1), "{files}");
    assert!(server.stop().success());
    bench.stores_each_once(written);
    // The positions are stored, so nothing is read again either.
    let server = bench.serve();
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(server.status()["files"]["lines"], 0);
    assert!(server.stop().success());
}
