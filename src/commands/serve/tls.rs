//! TLS on every listener: the certificate files, and a task that reloads them when they change.

use super::endpoints::Endpoints;
use auth::Authenticator;
use auth::tls::{CertificateFiles, Tls, TlsError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The interval at which the files are checked. Certificates are replaced every few weeks and before they expire, so a
/// new one is not urgent.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// The flags for TLS on the listeners.
#[derive(Debug, clap::Args)]
pub(super) struct TlsArgs {
    /// The certificate for TLS on every listener, as PEM with its intermediate certificates; it is reloaded when it changes.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_TLS_CERT", value_hint = clap::ValueHint::FilePath)]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate, as PEM.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_TLS_KEY", value_hint = clap::ValueHint::FilePath)]
    tls_key: Option<PathBuf>,
    /// Require client certificates of these authorities (PEM) on every listener, in addition to tokens.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_TLS_CLIENT_CA", value_hint = clap::ValueHint::FilePath)]
    tls_client_ca: Option<PathBuf>,
}

impl TlsArgs {
    /// Returns true when any of the files is configured.
    pub(super) fn is_given(&self) -> bool {
        self.tls_cert.is_some() || self.tls_key.is_some() || self.tls_client_ca.is_some()
    }

    /// Loads the files. Returns `None` if TLS is not configured.
    pub(super) fn load(&self) -> anyhow::Result<Option<Arc<Tls>>> {
        let files = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => CertificateFiles {
                certificate: certificate.clone(),
                key: key.clone(),
                client_ca: self.tls_client_ca.clone(),
            },
            (None, None) if self.tls_client_ca.is_none() => return Ok(None),
            (Some(_), None) => anyhow::bail!("--tls-cert needs its key: add --tls-key"),
            _ => anyhow::bail!("--tls-key and --tls-client-ca need a certificate: add --tls-cert"),
        };
        let loaded = Tls::load(files);
        Ok(Some(Arc::new(loaded.map_err(|error| anyhow::anyhow!("{error}; nothing listens without it"))?)))
    }
}

/// Warns if tokens are sent unencrypted over a network, which the operator may not have intended.
pub(super) fn warn_about_unencrypted_tokens(authenticator: &Authenticator, endpoints: &Endpoints) {
    if authenticator.requires_token() && !endpoints.tls && endpoints.is_remotely_reachable() {
        tracing::warn!(
            "other machines reach a listener, and tokens travel to it unencrypted; give --tls-cert and --tls-key"
        );
    }
}

/// Checks the files periodically, forever.
pub(super) async fn watch(tls: Arc<Tls>) {
    let mut watcher = CertificateWatcher { tls, last_error: String::new() };
    loop {
        tokio::time::sleep(POLL_INTERVAL).await;
        watcher.refresh();
    }
}

struct CertificateWatcher {
    tls: Arc<Tls>,
    /// The last error that was logged, so that each is logged once.
    last_error: String,
}

impl CertificateWatcher {
    fn refresh(&mut self) {
        let result = self.tls.reload_if_changed();
        let error = result.as_ref().err().map(ToString::to_string).unwrap_or_default();
        if error.is_empty() || error != self.last_error {
            report(&result);
        }
        self.last_error = error;
    }
}

/// Checks the files at once.
pub(super) fn reload_certificate(tls: &Tls) {
    report(&tls.reload_if_changed());
}

fn report(result: &Result<bool, TlsError>) {
    match result {
        Ok(true) => tracing::info!("new connections get the new certificate"),
        Ok(false) => {}
        // This can be temporary: one of two files may have been replaced a moment before the other.
        Err(error) => tracing::error!("the certificate stays as it was: {error}"),
    }
}
