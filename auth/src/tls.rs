//! The TLS configuration of the listeners, which can be reloaded while they run.
//!
//! Invariants:
//!
//! - Unusable files change nothing: a start fails, and a running server keeps its configuration.
//! - A connection keeps the configuration it began with; the next one gets the newest.
//! - Messages about an invalid file never quote the file.

use ring::digest;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ServerConfig, WebPkiClientVerifier};
use rustls::{RootCertStore, SupportedProtocolVersion};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use x509_certificate::X509Certificate;

pub use tokio_rustls::server::TlsStream;

/// The first byte of a TLS handshake. No other protocol of the listeners begins with it.
const HANDSHAKE_BYTE: u8 = 0x16;

/// The supported protocol versions.
const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];

/// The files of a server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate followed by its intermediate certificates, in PEM format.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// The certificate authorities of clients. If set, every client needs a certificate of one of them.
    pub client_ca: Option<PathBuf>,
}

/// The protocol inside TLS. A client that uses ALPN must name it in the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlpnProtocol {
    /// HTTP/1.1 or HTTP/2.
    Http,
    /// The `PostgreSQL` protocol.
    Postgres,
}

impl AlpnProtocol {
    fn alpn_names(self) -> Vec<Vec<u8>> {
        match self {
            Self::Http => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Self::Postgres => vec![b"postgresql".to_vec()],
        }
    }
}

/// The reason why the files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {what} '{}': {error}", file.display())]
    Unreadable {
        /// The expected content of the file.
        what: &'static str,
        /// The path of the file.
        file: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// A file is not in PEM format.
    #[error(
        "'{}' does not contain {what} in PEM format; it must have a block that starts with -----BEGIN",
        file.display()
    )]
    NotPem {
        /// The expected content of the file.
        what: &'static str,
        /// The path of the file.
        file: PathBuf,
    },
    /// The certificate and the key do not belong together, or are of an unsupported kind.
    #[error("the certificate '{}' and the key '{}' cannot be used: {error}", certificate.display(), key.display())]
    InvalidCertificate {
        /// The path of the certificate.
        certificate: PathBuf,
        /// The path of the key.
        key: PathBuf,
        /// The cause.
        error: rustls::Error,
    },
    /// The certificate authorities of clients cannot be used.
    #[error("the client certificate authorities in '{}' cannot be used: {error}", file.display())]
    InvalidClientCa {
        /// The path of the file.
        file: PathBuf,
        /// The cause.
        error: String,
    },
}

/// The TLS configuration that listeners share.
#[derive(Debug)]
pub struct Tls {
    files: CertificateFiles,
    current: RwLock<Arc<LoadedConfig>>,
    failures: AtomicU64,
}

/// The configuration from the latest usable files.
#[derive(Debug)]
struct LoadedConfig {
    http: Arc<ServerConfig>,
    postgres: Arc<ServerConfig>,
    /// The time at which the certificate expires, in seconds since 1970.
    expires_at: Option<i64>,
    /// The hash of all files, to detect changes.
    digest: Vec<u8>,
}

impl Tls {
    /// Loads the files.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn load(files: CertificateFiles) -> Result<Self, TlsError> {
        let current = Arc::new(FileContents::read(&files)?.configure(&files)?);
        Ok(Self { files, current: RwLock::new(current), failures: AtomicU64::new(0) })
    }

    /// Reads the files again, and uses them if they have changed. Returns true when they have.
    ///
    /// # Errors
    /// When one of them cannot be used; then the configuration stays as it is.
    pub fn reload_if_changed(&self) -> Result<bool, TlsError> {
        let contents = FileContents::read(&self.files)?;
        if contents.digest() == self.current().digest {
            return Ok(false);
        }
        let current = Arc::new(contents.configure(&self.files)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        Ok(true)
    }

    /// Performs the handshake with a client.
    ///
    /// # Errors
    /// When the handshake fails or takes longer than `timeout`; the failure is counted.
    pub async fn accept<S>(
        &self,
        stream: S,
        protocol: AlpnProtocol,
        timeout: Duration,
    ) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let current = self.current();
        let config = match protocol {
            AlpnProtocol::Http => &current.http,
            AlpnProtocol::Postgres => &current.postgres,
        };
        let accepted =
            tokio::time::timeout(timeout, TlsAcceptor::from(Arc::clone(config)).accept(stream)).await;
        accepted.map_err(io::Error::from).flatten().inspect_err(|_| self.count_failure())
    }

    /// Counts a connection whose TLS handshake failed or that did not begin with one.
    pub fn count_failure(&self) {
        self.failures.fetch_add(1, Relaxed);
    }

    /// Returns the number of connections that failed in the TLS handshake or did not begin with one.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures.load(Relaxed)
    }

    /// Returns the time at which the certificate expires, in seconds since 1970, if it can be parsed.
    #[must_use]
    pub fn expires_at(&self) -> Option<i64> {
        self.current().expires_at
    }

    fn current(&self) -> Arc<LoadedConfig> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The first byte of a connection, as far as TLS is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstByte {
    /// The client begins a TLS handshake.
    Handshake,
    /// The client uses another protocol.
    Other,
    /// The client disconnected without sending anything, as probes of an open port do.
    Nothing,
}

/// Looks at the first byte of a connection without consuming it.
///
/// # Errors
/// When the connection fails.
pub async fn peek_first_byte(stream: &TcpStream) -> io::Result<FirstByte> {
    let mut first = [0];
    let count = stream.peek(&mut first).await?;
    Ok(match (count, first) {
        (0, _) => FirstByte::Nothing,
        (_, [HANDSHAKE_BYTE]) => FirstByte::Handshake,
        _ => FirstByte::Other,
    })
}

/// The contents of the files at one point in time.
struct FileContents {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_ca: Option<Vec<u8>>,
}

const CERTIFICATE: &str = "the certificate";
const KEY: &str = "the key";
const CLIENT_CA: &str = "the client certificate authorities";

impl FileContents {
    fn read(files: &CertificateFiles) -> Result<Self, TlsError> {
        let read = |what, file: &Path| {
            std::fs::read(file).map_err(|error| TlsError::Unreadable { what, file: file.to_owned(), error })
        };
        Ok(Self {
            certificate: read(CERTIFICATE, &files.certificate)?,
            key: read(KEY, &files.key)?,
            client_ca: files.client_ca.as_deref().map(|file| read(CLIENT_CA, file)).transpose()?,
        })
    }

    fn digest(&self) -> Vec<u8> {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in [&self.certificate, &self.key, self.client_ca.as_ref().unwrap_or(&Vec::new())] {
            context.update(&part.len().to_le_bytes());
            context.update(part);
        }
        context.finish().as_ref().to_vec()
    }

    fn configure(&self, files: &CertificateFiles) -> Result<LoadedConfig, TlsError> {
        let chain = parse_certificates(&self.certificate, CERTIFICATE, &files.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| TlsError::NotPem { what: KEY, file: files.key.clone() })?;
        let leaf = chain.first().and_then(|leaf| X509Certificate::from_der(leaf).ok());
        let expires_at = leaf.map(|leaf| leaf.validity_not_after().timestamp());
        let invalid = |error| TlsError::InvalidCertificate {
            certificate: files.certificate.clone(),
            key: files.key.clone(),
            error,
        };
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&VERSIONS)
            .map_err(invalid)?;
        let builder = match self.client_ca.as_deref().zip(files.client_ca.as_deref()) {
            Some((authorities, file)) => {
                builder.with_client_cert_verifier(client_verifier(authorities, file)?)
            }
            None => builder.with_no_client_auth(),
        };
        let config = builder.with_single_cert(chain, key).map_err(invalid)?;
        let with_alpn = |protocol: AlpnProtocol| {
            let mut config = config.clone();
            config.alpn_protocols = protocol.alpn_names();
            Arc::new(config)
        };
        Ok(LoadedConfig {
            http: with_alpn(AlpnProtocol::Http),
            postgres: with_alpn(AlpnProtocol::Postgres),
            expires_at,
            digest: self.digest(),
        })
    }
}

/// Parses the certificates of a PEM file; there must be at least one.
fn parse_certificates(
    pem: &[u8],
    what: &'static str,
    file: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let certificates = certificates.ok().filter(|certificates| !certificates.is_empty());
    certificates.ok_or_else(|| TlsError::NotPem { what, file: file.to_owned() })
}

/// Returns a verifier that accepts clients with a certificate of these authorities.
fn client_verifier(
    authorities: &[u8],
    file: &Path,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let invalid = |error: &dyn std::fmt::Display| TlsError::InvalidClientCa {
        file: file.to_owned(),
        error: error.to_string(),
    };
    let mut roots = RootCertStore::empty();
    for authority in parse_certificates(authorities, CLIENT_CA, file)? {
        roots.add(authority).map_err(|error| invalid(&error))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()))
        .build()
        .map_err(|error| invalid(&error))
}
