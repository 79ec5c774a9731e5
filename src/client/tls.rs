//! TLS of the HTTP client: the trusted authorities, and the client certificate.

use anyhow::Context;
use clap::ValueHint;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{CertificateError, ClientConfig, RootCertStore};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The TLS options of the HTTP client.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ClientTlsArgs {
    /// Over https, trust these authorities (PEM) instead of the system's.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_CA", value_hint = ValueHint::FilePath)]
    ca: Option<PathBuf>,
    /// Over https, send this client certificate (PEM) if the server requires one.
    #[arg(long, value_name = "FILE", env = "FAULTLINE_CLIENT_CERT", requires = "client_key", value_hint = ValueHint::FilePath)]
    client_cert: Option<PathBuf>,
    /// The private key of the client certificate (PEM).
    #[arg(long, value_name = "FILE", env = "FAULTLINE_CLIENT_KEY", requires = "client_cert", value_hint = ValueHint::FilePath)]
    client_key: Option<PathBuf>,
}

impl ClientTlsArgs {
    /// Returns the TLS configuration of a connection. Without https, no file is read.
    pub(super) fn client_config(&self, is_https: bool) -> anyhow::Result<ClientConfig> {
        let roots = if is_https { self.roots()? } else { RootCertStore::empty() };
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        match self.client_cert.as_deref().zip(self.client_key.as_deref()).filter(|_| is_https) {
            Some((certificate, key)) => {
                let chain = certificates(certificate)?;
                let own = PrivateKeyDer::from_pem_file(key)
                    .with_context(|| format!("cannot read a key in PEM form from '{}'", key.display()))?;
                builder.with_client_auth_cert(chain, own).with_context(|| {
                    let (certificate, key) = (certificate.display(), key.display());
                    format!("the certificate '{certificate}' and the key '{key}' cannot be used")
                })
            }
            None => Ok(builder.with_no_client_auth()),
        }
    }

    fn roots(&self) -> anyhow::Result<RootCertStore> {
        let mut roots = RootCertStore::empty();
        match &self.ca {
            Some(file) => {
                for authority in certificates(file)? {
                    roots.add(authority).with_context(|| format!("'{}' cannot be used", file.display()))?;
                }
            }
            None => drop(roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs)),
        }
        anyhow::ensure!(
            !roots.is_empty(),
            "this machine knows no authorities of certificates; give one with --ca"
        );
        Ok(roots)
    }
}

/// Reads the certificates of a file; there must be at least one.
fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let unreadable = || format!("cannot read certificates in PEM form from '{}'", file.display());
    let found: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).with_context(unreadable)?.collect();
    let found = found.with_context(unreadable)?;
    anyhow::ensure!(!found.is_empty(), "there is no certificate in PEM form in '{}'", file.display());
    Ok(found)
}

/// Returns the remedy for a failed handshake, or `None` for other errors.
pub(super) fn remedy(error: &(dyn Error + 'static)) -> Option<&'static str> {
    find_tls_error(error).map(tls_remedy)
}

/// Finds the TLS error inside another error, at any depth.
fn find_tls_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e rustls::Error> {
    // IO errors do not return the error they wrap from `source`.
    let inside = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
    let inside = inside.map(|inside| inside as &(dyn Error + 'static));
    error.downcast_ref().or_else(|| find_tls_error(inside.or_else(|| error.source())?))
}

fn tls_remedy(error: &rustls::Error) -> &'static str {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "give the certificate of its authority with --ca"
        }
        rustls::Error::InvalidCertificate(
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
        ) => "name the server as its certificate does",
        rustls::Error::InvalidCertificate(_) => "its certificate has to be replaced",
        rustls::Error::InvalidMessage(_) => "it does not speak TLS: try http://",
        rustls::Error::AlertReceived(_) => {
            "it may want a certificate: give one with --client-cert and --client-key"
        }
        _ => "it could not be agreed how to encrypt",
    }
}
