//! Malformed lines, which every real log contains: truncated records, and text that is not a record at all.

use crate::random::Random;
use crate::record::Record;
use crate::services::LEDGER;

/// One line in this many is malformed.
pub const MALFORMED_ONE_IN: u64 = 2_000;

/// Text that processes print without using their logger.
const NOISE: &[&str] = &[
    "*** log rotated, continuing in this file ***",
    "Segmentation fault (core dumped)",
    "npm warn deprecated left-shift@1.0.2: this package is no longer kept",
    "    at Router.dispatch (/srv/app/dist/router.js:88:17)",
    "Killed",
];

/// Writes noise or a truncated record.
pub(crate) fn write(random: &mut Random, micros: i64, line: &mut String) {
    if random.one_in(2) {
        return line.push_str(random.pick(NOISE));
    }
    Record::new(&LEDGER, &LEDGER.dialect.successes[0], random, micros).write(line);
    truncate(line, random);
}

/// Truncates the line in its last three quarters, as happens when a disk is full or a process is killed.
fn truncate(line: &mut String, random: &mut Random) {
    let quarter = line.len() as u64 / 4;
    let end = quarter + random.below(quarter * 3);
    line.truncate(line.floor_char_boundary(end as usize));
}
