//! `docs/codes.md` is generated from the registry, and stale when it is not what the registry says.

use super::support::{check_expected, in_root};

#[test]
fn the_page_of_codes_is_up_to_date() {
    let run = in_root(&["codes", "--format", "markdown"]).ends_with(0);
    check_expected("docs/codes.md", &run.out);
}
