//! Faultline as it starts by default, and with TLS, tokens and budgets.

use crate::sender::connection::{Protocol, Security, TRACES};
use crate::sender::server::Server;
use crate::{Contender, Running, programs, run};
use anyhow::Context;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const DOES: &str = "classifies, deduplicates, syncs, writes Parquet";
/// A budget that no service reaches.
const BUDGET: &str = "1000000000/s";

pub(crate) fn contenders(folder: &Path) -> anyhow::Result<Vec<Contender>> {
    let mut contenders = Vec::new();
    for (name, program) in programs() {
        contenders.push(start(name, DOES, &program, folder, &[], Security::default())?);
    }
    let program = &programs()[0].1;
    let key = folder.join("server.key");
    let certificate = folder.join("server.crt");
    make_certificate(&key, &certificate)?;
    let tls = Security { tls: Some(client_config(&certificate)?), token: None };
    let arguments: [&OsStr; 4] =
        ["--tls-cert".as_ref(), certificate.as_ref(), "--tls-key".as_ref(), key.as_ref()];
    contenders.push(start("Faultline with TLS", DOES, program, folder, &arguments, tls)?);

    let tokens = folder.join("tokens.toml");
    let token = make_token(program, &tokens)?;
    let secured = Security { tls: None, token: Some(token) };
    let arguments: [&OsStr; 2] = ["--tokens".as_ref(), tokens.as_ref()];
    contenders.push(start("Faultline with tokens", DOES, program, folder, &arguments, secured)?);

    let arguments: [&OsStr; 2] = ["--service-budget".as_ref(), BUDGET.as_ref()];
    let open = Security::default();
    contenders.push(start("Faultline with budgets", DOES, program, folder, &arguments, open)?);
    Ok(contenders)
}

fn start(
    name: &str,
    does: &'static str,
    program: &Path,
    folder: &Path,
    arguments: &[&OsStr],
    security: Security,
) -> anyhow::Result<Contender> {
    let data = folder.join(name.replace([' ', ','], "-"));
    let server = Server::start_with(program, &data, arguments, security)?;
    let target = server.target("otlp_grpc", Protocol::Grpc { path: TRACES, encoding: "identity" })?;
    Ok(Contender {
        name: name.to_owned(),
        does,
        process: server.process.clone(),
        target,
        running: Running::Faultline(server),
        rounds: Vec::new(),
    })
}

/// Makes a self-signed certificate for loopback with openssl.
fn make_certificate(key: &Path, certificate: &Path) -> anyhow::Result<()> {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    openssl.args(["-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]);
    openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    openssl.arg("-keyout").arg(key).arg("-out").arg(certificate);
    run(&mut openssl).map(drop)
}

fn client_config(certificate: &Path) -> anyhow::Result<Arc<rustls::ClientConfig>> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(certificate).context("the certificate")?)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Makes a token that may do everything, and returns it.
fn make_token(program: &Path, tokens: &Path) -> anyhow::Result<String> {
    let mut command = Command::new(program);
    command.args(["token", "new", "--scope", "admin", "--name", "bench", "--tokens"]).arg(tokens);
    let printed = run(&mut command)?;
    let token = printed.split_whitespace().next().context("no token was printed")?;
    Ok(token.to_owned())
}
