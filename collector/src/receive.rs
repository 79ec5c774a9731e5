//! Receivers: one file each. They bound, frame and answer; what the bytes mean is not decided here.
