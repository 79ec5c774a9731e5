//! Notifies the service manager of the state of the server, if it requests that (`Type=notify-reload`).

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Reports that the server listens on all addresses.
pub(super) fn ready() {
    notify("READY=1\nSTATUS=taking requests");
}

/// Reports that the settings are being read again.
pub(super) fn reloading() {
    // The service manager requires the time to match the message with a reload.
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let micros = now.tv_sec.saturating_mul(1_000_000).saturating_add(now.tv_nsec / 1_000);
    notify(&format!("RELOADING=1\nMONOTONIC_USEC={micros}"));
}

/// Reports that the server is stopping.
pub(super) fn stopping() {
    notify("STOPPING=1\nSTATUS=finishing what was begun");
}

fn notify(message: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let sent = address(&path).and_then(|address| {
        let socket = UnixDatagram::unbound()?;
        socket.send_to_addr(message.as_bytes(), &address)
    });
    if let Err(error) = sent {
        tracing::warn!("the service manager cannot be told: {error}");
    }
}

/// Returns the address of a socket that is given as a path or as a name in the abstract namespace.
fn address(path: &OsStr) -> std::io::Result<SocketAddr> {
    match path.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(path),
    }
}
