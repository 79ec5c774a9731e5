//! Signals: the first SIGTERM or SIGINT requests a shutdown, and the second forces it.

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Counts the signals that request a shutdown.
pub(crate) struct ShutdownSignal {
    requested: watch::Receiver<u32>,
}

impl ShutdownSignal {
    /// Listens for SIGTERM and SIGINT from now on.
    pub(crate) fn new() -> Self {
        let (sender, requested) = watch::channel(0);
        match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
            (Ok(terminate), Ok(interrupt)) => drop(tokio::spawn(count(terminate, interrupt, sender))),
            (Err(error), _) | (_, Err(error)) => tracing::warn!("signals stop at once: {error}"),
        }
        Self { requested }
    }

    /// Completes when a shutdown is requested.
    pub(crate) fn requested(&self) -> impl Future<Output = ()> + use<> {
        after(self.requested.clone(), 1)
    }

    /// Completes when a shutdown is forced.
    pub(crate) fn forced(&self) -> impl Future<Output = ()> + use<> {
        after(self.requested.clone(), 2)
    }

    /// Runs `work` until it completes or a shutdown is forced. Returns true if it completed.
    pub(crate) async fn unless_forced(&self, work: impl Future<Output = ()>) -> bool {
        tokio::select! {
            () = work => true,
            () = self.forced() => false,
        }
    }
}

async fn count(mut terminate: Signal, mut interrupt: Signal, sender: watch::Sender<u32>) {
    loop {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        sender.send_modify(|count| *count += 1);
    }
}

/// Completes when this many signals have arrived, and never if signals cannot be received any more.
async fn after(mut requested: watch::Receiver<u32>, wanted: u32) {
    if requested.wait_for(|count| *count >= wanted).await.is_err() {
        std::future::pending::<()>().await;
    }
}
