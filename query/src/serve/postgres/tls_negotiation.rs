//! The negotiation of TLS, which precedes the startup message.
//!
//! Invariant: a listener with TLS reads nothing unencrypted except a cancel request (libpq before version 17 sends it
//! unencrypted, and it contains a secret of its own), and bytes that arrived unencrypted are never treated as bytes
//! that arrived encrypted.

use auth::tls::{self, AlpnProtocol, FirstByte, Tls};
use bytes::{Buf, BytesMut};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// The stream that messages are read from.
pub(super) type Incoming = Box<dyn AsyncRead + Send + Sync + Unpin>;
/// The stream that messages are written to.
pub(super) type Outgoing = Box<dyn AsyncWrite + Send + Sync + Unpin>;

/// The maximum duration of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The length of a request for encryption. A code follows where a startup message has the protocol version.
const REQUEST: [u8; 4] = [0, 0, 0, 8];
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const ACCEPTED: &[u8] = b"S";
const DECLINED: &[u8] = b"N";

/// A connection after the negotiation.
pub(super) struct NegotiatedStream {
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    /// The bytes that were received already.
    pub(super) received: BytesMut,
    pub(super) is_encrypted: bool,
}

/// Responds to requests for encryption, and performs the TLS handshake.
pub(super) async fn negotiate(tls: Option<&Tls>, mut socket: TcpStream) -> io::Result<NegotiatedStream> {
    let mut received = BytesMut::new();
    // Clients from version 17 on may begin the handshake without a request.
    if let Some(tls) = tls
        && tls::peek_first_byte(&socket).await? == FirstByte::Handshake
    {
        return encrypt(socket, tls).await;
    }
    while let Some(code) = next_request(&mut socket, &mut received).await? {
        match tls {
            Some(tls) if code == SSL => {
                if received.has_remaining() {
                    tls.count_failure();
                    let error = "unencrypted bytes followed the request for encryption";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
                socket.write_all(ACCEPTED).await?;
                return encrypt(socket, tls).await;
            }
            _ => socket.write_all(DECLINED).await?,
        }
    }
    let (incoming, outgoing) = socket.into_split();
    Ok(NegotiatedStream {
        incoming: Box::new(incoming),
        outgoing: Box::new(outgoing),
        received,
        is_encrypted: false,
    })
}

async fn encrypt(socket: TcpStream, tls: &Tls) -> io::Result<NegotiatedStream> {
    let stream = tls.accept(socket, AlpnProtocol::Postgres, HANDSHAKE_TIMEOUT).await?;
    let (incoming, outgoing) = tokio::io::split(stream);
    Ok(NegotiatedStream {
        incoming: Box::new(incoming),
        outgoing: Box::new(outgoing),
        received: BytesMut::new(),
        is_encrypted: true,
    })
}

/// Returns the code of the next request for encryption, or `None` when something else or nothing more arrives.
async fn next_request(socket: &mut TcpStream, received: &mut BytesMut) -> io::Result<Option<u32>> {
    loop {
        let compared = received.len().min(REQUEST.len());
        if received[..compared] != REQUEST[..compared] {
            return Ok(None);
        }
        if received.len() >= 8 {
            let code = (&received[4..8]).get_u32();
            let is_request = code == SSL || code == GSS;
            if is_request {
                received.advance(8);
            }
            return Ok(is_request.then_some(code));
        }
        if socket.read_buf(received).await? == 0 {
            return Ok(None);
        }
    }
}
