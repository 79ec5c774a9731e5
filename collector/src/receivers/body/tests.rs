//! Tests of collecting bodies: their pieces, their pace, and the memory permits they hold.

use super::*;
use crate::receivers::test_support::{Fake, Script, Step};
use std::time::Duration;

fn limits() -> Limits {
    Limits {
        body_pause: Duration::from_millis(30),
        body_timeout: Duration::from_millis(90),
        admission_wait: Duration::from_millis(20),
        inflight_bytes: 100 << 10,
        ..Limits::default()
    }
}

fn up_to(limit: usize) -> Bounds {
    Bounds { limit, announced: None, frame: None }
}

async fn run(
    fake: &Fake,
    bounds: Bounds,
    steps: impl IntoIterator<Item = Step>,
) -> Result<(Bytes, usize), Rejection> {
    let (body, room) = collect(Script::of(steps), bounds, &fake.limits, &fake.room).await?;
    Ok((body, room.iter().map(OwnedSemaphorePermit::num_permits).sum()))
}

/// Collects a body and checks that all permits were released afterwards.
async fn check(
    bounds: Bounds,
    steps: impl IntoIterator<Item = Step>,
) -> Result<(Bytes, usize), RejectionReason> {
    let fake = Fake::with(limits());
    let result = run(&fake, bounds, steps).await;
    assert_eq!(fake.room.available_permits(), 100);
    result.map_err(|rejection| rejection.reason)
}

static LARGE: [u8; 50 << 10] = [7; 50 << 10];

#[tokio::test]
async fn bodies_come_whole_and_hold_room_for_what_they_are() {
    assert_eq!(check(up_to(10), []).await, Ok((Bytes::new(), 0)));
    assert_eq!(check(up_to(10), [Step::Data(b"abc")]).await, Ok((Bytes::from_static(b"abc"), 1)));
    let (body, room) = check(up_to(99 << 10), [Step::Data(&LARGE), Step::Data(b"x")]).await.unwrap();
    assert_eq!((body.len(), body.last(), room), (LARGE.len() + 1, Some(&b'x'), 51));
    let steps = [Step::Data(b"a"), Step::Data(b""), Step::Wait(Duration::from_millis(5)), Step::Data(b"b")];
    assert_eq!(check(up_to(2), steps).await, Ok((Bytes::from_static(b"ab"), 1)));
}

#[tokio::test]
async fn one_frame_is_not_copied() {
    let (body, _) = check(up_to(99 << 10), [Step::Data(&LARGE)]).await.unwrap();
    assert_eq!(body.as_ptr(), LARGE.as_ptr());
}

#[tokio::test]
async fn the_limit_holds_while_it_streams() {
    let steps = [Step::Data(b"abc"), Step::Data(b"defg"), Step::Panic];
    assert_eq!(check(up_to(6), steps).await, Err(RejectionReason::TooLarge));
    assert!(Bounds { announced: Some(7), ..up_to(6) }.check_announced().is_err());
    assert!(Bounds { announced: Some(6), ..up_to(6) }.check_announced().is_ok());
    assert!(Bounds { announced: Some(u64::MAX), ..up_to(6) }.check_announced().is_err());
}

#[tokio::test]
async fn slow_senders_are_let_go() {
    let pause = [Step::Data(b"a"), Step::Wait(Duration::from_secs(9)), Step::Panic];
    assert_eq!(check(up_to(10), pause).await, Err(RejectionReason::TooSlow));
    let drip = (0..9).flat_map(|_| [Step::Wait(Duration::from_millis(20)), Step::Data(b"a")]);
    assert_eq!(check(up_to(10), drip).await, Err(RejectionReason::TooSlow));
}

#[tokio::test]
async fn senders_that_hang_up_are_refused() {
    assert_eq!(check(up_to(10), [Step::Data(b"a"), Step::Fail]).await, Err(RejectionReason::Gone));
}

#[tokio::test]
async fn without_room_it_waits_and_then_is_busy() {
    let fake = Fake::with(limits());
    let taken = Arc::clone(&fake.room).acquire_many_owned(100).await.unwrap();
    let rejection = run(&fake, up_to(10), [Step::Data(b"a"), Step::Panic]).await.unwrap_err();
    assert_eq!(
        (rejection.reason, rejection.retry_after),
        (RejectionReason::Busy, Some(fake.limits.retry_after))
    );
    let later = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        drop(taken);
    };
    let (collected, ()) = tokio::join!(run(&fake, up_to(10), [Step::Data(b"a")]), later);
    assert_eq!(collected.unwrap().1, 1);
}

#[tokio::test]
async fn an_announced_body_takes_no_more_than_it_announced() {
    let fake = Fake::with(limits());
    let taken = Arc::clone(&fake.room).acquire_many_owned(98).await.unwrap();
    let bounds = Bounds { announced: Some(2000), ..up_to(1 << 20) };
    assert!(run(&fake, bounds, [Step::Data(b"a")]).await.is_ok(), "two permits are enough");
    drop(taken);
}

fn framed() -> Bounds {
    let limits = Limits { compressed_bytes: 10, body_bytes: 20, ..Limits::default() };
    let frame = Frame::new(Encoding::Gzip, &limits);
    Bounds { limit: frame.limit(), announced: None, frame: Some(frame) }
}

#[tokio::test]
async fn a_frame_is_refused_at_its_prefix() {
    for steps in [
        vec![Step::Data(b"\x01\0\0\0\x0b"), Step::Panic],
        vec![Step::Data(b"\x01"), Step::Data(b"\0\0\0"), Step::Data(b"\x0b"), Step::Panic],
        vec![Step::Data(b"\0\x40\0\0\0"), Step::Panic],
    ] {
        assert_eq!(check(framed(), steps).await, Err(RejectionReason::TooLarge));
    }
    let two = [Step::Data(b"\0\0\0\0\x01a"), Step::Data(b"\0\0\0\0\x01b"), Step::Panic];
    assert_eq!(check(framed(), two).await, Err(RejectionReason::Unreadable));
    assert_eq!(
        check(framed(), [Step::Data(b"\0\0\0\0\x01ab"), Step::Panic]).await,
        Err(RejectionReason::Unreadable)
    );
    let whole = [Step::Data(b"\0"), Step::Data(b"\0\0\0\x02a"), Step::Data(b"b")];
    assert_eq!(check(framed(), whole).await, Ok((Bytes::from_static(b"\0\0\0\0\x02ab"), 1)));
}
