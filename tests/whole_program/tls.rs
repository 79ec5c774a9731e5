//! TLS at every endpoint, with certificates of the test's own authority and real clients: curl, the Python SDK over
//! gRPC and HTTP, psql, psycopg, ADBC, and Faultline's own commands.

mod authority;
mod endpoints;
mod mistakes;
mod renewed;

use super::server::Server;
use super::support::Folder;
use authority::{Authority, Pair};
use std::process::Command;

/// A server with a certificate for `localhost`.
struct Encrypted {
    server: Server,
    authority: Authority,
    pair: Pair,
}

impl Encrypted {
    fn start(folder: &Folder, arguments: &[&str]) -> Self {
        let authority = Authority::new(folder, "authority");
        let pair = authority.issue("server", 30);
        let own = ["--tls-cert", &pair.certificate, "--tls-key", &pair.key];
        let server = Server::start_with(folder, &[&own, arguments].concat());
        Self { server, authority, pair }
    }

    /// Returns the address of a listener, by the name that is in the certificate.
    fn at(&self, listener: &str) -> String {
        format!("localhost:{}", self.server.address(listener).port())
    }

    fn url(&self, listener: &str) -> String {
        format!("https://{}", self.at(listener))
    }

    /// Returns whether curl gets a response, and its text.
    fn curl(&self, arguments: &[&str]) -> (bool, String) {
        curl(&[&["--cacert", &*self.authority.certificate], arguments].concat())
    }

    /// Returns the value of a metric.
    #[track_caller]
    fn metric(&self, name: &str) -> f64 {
        let (_, metrics) = self.curl(&[&format!("{}/metrics", self.url("web"))]);
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)).expect("the metric");
        line.trim().parse().expect("a number")
    }
}

fn curl(arguments: &[&str]) -> (bool, String) {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "30"])
        .args(arguments)
        .output()
        .expect("curl is missing: install it, as tests/run does");
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), said)
}

/// Returns the output of psql for one query.
fn psql(connection: &str) -> String {
    let output = Command::new("psql")
        .args(["--no-psqlrc", "-Atw", connection, "-c", "SELECT 40 + 2"])
        .output()
        .expect("psql is missing: install postgresql-client");
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}
