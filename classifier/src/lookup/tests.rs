//! Canonical names of codes that are not registered.

use super::*;

#[test]
fn a_canonical_name_starts_with_its_category() {
    for (category, code, expected) in [
        (Category::Validation, "VALIDATION_NEW", "VALIDATION_NEW"),
        (Category::Validation, "ACME_VALIDATION_X", "VALIDATION_ACME_VALIDATION_X"),
        (Category::RateLimit, "quota-hit", "RATE_LIMIT_QUOTA_HIT"),
        (Category::NotFound, "NOT_FOUND", "NOT_FOUND_UNREGISTERED"),
        (Category::NotFound, "NOT_FOUNDX", "NOT_FOUND_NOT_FOUNDX"),
        (Category::Internal, "a b\n\"c\"", "INTERNAL_A_B__C_"),
        (Category::Internal, "größe", "INTERNAL_GR__E"),
    ] {
        assert_eq!(canonical_name(category, code), expected, "{code}");
    }
}

#[test]
fn a_canonical_name_is_short_enough_for_a_label() {
    assert!(canonical_name(Category::Internal, &"X".repeat(10_000)).len() < 128);
}
