//! A sender's connection that is kept open between requests.

use crate::whole_program::server::Answer;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

pub(crate) struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub(crate) fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Posts to `/v1/envelopes` and reads the answer.
    pub(crate) fn post(&mut self, key: Option<&str>, body: &str) -> io::Result<Answer> {
        self.begin(key, body.len())?;
        self.send(body.as_bytes())?;
        self.answer()
    }

    /// Sends the head of a request whose body will have this length.
    pub(crate) fn begin(&mut self, key: Option<&str>, length: usize) -> io::Result<()> {
        let key = key.map(|key| format!("Idempotency-Key: {key}\r\n")).unwrap_or_default();
        let head = format!(
            "POST /v1/envelopes HTTP/1.1\r\nHost: faultline\r\nContent-Type: application/x-ndjson\r\n\
             {key}Content-Length: {length}\r\n\r\n"
        );
        self.send(head.as_bytes())
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads one answer, which has a length.
    pub(crate) fn answer(&mut self) -> io::Result<Answer> {
        let first = self.line()?;
        let mut head = String::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            head.push_str(&line.to_ascii_lowercase());
            head.push('\n');
        }
        let status = first.split_whitespace().nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        let mut answer = Answer { status, head, body: Vec::new() };
        let length = answer.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        answer.body.resize(length, 0);
        self.stream.read_exact(&mut answer.body)?;
        Ok(answer)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.stream.read_line(&mut line)?;
        match line.strip_suffix("\r\n") {
            Some(line) => Ok(line.to_owned()),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}
