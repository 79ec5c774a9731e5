//! TLS: what every listener encrypts with, and how that may change while it listens.
//!
//! What always holds:
//!
//! - Files that cannot be used change nothing: a start fails, and what is running keeps what it has.
//! - A connection keeps what it began with; the next one gets what is newest.
//! - Nothing said about a bad file quotes it.

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
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use x509_certificate::X509Certificate;

pub use tokio_rustls::server::TlsStream;

/// How a message of TLS begins: nothing else that is spoken here does.
pub const FIRST_BYTE: u8 = 0x16;

/// The versions that are spoken.
const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS13, &rustls::version::TLS12];

/// Where a server's certificate is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// The certificate, and those between it and an authority, in PEM form.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// The authorities of clients; with them, a client must have a certificate of theirs.
    pub client_authorities: Option<PathBuf>,
}

/// What is spoken inside: clients may name it while they shake hands, and must then name ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// HTTP, in either version.
    Http,
    /// `PostgreSQL`'s.
    Postgres,
}

impl Protocol {
    fn names(self) -> Vec<Vec<u8>> {
        match self {
            Self::Http => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Self::Postgres => vec![b"postgresql".to_vec()],
        }
    }
}

/// Why files cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// One cannot be read.
    #[error("cannot read {what} '{}': {error}", file.display())]
    Unreadable {
        /// What it should hold.
        what: &'static str,
        /// Its name.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// One holds something else.
    #[error("'{}' holds {what} in no form that can be read: PEM is wanted, as in -----BEGIN ...-----", file.display())]
    NotPem {
        /// What it should hold.
        what: &'static str,
        /// Its name.
        file: PathBuf,
    },
    /// They do not belong together, or are of a kind that is not spoken.
    #[error("the certificate '{}' and the key '{}' cannot be used: {error}", certificate.display(), key.display())]
    Unfit {
        /// The certificate's file.
        certificate: PathBuf,
        /// The key's file.
        key: PathBuf,
        /// Why.
        error: rustls::Error,
    },
    /// The authorities cannot be used.
    #[error("the authorities of clients in '{}' cannot be used: {error}", file.display())]
    Authorities {
        /// Their file.
        file: PathBuf,
        /// Why.
        error: String,
    },
}

/// What listeners encrypt with.
#[derive(Debug)]
pub struct Tls {
    files: Files,
    current: RwLock<Arc<Current>>,
    failed: AtomicU64,
}

/// What was read last.
#[derive(Debug)]
struct Current {
    http: Arc<ServerConfig>,
    postgres: Arc<ServerConfig>,
    /// When the certificate ends, in seconds since 1970.
    expires: Option<i64>,
    /// Of all that was read, to know when it has changed.
    digest: Vec<u8>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// When one of them cannot be used.
    pub fn load(files: Files) -> Result<Self, TlsError> {
        let current = Arc::new(Read::new(&files)?.configure(&files)?);
        Ok(Self { files, current: RwLock::new(current), failed: AtomicU64::new(0) })
    }

    /// Reads the files again, and uses them if they have changed: then this is true.
    ///
    /// # Errors
    /// When one of them cannot be used; everything stays as it is.
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let read = Read::new(&self.files)?;
        if read.digest() == self.current().digest {
            return Ok(false);
        }
        let current = Arc::new(read.configure(&self.files)?);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
        Ok(true)
    }

    /// Shakes hands with a client.
    ///
    /// # Errors
    /// When that fails, or takes longer than `limit`; it is counted.
    pub async fn accept<S>(&self, stream: S, protocol: Protocol, limit: Duration) -> io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let current = self.current();
        let config = match protocol {
            Protocol::Http => &current.http,
            Protocol::Postgres => &current.postgres,
        };
        let accepted =
            tokio::time::timeout(limit, TlsAcceptor::from(Arc::clone(config)).accept(stream)).await;
        accepted.map_err(io::Error::from).flatten().inspect_err(|_| self.count_failure())
    }

    /// Counts a connection that was not encrypted.
    pub fn count_failure(&self) {
        self.failed.fetch_add(1, Relaxed);
    }

    /// Connections that did not get as far as a request.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failed.load(Relaxed)
    }

    /// When the certificate ends, in seconds since 1970, if it says so in a way that can be read.
    #[must_use]
    pub fn expires(&self) -> Option<i64> {
        self.current().expires
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A listener, and what it encrypts with.
#[derive(Debug)]
pub struct Listener {
    /// Where connections come in.
    pub socket: TcpListener,
    /// Without, they are as they come.
    pub tls: Option<Arc<Tls>>,
}

/// The files as they are at one moment.
struct Read {
    certificate: Vec<u8>,
    key: Vec<u8>,
    client_authorities: Option<Vec<u8>>,
}

const CERTIFICATE: &str = "the certificate";
const KEY: &str = "the key";
const AUTHORITIES: &str = "the authorities of clients";

impl Read {
    fn new(files: &Files) -> Result<Self, TlsError> {
        let read = |what, file: &Path| {
            std::fs::read(file).map_err(|error| TlsError::Unreadable { what, file: file.to_owned(), error })
        };
        Ok(Self {
            certificate: read(CERTIFICATE, &files.certificate)?,
            key: read(KEY, &files.key)?,
            client_authorities: files
                .client_authorities
                .as_deref()
                .map(|file| read(AUTHORITIES, file))
                .transpose()?,
        })
    }

    fn digest(&self) -> Vec<u8> {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in [&self.certificate, &self.key, self.client_authorities.as_ref().unwrap_or(&Vec::new())] {
            context.update(&part.len().to_le_bytes());
            context.update(part);
        }
        context.finish().as_ref().to_vec()
    }

    fn configure(&self, files: &Files) -> Result<Current, TlsError> {
        let chain = certificates(&self.certificate, CERTIFICATE, &files.certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| TlsError::NotPem { what: KEY, file: files.key.clone() })?;
        let expires = chain.first().and_then(|leaf| X509Certificate::from_der(leaf).ok());
        let expires = expires.map(|leaf| leaf.validity_not_after().timestamp());
        let unfit =
            |error| TlsError::Unfit { certificate: files.certificate.clone(), key: files.key.clone(), error };
        let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&VERSIONS)
            .map_err(unfit)?;
        let builder = match self.client_authorities.as_deref().zip(files.client_authorities.as_deref()) {
            Some((authorities, file)) => builder.with_client_cert_verifier(clients_of(authorities, file)?),
            None => builder.with_no_client_auth(),
        };
        let config = builder.with_single_cert(chain, key).map_err(unfit)?;
        let speaking = |protocol: Protocol| {
            let mut config = config.clone();
            config.alpn_protocols = protocol.names();
            Arc::new(config)
        };
        Ok(Current {
            http: speaking(Protocol::Http),
            postgres: speaking(Protocol::Postgres),
            expires,
            digest: self.digest(),
        })
    }
}

/// The certificates in a text; at least one.
fn certificates(
    text: &[u8],
    what: &'static str,
    file: &Path,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text).collect();
    let found = found.ok().filter(|found| !found.is_empty());
    found.ok_or_else(|| TlsError::NotPem { what, file: file.to_owned() })
}

/// Lets in whoever has a certificate of these authorities.
fn clients_of(
    authorities: &[u8],
    file: &Path,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    let refused = |error: &dyn std::fmt::Display| TlsError::Authorities {
        file: file.to_owned(),
        error: error.to_string(),
    };
    let mut roots = RootCertStore::empty();
    for authority in certificates(authorities, AUTHORITIES, file)? {
        roots.add(authority).map_err(|error| refused(&error))?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(default_provider()))
        .build()
        .map_err(|error| refused(&error))
}
