//! A certificate authority, made by openssl, and its certificates.

use super::super::support::Folder;
use std::path::PathBuf;
use std::process::Command;

/// An authority.
pub(super) struct Authority {
    folder: PathBuf,
    name: String,
    /// Its own certificate.
    pub(super) certificate: String,
    key: String,
}

/// A certificate and its key.
pub(super) struct Pair {
    pub(super) certificate: String,
    pub(super) key: String,
}

impl Authority {
    pub(super) fn new(folder: &Folder, name: &str) -> Self {
        let folder = folder.path().to_owned();
        let file = |ending: &str| path(&folder, &format!("{name}.{ending}"));
        let (certificate, key) = (file("crt"), file("key"));
        openssl(&[
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-days",
            "30",
            "-subj",
            &format!("/CN={name}"),
            "-keyout",
            &key,
            "-out",
            &certificate,
        ]);
        Self { folder, name: name.to_owned(), certificate, key }
    }

    /// Issues a certificate for this machine, and for clients.
    pub(super) fn issue(&self, name: &str, days: u32) -> Pair {
        let file = |ending: &str| path(&self.folder, &format!("{}-{name}.{ending}", self.name));
        let (certificate, key, request, extensions) = (file("crt"), file("key"), file("csr"), file("ext"));
        openssl(&[
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-subj",
            &format!("/CN={name}"),
            "-keyout",
            &key,
            "-out",
            &request,
        ]);
        std::fs::write(
            &extensions,
            "subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n",
        )
        .expect("a file");
        openssl(&[
            "x509",
            "-req",
            "-in",
            &request,
            "-CA",
            &self.certificate,
            "-CAkey",
            &self.key,
            "-CAcreateserial",
            "-days",
            &days.to_string(),
            "-extfile",
            &extensions,
            "-out",
            &certificate,
        ]);
        Pair { certificate, key }
    }
}

fn path(folder: &std::path::Path, name: &str) -> String {
    folder.join(name).to_str().expect("the path is UTF-8").to_owned()
}

fn openssl(arguments: &[&str]) {
    let output = Command::new("openssl").args(arguments).output();
    let output = output.expect("openssl is missing: install it, as tests/run does");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
