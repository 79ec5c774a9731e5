//! The bytes of a connection, encrypted or not: what a client asks before its first real message.
//!
//! What always holds: where there is a certificate, nothing but the wish to cancel is heard in the clear (libpq before
//! version 17 sends that unencrypted, and it holds a secret of its own); and nothing that came in the clear is taken for
//! something that came encrypted.

use super::Door;
use access::tls::{self, Protocol, Tls};
use bytes::{Buf, BytesMut};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// Where messages come from.
pub(super) type Incoming = Box<dyn AsyncRead + Send + Sync + Unpin>;
/// Where they go.
pub(super) type Outgoing = Box<dyn AsyncWrite + Send + Sync + Unpin>;

/// How long a handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// A request for encryption: its length, and a code where others have a version.
const REQUEST: [u8; 4] = [0, 0, 0, 8];
const SSL: u32 = 80_877_103;
const GSS: u32 = 80_877_104;
const YES: &[u8] = b"S";
const NO: &[u8] = b"N";

/// A connection whose encryption is agreed on.
pub(super) struct Wire {
    pub(super) incoming: Incoming,
    pub(super) outgoing: Outgoing,
    /// What has come already.
    pub(super) came: BytesMut,
    pub(super) is_encrypted: bool,
}

/// Answers a client that asks to encrypt.
pub(super) async fn agree(door: &Door, mut socket: TcpStream) -> io::Result<Wire> {
    let mut came = BytesMut::new();
    if let Some(tls) = &door.tls
        && speaks_tls(&socket).await?
    {
        return encrypted(socket, tls).await;
    }
    while let Some(asked) = request(&mut socket, &mut came).await? {
        match &door.tls {
            Some(tls) if asked == SSL => {
                if came.has_remaining() {
                    tls.count_failure();
                    let error = "something was sent in the clear behind the wish to encrypt";
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
                socket.write_all(YES).await?;
                return encrypted(socket, tls).await;
            }
            _ => socket.write_all(NO).await?,
        }
    }
    let (incoming, outgoing) = socket.into_split();
    Ok(Wire { incoming: Box::new(incoming), outgoing: Box::new(outgoing), came, is_encrypted: false })
}

/// Clients of version 17 on may shake hands without asking.
async fn speaks_tls(socket: &TcpStream) -> io::Result<bool> {
    let mut first = [0];
    socket.peek(&mut first).await?;
    Ok(first == [tls::FIRST_BYTE])
}

async fn encrypted(socket: TcpStream, tls: &Tls) -> io::Result<Wire> {
    let stream = tls.accept(socket, Protocol::Postgres, HANDSHAKE).await?;
    let (incoming, outgoing) = tokio::io::split(stream);
    let came = BytesMut::new();
    Ok(Wire { incoming: Box::new(incoming), outgoing: Box::new(outgoing), came, is_encrypted: true })
}

/// The next request for encryption; none when something else comes, or nothing more.
async fn request(socket: &mut TcpStream, came: &mut BytesMut) -> io::Result<Option<u32>> {
    loop {
        let known = came.len().min(REQUEST.len());
        if came[..known] != REQUEST[..known] {
            return Ok(None);
        }
        if came.len() >= 8 {
            let code = (&came[4..8]).get_u32();
            let is_request = code == SSL || code == GSS;
            if is_request {
                came.advance(8);
            }
            return Ok(is_request.then_some(code));
        }
        if socket.read_buf(came).await? == 0 {
            return Ok(None);
        }
    }
}
