//! Tests of log files that are renamed, copied and truncated, deleted or replaced, while the tailer runs or is stopped.

use super::*;

#[test]
fn a_renamed_file_is_read_to_its_end_and_not_again() {
    let mut bench = Bench::new();
    bench.append("a.log", "one\n");
    bench.pass(1);
    bench.append("a.log", "two\n");
    bench.rename("a.log", "a.log.1");
    bench.append("a.log.1", "three\n");
    bench.append("a.log", "four\n");
    bench.pass(2);
    bench.stored(&["one", "two", "three", "four"]);
    // The writer may keep the old file open for a while.
    bench.append("a.log.1", "five\n");
    bench.pass(1);
    bench.crash();
    bench.pass(20);
    bench.stop_for_long();
    bench.pass(20);
    bench.stored(&["one", "two", "three", "four", "five"]);
    assert_eq!(bench.to.counters.rotations.get(), 1);
}

#[test]
fn a_file_that_leaves_the_pattern_is_read_to_its_end() {
    let mut bench = Bench::new();
    bench.append("a.log", "one\n");
    bench.pass(1);
    bench.append("a.log", "two\nhalf");
    bench.rename("a.log", "elsewhere");
    bench.pass(12);
    bench.stored(&["one", "two", "half"]);
    assert_eq!(bench.to.counters.open.get(), 0);
}

#[test]
fn a_deleted_file_is_read_to_its_end() {
    let mut bench = Bench::new();
    bench.append("a.log", "one\n");
    bench.pass(1);
    bench.append("a.log", "two\nhalf");
    bench.remove("a.log");
    bench.append("a.log", "three\n");
    bench.pass(12);
    bench.stored(&["one", "two", "half", "three"]);
    assert_eq!(bench.to.counters.open.get(), 1);
}

#[test]
fn an_emptied_file_begins_anew() {
    let mut bench = Bench::new();
    bench.append("a.log", "one\ntwo\n");
    bench.pass(1);
    bench.empty("a.log");
    bench.pass(1);
    bench.append("a.log", "three\n");
    bench.pass(1);
    // The file is truncated and grows past the old offset before the next round.
    bench.empty("a.log");
    bench.append("a.log", "four\nfive\nsix\n");
    bench.pass(1);
    bench.stored(&["one", "two", "three", "four", "five", "six"]);
    bench.crash();
    bench.pass(5);
    bench.stored(&["one", "two", "three", "four", "five", "six"]);
    assert_eq!(bench.to.counters.truncations.get(), 2);
}

/// Rounds run before the copy, between copy and truncation, or after both; with a crash or without.
#[test]
fn a_copy_of_an_emptied_file_is_not_read_again_and_completes_it() {
    for (sees_copy, crashes, unread) in
        [(true, false, false), (true, true, true), (false, false, true), (false, true, false)]
    {
        let mut bench = Bench::new();
        bench.append("a.log", "one\n");
        bench.pass(2);
        if unread {
            bench.append("a.log", "two\n");
        }
        bench.copy("a.log", "a.log.1");
        if sees_copy {
            bench.pass(1);
        }
        bench.empty("a.log");
        if crashes {
            bench.crash();
        }
        bench.append("a.log", "three\n");
        bench.pass(3);
        bench.rename("a.log.1", "a.log.2");
        bench.copy("a.log", "a.log.1");
        bench.empty("a.log");
        bench.append("a.log", "four\n");
        bench.pass(3);
        bench.crash();
        bench.pass(3);
        let lines: &[&str] =
            if unread { &["one", "two", "three", "four"] } else { &["one", "three", "four"] };
        bench.stored(lines);
    }
}

/// Lines that were written between the copy and the truncation are in no file any more. The tailer has read them, and
/// must still recognize the copy.
#[test]
fn a_copy_that_is_shorter_than_what_was_read_is_known() {
    let mut bench = Bench::new();
    let lines = numbered(0..50);
    bench.append("a.log", joined(&lines[..40]));
    bench.copy("a.log", "hidden");
    bench.append("a.log", joined(&lines[40..]));
    bench.pass(1);
    bench.rename("hidden", "a.log.1");
    bench.empty("a.log");
    bench.pass(2);
    bench.stored(&all(&lines));
    bench.stop_for_long();
    bench.pass(2);
    bench.stored(&all(&lines));
}

#[test]
fn what_happens_while_we_are_away_is_found_out() {
    let mut bench = Bench::new();
    let lines = numbered(0..60);
    bench.append("a.log", joined(&lines[..20]));
    bench.append("b.log", joined(&lines[20..30]));
    bench.pass(1);
    bench.stop_for_long();
    bench.append("a.log", joined(&lines[30..40]));
    bench.rename("a.log", "a.log.1");
    bench.append("a.log", joined(&lines[40..50]));
    bench.copy("b.log", "b.log.1");
    bench.append("b.log.1", joined(&lines[50..55]));
    bench.empty("b.log");
    bench.append("b.log", joined(&lines[55..]));
    bench.pass(5);
    bench.stored(&all(&lines));
}

/// `rsync` and editors write a new file under the old name, with the old content and more.
#[test]
fn a_file_that_was_replaced_by_a_longer_one_goes_on() {
    let mut bench = Bench::new();
    let lines = numbered(0..60);
    bench.append("a.log", joined(&lines[..40]));
    bench.pass(1);
    bench.append("new", joined(&lines));
    bench.rename("new", "a.log");
    bench.pass(15);
    bench.stored(&all(&lines));
}

/// Many logs begin alike: a file that only begins like another is not taken for it.
#[test]
fn logs_that_begin_alike_are_different_logs() {
    let mut bench = Bench::new();
    bench.append("a.log", "started\n");
    bench.append("b.log", "started\n");
    bench.pass(1);
    bench.rename("a.log", "a.log.1");
    bench.append("a.log", "started\n");
    bench.append("c.log", "started\n");
    bench.pass(2);
    bench.append("a.log", "more\n");
    bench.pass(1);
    bench.stored(&["started", "started", "started", "started", "more"]);
}

/// The inode of a deleted file is reused for the next one, whether smaller or larger.
#[test]
fn a_number_that_is_given_again_does_not_confuse() {
    for (first, second) in [("one\ntwo\nthree\n", "four\n"), ("one\n", "two\nthree\nfour\n")] {
        let mut bench = Bench::new();
        bench.append("a.log", first);
        bench.pass(1);
        bench.tailer.save();
        // The file is rewritten while the tailer is stopped, so that it certainly has the same inode.
        bench.empty("a.log");
        bench.append("a.log", second);
        bench.crash();
        bench.pass(2);
        bench.stored(&["one", "two", "three", "four"]);
    }
}

#[test]
fn a_file_that_rests_is_closed_and_found_again() {
    let mut bench = Bench::new();
    bench.append("a.log", "one\n");
    bench.pass(1);
    bench.now += Duration::from_secs(3600);
    bench.pass(1);
    assert_eq!(bench.to.counters.open.get(), 0);
    bench.rename("a.log", "a.log.1");
    bench.append("a.log.1", "two\n");
    bench.append("a.log", "three\n");
    bench.pass(1);
    bench.stored(&["one", "two", "three"]);
}
