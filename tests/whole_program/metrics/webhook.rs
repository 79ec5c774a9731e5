//! A receiver of Alertmanager's notifications.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Listens until the test ends.
pub(super) struct Webhook {
    pub(super) address: SocketAddr,
    notifications: Receiver<Value>,
}

impl Webhook {
    pub(super) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, notifications) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let sender = sender.clone();
                std::thread::spawn(move || answer(&stream, &sender));
            }
        });
        Self { address, notifications }
    }

    /// Returns the messages that arrived since the last call, each as it was sent: the alerts of a group.
    pub(super) fn messages(&self) -> Vec<Value> {
        self.notifications.try_iter().collect()
    }
}

fn answer(stream: &TcpStream, sender: &Sender<Value>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        sender.send(serde_json::from_slice(&body).ok()?).ok()?;
        { stream }.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
    }
}
