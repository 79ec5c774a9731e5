//! Tests that unusable certificates prevent the start.

use super::super::support::{Folder, command};
use super::authority::Authority;

/// Guarantee: whatever is wrong with the files, the server does not start, says what and where, quotes nothing, and has
/// not touched the data directory.
#[test]
fn a_bad_certificate_stops_the_start() {
    let folder = Folder::new();
    let authority = Authority::new(&folder, "authority");
    let (one, two) = (authority.issue("one", 30), authority.issue("two", 30));
    let (garbage, empty) = (folder.file("garbage.pem", "c2VjcmV0"), folder.file("empty.pem", ""));
    let nowhere = folder.path().join("nowhere.pem").to_str().expect("a path").to_owned();
    let cases: [(&[&str], &str); 9] = [
        (&["--tls-cert", &nowhere, "--tls-key", &one.key], "cannot read the certificate"),
        (&["--tls-cert", &one.certificate, "--tls-key", &nowhere], "cannot read the key"),
        (&["--tls-cert", &garbage, "--tls-key", &one.key], "does not contain the certificate in PEM format"),
        (&["--tls-cert", &empty, "--tls-key", &one.key], "does not contain the certificate in PEM format"),
        (&["--tls-cert", &one.certificate, "--tls-key", &garbage], "does not contain the key in PEM format"),
        (&["--tls-cert", &one.certificate, "--tls-key", &two.key], "cannot be used"),
        (&["--tls-cert", &one.certificate], "add --tls-key"),
        (&["--tls-client-ca", &authority.certificate], "add --tls-cert"),
        (
            &["--tls-cert", &one.certificate, "--tls-key", &one.key, "--tls-client-ca", &garbage],
            "does not contain the client certificate authorities in PEM format",
        ),
    ];
    for (arguments, says) in cases {
        let output = command(&[&["serve", "--data-dir", "data", "--listen-web", ":0"], arguments].concat())
            .current_dir(folder.path())
            .output()
            .expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(1) && said.contains(says), "{arguments:?}: {said}");
        assert!(!said.contains("c2VjcmV0") && !folder.path().join("data").exists(), "{said}");
    }
}
