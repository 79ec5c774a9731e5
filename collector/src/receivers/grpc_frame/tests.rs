//! Tests of gRPC frames that are complete, truncated, too long, or have a wrong flag.

use super::*;

fn limits() -> Limits {
    Limits { compressed_bytes: 100, body_bytes: 1000, ..Limits::default() }
}

fn prefix(flag: u8, length: u32) -> Vec<u8> {
    [&[flag][..], &length.to_be_bytes()].concat()
}

#[test]
fn a_prefix_decides_before_the_message_comes() {
    for (encoding, flag, length, expected) in [
        (Encoding::Identity, 0, 0, Ok(5)),
        (Encoding::Identity, 0, 1000, Ok(1005)),
        (Encoding::Identity, 0, 1001, Err(RejectionReason::TooLarge)),
        (Encoding::Identity, 0, u32::MAX, Err(RejectionReason::TooLarge)),
        (Encoding::Identity, 1, 1, Err(RejectionReason::Unreadable)),
        (Encoding::Identity, 2, 1, Err(RejectionReason::Unreadable)),
        (Encoding::Gzip, 1, 100, Ok(105)),
        (Encoding::Gzip, 1, 101, Err(RejectionReason::TooLarge)),
        (Encoding::Zstd, 1, 101, Err(RejectionReason::TooLarge)),
        (Encoding::Gzip, 0, 1000, Ok(1005)),
        (Encoding::Gzip, 255, 1, Err(RejectionReason::Unreadable)),
    ] {
        let found = Frame::new(encoding, &limits()).length(&prefix(flag, length));
        assert_eq!(found.map_err(|rejection| rejection.reason), expected, "{encoding:?} {flag} {length}");
    }
}

#[test]
fn a_frame_gives_its_message_or_says_what_is_missing() {
    let frame = Frame::new(Encoding::Gzip, &limits());
    assert_eq!(frame.open(framed(b"abc")).unwrap(), (Bytes::from_static(b"abc"), Encoding::Identity));
    let compressed = Bytes::from([prefix(1, 2), b"zz".to_vec()].concat());
    assert_eq!(frame.open(compressed).unwrap(), (Bytes::from_static(b"zz"), Encoding::Gzip));
    for cut in 0..8 {
        let rejection = frame.open(framed(b"abc").slice(..cut)).unwrap_err();
        assert_eq!(rejection.reason, RejectionReason::Unreadable, "{cut}");
    }
}
