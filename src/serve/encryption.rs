//! TLS on every listener: where the certificate is, and watching it for a newer one.

use super::endpoints::Endpoints;
use access::Gate;
use access::tls::{Files, Tls, TlsError};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Certificates are replaced every few weeks, and in time: nobody waits for the new one.
const LOOK: Duration = Duration::from_secs(5);

/// What listeners encrypt with.
#[derive(Debug, clap::Args)]
pub(super) struct Encryption {
    /// Encrypt every listener with this certificate: PEM, with those between it and its authority; watched for changes.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_TLS_CERT", value_hint = clap::ValueHint::FilePath)]
    tls_cert: Option<PathBuf>,
    /// The certificate's key, in PEM form.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_TLS_KEY", value_hint = clap::ValueHint::FilePath)]
    tls_key: Option<PathBuf>,
    /// Let in only clients that have a certificate of these authorities, at every listener; tokens are asked for all the same.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_TLS_CLIENT_CA", value_hint = clap::ValueHint::FilePath)]
    tls_client_ca: Option<PathBuf>,
}

impl Encryption {
    /// Reads the files; none when nothing is to be encrypted.
    pub(super) fn load(&self) -> anyhow::Result<Option<Arc<Tls>>> {
        let files = match (&self.tls_cert, &self.tls_key) {
            (Some(certificate), Some(key)) => Files {
                certificate: certificate.clone(),
                key: key.clone(),
                client_authorities: self.tls_client_ca.clone(),
            },
            (None, None) if self.tls_client_ca.is_none() => return Ok(None),
            (Some(_), None) => anyhow::bail!("--tls-cert needs its key: add --tls-key"),
            _ => anyhow::bail!("--tls-key and --tls-client-ca need a certificate: add --tls-cert"),
        };
        let loaded = Tls::load(files);
        Ok(Some(Arc::new(loaded.map_err(|error| anyhow::anyhow!("{error}; nothing listens without it"))?)))
    }
}

/// Warns of what the operator may not have meant: tokens that anybody on the way can read.
pub(super) fn warn_of_open_tokens(gate: &Gate, endpoints: &Endpoints) {
    if gate.asks() && !endpoints.tls && endpoints.can_be_reached() {
        tracing::warn!(
            "other machines reach a listener, and tokens travel to it unencrypted; give --tls-cert and --tls-key"
        );
    }
}

/// Looks at the files again and again, for ever.
pub(super) async fn watch(tls: Arc<Tls>) {
    let mut watched = Watched { tls, last_error: String::new() };
    loop {
        tokio::time::sleep(LOOK).await;
        watched.look();
    }
}

struct Watched {
    tls: Arc<Tls>,
    /// What was said last, so that it is said once.
    last_error: String,
}

impl Watched {
    fn look(&mut self) {
        let looked = self.tls.refresh();
        let error = looked.as_ref().err().map(ToString::to_string).unwrap_or_default();
        if error.is_empty() || error != self.last_error {
            report(&looked);
        }
        self.last_error = error;
    }
}

/// Looks at once.
pub(super) fn look_now(tls: &Tls) {
    report(&tls.refresh());
}

fn report(looked: &Result<bool, TlsError>) {
    match looked {
        Ok(true) => tracing::info!("new connections get the new certificate"),
        Ok(false) => {}
        // One of two files may have been replaced a moment before the other.
        Err(error) => tracing::error!("the certificate stays as it was: {error}"),
    }
}
