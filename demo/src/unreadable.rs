//! Lines that no parser can read, as every real log has them: cut short, or not a record at all.

use crate::random::Random;
use crate::record::Record;
use crate::services::LEDGER;

/// One line in so many is unreadable.
pub const UNREADABLE_ONE_IN: u64 = 2_000;

/// What processes print past their logger.
const NOISE: &[&str] = &[
    "*** log rotated, continuing in this file ***",
    "Segmentation fault (core dumped)",
    "npm warn deprecated left-shift@1.0.2: this package is no longer kept",
    "    at Router.dispatch (/srv/app/dist/router.js:88:17)",
    "Killed",
];

/// Writes noise, or a record that ends too soon.
pub(crate) fn write(random: &mut Random, micros: i64, line: &mut String) {
    if random.one_in(2) {
        return line.push_str(random.pick(NOISE));
    }
    Record::new(&LEDGER, &LEDGER.dialect.successes[0], random, micros).write(line);
    cut(line, random);
}

/// Cuts the line, as a full disk or a killed process does: somewhere in its last three quarters.
fn cut(line: &mut String, random: &mut Random) {
    let quarter = line.len() as u64 / 4;
    let end = quarter + random.below(quarter * 3);
    line.truncate(line.floor_char_boundary(end as usize));
}
