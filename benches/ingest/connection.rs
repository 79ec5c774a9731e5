//! Persistent connections: HTTP/1.1 written by hand, and gRPC over `h2`. Both do as little as possible, so that the
//! server is what is measured.

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use h2::client::SendRequest;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The target of requests, and their headers.
#[derive(Clone)]
pub(crate) enum Target {
    /// The head of the request, up to the length of the body.
    Http { address: SocketAddr, head: String },
    /// The path of the call, and the encoding of its messages.
    Grpc { address: SocketAddr, path: &'static str, encoding: &'static str },
}

pub(crate) enum Connection {
    Http { stream: TcpStream, head: String, buffer: Vec<u8> },
    Grpc { sender: SendRequest<Bytes>, request: http::Request<()> },
}

impl Connection {
    pub(crate) async fn open(target: &Target) -> anyhow::Result<Self> {
        match target {
            Target::Http { address, head } => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Ok(Self::Http { stream, head: head.clone(), buffer: Vec::new() })
            }
            Target::Grpc { address, path, encoding } => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                let (sender, connection) = h2::client::handshake(stream).await?;
                tokio::spawn(connection);
                let request = http::Request::post(format!("http://{address}{path}"))
                    .version(http::Version::HTTP_2)
                    .header("content-type", "application/grpc")
                    .header("te", "trailers")
                    .header("grpc-encoding", *encoding);
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

async fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> anyhow::Result<()> {
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
