//! Persistent connections: HTTP/1.1 written by hand, and gRPC over `h2`. Both do as little as possible, so that the
//! server is what is measured.

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use rustls::pki_types::ServerName;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// The path of a call that exports spans.
pub(crate) const TRACES: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// What a client brings to a secured listener.
#[derive(Clone, Default)]
pub(crate) struct Security {
    pub(crate) tls: Option<Arc<rustls::ClientConfig>>,
    pub(crate) token: Option<String>,
}

/// The target of requests, and their headers.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    pub(crate) security: Security,
}

#[derive(Clone)]
pub(crate) enum Protocol {
    /// The head of the request, up to the length of the body.
    Http { head: String },
    /// The path of the call, and the encoding of its messages.
    Grpc { path: &'static str, encoding: &'static str },
}

/// A plain or an encrypted stream.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

pub(crate) enum Connection {
    Http { stream: Box<dyn Stream>, head: String, buffer: Vec<u8> },
    Grpc { sender: SendRequest<Bytes>, request: http::Request<()> },
}

impl Connection {
    pub(crate) async fn open(target: &Target) -> anyhow::Result<Self> {
        let Target { address, protocol, security } = target;
        let stream = connect(*address, security).await?;
        match protocol {
            Protocol::Http { head } => Ok(Self::Http { stream, head: head.clone(), buffer: Vec::new() }),
            Protocol::Grpc { path, encoding } => {
                let (sender, connection) = h2::client::handshake(stream).await?;
                tokio::spawn(connection);
                let scheme = if security.tls.is_some() { "https" } else { "http" };
                let mut request = http::Request::post(format!("{scheme}://{address}{path}"))
                    .version(http::Version::HTTP_2)
                    .header("content-type", "application/grpc")
                    .header("te", "trailers")
                    .header("grpc-encoding", *encoding);
                if let Some(token) = &security.token {
                    request = request.header("authorization", format!("Bearer {token}"));
                }
                Ok(Self::Grpc { sender: sender.ready().await?, request: request.body(())? })
            }
        }
    }

    /// Sends a request and waits for its response, which must be a success.
    pub(crate) async fn send(&mut self, body: Bytes) -> anyhow::Result<()> {
        match self {
            Self::Http { stream, head, buffer } => {
                let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
                stream.write_all(head.as_bytes()).await?;
                stream.write_all(&body).await?;
                read_answer(stream, buffer).await
            }
            Self::Grpc { sender, request } => call(sender, request.clone(), body).await,
        }
    }
}

async fn connect(address: SocketAddr, security: &Security) -> anyhow::Result<Box<dyn Stream>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let Some(tls) = &security.tls else { return Ok(Box::new(stream)) };
    let name = ServerName::from(address.ip());
    Ok(Box::new(TlsConnector::from(Arc::clone(tls)).connect(name, stream).await?))
}

async fn read_answer(stream: &mut Box<dyn Stream>, buffer: &mut Vec<u8>) -> anyhow::Result<()> {
    buffer.clear();
    loop {
        ensure!(stream.read_buf(buffer).await? > 0, "the connection was closed");
        let Some(end) = memchr::memmem::find(buffer, b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&buffer[..end])?.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.context("no content-length")?.trim().parse()?;
        while buffer.len() < end + 4 + length {
            ensure!(stream.read_buf(buffer).await? > 0, "the connection was closed");
        }
        ensure!(head.starts_with("http/1.1 200"), "{}", String::from_utf8_lossy(buffer));
        return Ok(());
    }
}

async fn call(
    sender: &mut SendRequest<Bytes>,
    request: http::Request<()>,
    body: Bytes,
) -> anyhow::Result<()> {
    let (answer, mut stream) = sender.send_request(request, false)?;
    stream.send_data(body, true)?;
    let answer = answer.await?;
    ensure!(!answer.headers().contains_key("grpc-status"), "{:?}", answer.headers());
    let mut body = answer.into_body();
    while let Some(data) = body.data().await {
        body.flow_control().release_capacity(data?.len())?;
    }
    match body.trailers().await?.and_then(|trailers| trailers.get("grpc-status").cloned()) {
        Some(status) if status == "0" => Ok(()),
        status => bail!("grpc-status {status:?}"),
    }
}
