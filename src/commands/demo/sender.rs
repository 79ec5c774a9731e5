//! Sends the live traffic to the server's own endpoints: lines over HTTP, spans and log records over gRPC.
//!
//! gRPC is framed by hand over hyper's HTTP/2 client, which the program needs anyway: a unary call consists of five
//! bytes and a message, and its status is a header or a trailer. A generated client would only add build time.

use super::batch::{Batch, Kind};
use crate::client;
use crate::commands::serve::Endpoints;
use anyhow::Context;
use bytes::{BufMut, Bytes, BytesMut};
use http::header::{AUTHORIZATION, CONTENT_TYPE, TE};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// The longest time for a response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum size of a response; responses are short.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// The prefix of a gRPC message that is not compressed.
const NOT_COMPRESSED: u8 = 0;
const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";

type HttpClient = Client<HttpConnector, Full<Bytes>>;

/// Sends requests to one server.
pub(super) struct Sender {
    http: Option<SocketAddr>,
    grpc: Option<SocketAddr>,
    http_client: HttpClient,
    grpc_client: HttpClient,
    authorization: Option<HeaderValue>,
}

impl Sender {
    /// Creates a sender. It connects when it is first used.
    pub(super) fn new(endpoints: &Endpoints) -> anyhow::Result<Self> {
        let build = |http2: bool| Client::builder(TokioExecutor::new()).http2_only(http2).build_http();
        anyhow::ensure!(
            endpoints.otlp_http.is_some() || endpoints.otlp_grpc.is_some(),
            "--listen-otlp-http and --listen-otlp-grpc are off"
        );
        Ok(Self {
            http: endpoints.otlp_http.map(reachable),
            grpc: endpoints.otlp_grpc.map(reachable),
            http_client: build(false),
            grpc_client: build(true),
            authorization: client::authorization()?,
        })
    }

    /// Sends a batch. `Ok` means that it was accepted. A batch whose endpoint is off is dropped.
    pub(super) async fn send(&self, batch: &Batch) -> anyhow::Result<()> {
        let sent = async {
            match (self.grpc.zip(batch.kind.grpc_path()), self.http) {
                (Some((address, path)), _) => self.send_grpc(address, path, &batch.body).await,
                (None, Some(address)) => self.send_http(address, batch).await,
                (None, None) => Ok(()),
            }
        };
        tokio::time::timeout(TIMEOUT, sent).await.context("no answer in time")?
    }

    async fn send_http(&self, address: SocketAddr, batch: &Batch) -> anyhow::Result<()> {
        let url = format!("http://{address}{}", batch.kind.path());
        let request = Request::post(&url).header(CONTENT_TYPE, batch.kind.content_type());
        let response = self.request(&self.http_client, request, batch.body.clone()).await?;
        let status = response.status();
        // For lines, 400 means that they were processed and that none of them is a record; every log contains such
        // noise.
        if status.is_success() || (batch.kind == Kind::Lines && status == StatusCode::BAD_REQUEST) {
            // The response is read to its end so that the connection can be reused.
            Limited::new(response.into_body(), MAX_RESPONSE_BYTES)
                .collect()
                .await
                .map_err(anyhow::Error::from_boxed)?;
            return Ok(());
        }
        anyhow::bail!("{url} answered {status}{}", remedy(status))
    }

    async fn send_grpc(&self, address: SocketAddr, path: &str, message: &[u8]) -> anyhow::Result<()> {
        let mut frame = BytesMut::with_capacity(5 + message.len());
        frame.put_u8(NOT_COMPRESSED);
        frame.put_u32(u32::try_from(message.len())?);
        frame.put_slice(message);
        let url = format!("http://{address}{path}");
        let request = Request::post(&url).header(CONTENT_TYPE, "application/grpc").header(TE, "trailers");
        let response = self.request(&self.grpc_client, request, frame.freeze()).await?;
        let (head, body) = response.into_parts();
        let body =
            Limited::new(body, MAX_RESPONSE_BYTES).collect().await.map_err(anyhow::Error::from_boxed)?;
        let trailers = body.trailers().unwrap_or(&head.headers);
        let status = header(trailers, STATUS).or(header(&head.headers, STATUS)).unwrap_or("missing");
        anyhow::ensure!(
            status == "0",
            "{url} answered with the gRPC status {status}: {}",
            header(trailers, MESSAGE).unwrap_or("no message")
        );
        Ok(())
    }

    async fn request(
        &self,
        client: &HttpClient,
        mut request: http::request::Builder,
        body: Bytes,
    ) -> anyhow::Result<Response<Incoming>> {
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        Ok(client.request(request.body(Full::new(body))?).await?)
    }
}

/// Returns the address at which this process reaches a listener, which may listen on all addresses.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the remedy for a status, if it is not obvious.
fn remedy(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            "; put a token with the scope ingest into FAULTLINE_TOKEN"
        }
        _ => "",
    }
}
