//! Certificates that change while the server runs.

use super::super::support::Folder;
use super::authority::{Authority, Pair};
use super::{Encrypted, curl};
use std::time::{Duration, Instant};

/// Replaces a certificate and its key.
fn replace(old: &Pair, new: &Pair) {
    for (old, new) in [(&old.certificate, &new.certificate), (&old.key, &new.key)] {
        // Programs that renew certificates replace them this way, so that no reader sees half a file.
        let next = format!("{old}.next");
        std::fs::copy(new, &next).expect("a copy");
        std::fs::rename(next, old).expect("renamed");
    }
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Scenario: a certificate is replaced by one of another authority; by nonsense; by one whose key is another's; and by
/// a good one again, with SIGHUP.
/// Guarantee: each good one is used within seconds, or at once with SIGHUP; a bad one is told, once, and changes
/// nothing.
#[test]
fn a_new_certificate_is_used() {
    let folder = Folder::new();
    let encrypted = Encrypted::start(&folder, &[]);
    let health = format!("{}/healthz", encrypted.url("web"));
    let works = |authority: &Authority| curl(&["--cacert", &authority.certificate, &health]).0;
    assert!(works(&encrypted.authority));
    let next = Authority::new(&folder, "next");
    replace(&encrypted.pair, &next.issue("server", 60));
    until("the new certificate is not used", || works(&next));
    assert!(!works(&encrypted.authority));

    std::fs::write(&encrypted.pair.certificate, "nonsense").expect("a file");
    until("the mistake is not told", || encrypted.server.said().contains("the certificate stays as it was"));
    assert!(works(&next));
    std::thread::sleep(Duration::from_secs(6));
    let told = encrypted.server.said().matches("in PEM format").count();
    assert_eq!(told, 1, "it is told once");

    let last = Authority::new(&folder, "last");
    let (one, two) = (last.issue("one", 10), last.issue("two", 10));
    replace(&encrypted.pair, &Pair { certificate: one.certificate.clone(), key: two.key });
    encrypted.server.signal("HUP");
    until("the mistake is not told", || encrypted.server.said().contains("cannot be used"));
    assert!(works(&next));
    replace(&encrypted.pair, &one);
    encrypted.server.signal("HUP");
    until("the last certificate is not used", || works(&last));
}
