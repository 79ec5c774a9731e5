//! Tests of the lake as a whole.
