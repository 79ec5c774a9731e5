//! Senders that keep a server busy until it is gone or they are told to stop.

use super::client::Connection;
use super::ledger::{Batch, Ledger};
use crate::whole_program::server::{Answer, ask};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const SENDERS: usize = 4;
/// The maximum time of one response, and so of a whole round, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The number of threads that send.
pub(crate) struct Load {
    ledger: Arc<Ledger>,
    enough: Arc<AtomicBool>,
    senders: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts the senders. Half of them keep their connection, and half open one for each request. The first begins
    /// with the keyed batches that earlier servers left unanswered. `name` keeps their ids apart from those of other
    /// senders.
    pub(crate) fn start(address: SocketAddr, ledger: &Arc<Ledger>, name: &str) -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let mut retries = ledger.to_retry();
        let spawn = |number| {
            let sender = Sender {
                address,
                ledger: Arc::clone(ledger),
                enough: Arc::clone(&enough),
                connection: None,
                keeps_connection: number % 2 == 0,
            };
            let (name, retries) = (format!("{name}.s{number}"), std::mem::take(&mut retries));
            std::thread::spawn(move || sender.run(&name, retries))
        };
        let senders = (0..SENDERS).map(spawn).collect();
        Self { ledger: Arc::clone(ledger), enough, senders }
    }

    /// Waits until this many more batches were acknowledged, or until another condition holds.
    pub(crate) fn until(&self, more: usize, mut or: impl FnMut() -> bool) {
        let (goal, began) = (self.ledger.acknowledged() + more, Instant::now());
        while self.ledger.acknowledged() < goal && !or() {
            assert!(began.elapsed() < PATIENCE, "the load makes no progress");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stops the senders, and waits for them. They also stop when the server is gone.
    pub(crate) fn end(self) {
        self.enough.store(true, Ordering::Relaxed);
        for sender in self.senders {
            sender.join().expect("a sender ends without a panic");
        }
    }
}

struct Sender {
    address: SocketAddr,
    ledger: Arc<Ledger>,
    enough: Arc<AtomicBool>,
    connection: Option<Connection>,
    keeps_connection: bool,
}

impl Sender {
    fn run(mut self, name: &str, retries: Vec<Batch>) {
        let fresh = (0..).map(|n: usize| Batch {
            name: format!("{name}.n{n}"),
            lines: 1 + n % 4,
            is_keyed: n.is_multiple_of(3),
            is_long: n % 7 == 5,
            is_old: false,
        });
        for batch in retries.into_iter().chain(fresh) {
            if self.enough.load(Ordering::Relaxed) || !self.send(&batch) {
                return;
            }
        }
    }

    /// Sends a batch; false when the server is gone.
    fn send(&mut self, batch: &Batch) -> bool {
        self.ledger.sending(batch);
        let Ok(answer) = self.post(batch) else { return false };
        if !self.ledger.answered(batch, &answer) {
            // The server told the sender when to retry; a test has less time.
            std::thread::sleep(Duration::from_millis(20));
        }
        true
    }

    fn post(&mut self, batch: &Batch) -> io::Result<Answer> {
        if !self.keeps_connection {
            return post_once(self.address, batch);
        }
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address)?,
        };
        let answer = connection.post(batch.key(), &batch.body())?;
        self.connection = Some(connection);
        Ok(answer)
    }
}

fn post_once(address: SocketAddr, batch: &Batch) -> io::Result<Answer> {
    let mut headers = vec![("Content-Type", "application/x-ndjson")];
    headers.extend(batch.key().map(|key| ("Idempotency-Key", key)));
    let answer = ask(address, "POST", "/v1/envelopes", &headers, batch.body().as_bytes())?;
    // The connection of a killed server can end within a response.
    match answer.header("content-length").and_then(|length| length.parse::<usize>().ok()) {
        Some(length) if answer.body.len() == length => Ok(answer),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Sends one batch and records the response, which must come.
#[track_caller]
pub(crate) fn send(address: SocketAddr, ledger: &Ledger, batch: &Batch) -> Answer {
    ledger.sending(batch);
    let answer = post_once(address, batch).expect("an answer");
    ledger.answered(batch, &answer);
    answer
}

/// Retries every batch that has a key and no acknowledgement yet, until it is acknowledged.
#[track_caller]
pub(crate) fn settle(address: SocketAddr, ledger: &Ledger) {
    let began = Instant::now();
    while let Some(batch) = ledger.to_retry().first() {
        send(address, ledger, batch);
        assert!(began.elapsed() < PATIENCE, "refused again and again: {batch:?}");
    }
}
