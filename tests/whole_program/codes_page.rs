//! Tests that `docs/codes.md` is up to date: it is generated from the registry.

use super::support::{check_expected, in_root};

#[test]
fn the_page_of_codes_is_up_to_date() {
    let run = in_root(&["codes", "--format", "markdown"]).ends_with(0);
    check_expected("docs/codes.md", &run.out);
}
