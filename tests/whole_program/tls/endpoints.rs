//! Tests that every endpoint is encrypted, and that this cannot be bypassed.

use super::super::otlp::client::python;
use super::super::support::{Folder, HIDDEN, Run, command, lines};
use super::authority::Authority;
use super::{Encrypted, curl, psql};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

/// Runs the Python clients, and returns their results.
fn visit(server: &Encrypted, certificate: Option<(&str, &str)>) -> Value {
    let told = json!({
        "otlp_grpc": server.at("otlp_grpc"),
        "otlp_http": server.at("otlp_http"),
        "postgres": server.at("postgres"),
        "flight": server.at("flight"),
        "ca": server.authority.certificate,
        "certificate": certificate.map(|(certificate, _)| certificate),
        "key": certificate.map(|(_, key)| key),
    });
    python("tls.py", &[], told.to_string().as_bytes())
}

const DOORS: [&str; 5] = ["otlp_grpc", "otlp_http", "postgres", "postgres_direct", "flight"];

/// Scenario: curl, the Python SDK over gRPC and HTTP, psql, psycopg and ADBC, each trusting the server's authority;
/// then without encryption, and trusting another one.
/// Guarantee: the first work at every endpoint, in HTTP/2 and HTTP/1.1; what was sent is stored; the others get
/// nowhere, are told why, and are counted; the metrics know when the certificate ends.
#[test]
fn real_clients_are_encrypted() {
    let folder = Folder::new();
    let encrypted = Encrypted::start(&folder, &[]);
    let (web, envelopes) = (encrypted.url("web"), format!("{}/v1/envelopes", encrypted.url("otlp_http")));
    for (wanted, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let (works, said) =
            encrypted.curl(&[wanted, "-w", "%{http_code} %{http_version}", &format!("{web}/healthz")]);
        assert!(works && said == format!("ok\n200 {version}"), "{said}");
    }
    let sent = ["-H", "Content-Type: application/x-ndjson", "--data-binary", HIDDEN, &envelopes];
    let (works, said) = encrypted.curl(&sent);
    assert!(works && said.contains("\"events\":1"), "{said}");

    let said = visit(&encrypted, None);
    for door in DOORS {
        assert_eq!(said[door], "ok", "{said}");
    }
    let answer = format!("{web}/api/v1/sql");
    let question = "SELECT count(*) AS n FROM events WHERE service IN ('tls-grpc', 'tls-http', 'orders')";
    let (_, said) = encrypted.curl(&["-H", "Content-Type: text/plain", "-d", question, &answer]);
    assert!(said.contains("{\"n\":3}"), "{said}");

    let failed = encrypted.metric("faultline_tls_failures_total");
    let plain = format!("http://{}/healthz", encrypted.at("web"));
    let (works, said) = curl(&["-w", " %{http_code}", &plain]);
    assert!(works && said.contains("tls_required") && said.ends_with("400"), "{said}");
    let (works, said) = curl(&[&format!("{web}/healthz")]);
    assert!(!works && said.contains("certificate"), "{said}");
    assert!(!encrypted.curl(&["--tls-max", "1.1", &format!("{web}/healthz")]).0, "TLS 1.1 is too old");
    let (port, ca) = (encrypted.server.address("postgres").port(), &encrypted.authority.certificate);
    let base = format!("host=localhost port={port} user=x dbname=faultline");
    assert_eq!(psql(&format!("{base} sslmode=verify-full sslrootcert={ca}")), "42\n");
    assert_eq!(psql(&format!("{base} sslmode=prefer")), "42\n");
    let said = psql(&format!("{base} sslmode=disable"));
    assert!(said.contains("connections to this server are encrypted") && said.contains("sslmode"), "{said}");
    assert_eq!(encrypted.metric("faultline_tls_failures_total") - failed, 3.0);

    let days = (encrypted.metric("faultline_tls_certificate_expiry_timestamp_seconds")
        - encrypted.metric("process_start_time_seconds"))
        / 86_400.0;
    assert!((29.9..30.1).contains(&days), "it ends in {days} days");
}

/// Guarantee: our own commands speak https; they trust the authority that they are given and no other, and say what to
/// do; the address of a data directory's server is https, too.
#[test]
fn our_own_commands_speak_https() {
    let folder = Folder::new();
    let encrypted = Encrypted::start(&folder, &[]);
    let (web, http) = (encrypted.url("web"), encrypted.url("otlp_http"));
    let ca = encrypted.authority.certificate.clone();
    let log = folder.file("app.ndjson", lines(&[HIDDEN, HIDDEN]));
    let run = |arguments: &[&str]| {
        let state = folder.path().join("state");
        let output = command(arguments)
            .env("XDG_STATE_HOME", state)
            .stderr(Stdio::piped())
            .output()
            .expect("the binary runs");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Run {
            out: text(output.stdout),
            err: text(output.stderr),
            code: output.status.code().expect("no signal"),
        }
    };
    let said = run(&["ingest", "--to", &http, "--wait", "1", &log]).ends_with(1).err;
    assert!(said.contains("give the certificate of its authority with --ca"), "{said}");
    run(&["ingest", "--to", &http, "--ca", &ca, &log]).ends_with(0);
    let count = ["sql", "SELECT count(*) AS n FROM events", "--server"];
    assert_eq!(run(&[&count[..], &[&web, "--ca", &ca]].concat()).ends_with(0).out, "n\n2\n");
    let said = run(&[&count[..], &[&web]].concat()).ends_with(1).err;
    assert!(said.contains("--ca"), "{said}");
    let plain = web.replace("https", "http");
    let said = run(&[&count[..], &[&plain]].concat()).ends_with(1).err;
    assert!(said.contains("answered 400") || said.contains("this listener speaks TLS"), "{said}");
    let other = Authority::new(&folder, "other");
    let said = run(&[&count[..], &[&web, "--ca", &other.certificate]].concat()).ends_with(1).err;
    assert!(said.contains("UnknownIssuer") || said.contains("--ca"), "{said}");

    let data = encrypted.server.data_dir().to_str().expect("a path");
    let mut tail =
        command(&["tail", "--data-dir", data, "--ca", &ca, "--format", "json"]).spawn().expect("tail");
    let mut first = [0; 1];
    tail.stdout.as_mut().expect("a pipe").read_exact(&mut first).expect("an event");
    assert_eq!(&first, b"{");
    tail.kill().expect("it is ours");
    tail.wait().expect("it ends");
}

/// Scenario: clients have to have a certificate; they come with the right one, with none, and with one of a stranger.
/// Guarantee: only the first get in, at every endpoint; our own commands can show one.
#[test]
fn clients_show_a_certificate_where_they_have_to() {
    let folder = Folder::new();
    let clients = Authority::new(&folder, "clients");
    let right = clients.issue("ann", 30);
    let stranger = Authority::new(&folder, "strangers").issue("eve", 30);
    let encrypted = Encrypted::start(&folder, &["--tls-client-ca", &clients.certificate]);
    let health = format!("{}/healthz", encrypted.url("web"));
    let with =
        |certificate: &str, key: &str| encrypted.curl(&["--cert", certificate, "--key", key, &health]).0;
    assert!(with(&right.certificate, &right.key));
    assert!(!with(&stranger.certificate, &stranger.key));
    assert!(!encrypted.curl(&[&health]).0, "no certificate, not even for a probe");

    let said = visit(&encrypted, Some((&right.certificate, &right.key)));
    for door in DOORS {
        assert_eq!(said[door], "ok", "{said}");
    }
    for certificate in [None, Some((&*stranger.certificate, &*stranger.key))] {
        let said = visit(&encrypted, certificate);
        for door in DOORS {
            assert_ne!(said[door], "ok", "{door} with {certificate:?}: {said}");
        }
    }
    let ask = |more: &[&str]| {
        let (web, ca) = (encrypted.url("web"), &*encrypted.authority.certificate);
        let all = [&["sql", "--server", &web, "--ca", ca, "SELECT 1 AS one"], more].concat();
        super::super::support::in_root(&all)
    };
    let own = ["--client-cert", &right.certificate, "--client-key", &right.key];
    assert_eq!(ask(&own).ends_with(0).out, "one\n1\n");
    let said = ask(&[]).ends_with(1).err;
    assert!(said.contains("--client-cert"), "{said}");
}

/// Scenario: a client of the PostgreSQL endpoint sends more after its request for encryption, before it is answered.
/// Guarantee: the connection ends there: what came in the clear is never taken for something encrypted.
#[test]
fn nothing_is_slipped_in_before_the_handshake() {
    let folder = Folder::new();
    let encrypted = Encrypted::start(&folder, &[]);
    let asks = |more: &[u8]| {
        let mut stream = TcpStream::connect(encrypted.server.address("postgres")).expect("a connection");
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).expect("a limit");
        stream.write_all(&[&[0, 0, 0, 8, 4, 210, 22, 47], more].concat()).expect("written");
        let mut answer = [0];
        stream.read(&mut answer).map(|read| answer[..read].to_vec()).unwrap_or_default()
    };
    assert_eq!(asks(b""), b"S");
    assert_eq!(asks(b"\0\0\0\x09\0\x03\0\0\0"), b"", "closed, or reset");
}
