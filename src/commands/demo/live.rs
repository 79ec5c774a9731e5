//! The live traffic: several times a second the world is asked what has happened since, and that is sent.
//!
//! What always holds: an error is logged once, and again only after something has arrived in between; nothing is sent
//! before its time.

use super::batch;
use super::directory::DemoState;
use super::sender::Sender;
use crate::cli::terminal;
use demo::{INCIDENT_STEPS, Signal, World};
use std::pin::pin;
use std::time::Duration;
use store::DataDirectory;
use tokio::time::{Instant, MissedTickBehavior, interval};

const TICK: Duration = Duration::from_millis(250);
/// After a longer pause, such as a laptop's sleep, what was missed is left out.
const LONGEST_GAP_US: i64 = 5_000_000;
/// How often the state is written.
const SAVE_EVERY: Duration = Duration::from_secs(5);
const BATCH_BYTES: usize = 1 << 20;

/// The generator beside the server.
pub(super) struct LiveTraffic {
    pub(super) world: World,
    /// When the incident starts, if there is one.
    pub(super) incident_at: Option<i64>,
    /// Calls a second.
    pub(super) rate: f64,
    pub(super) state: DemoState,
    pub(super) directory: DataDirectory,
    pub(super) sender: Sender,
}

/// What is waiting, and what was said.
#[derive(Default)]
struct Progress {
    /// Signals whose time has not come.
    waiting: Vec<Signal>,
    /// The part of a call that is still owed.
    fraction: f64,
    steps_told: usize,
    is_failing: bool,
}

impl LiveTraffic {
    /// Sends until the server stops.
    pub(super) async fn run(mut self, shutdown: impl Future<Output = ()>) {
        let mut shutdown = pin!(shutdown);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut progress, mut saved_at) = (Progress::default(), Instant::now());
        loop {
            tokio::select! {
                () = &mut shutdown => break,
                _ = tick.tick() => {}
            }
            let now = jiff::Timestamp::now().as_microsecond();
            self.tell_steps(now, &mut progress);
            let due = self.due(now, &mut progress);
            tokio::select! {
                () = &mut shutdown => break,
                () = self.send(due, &mut progress) => {}
            }
            if saved_at.elapsed() >= SAVE_EVERY {
                saved_at = Instant::now();
                self.save();
            }
        }
        self.save();
    }

    /// Returns the signals whose time has come, and goes on from there.
    fn due(&mut self, now: i64, progress: &mut Progress) -> Vec<Signal> {
        let from = self.state.loaded_until.max(now - LONGEST_GAP_US).min(now);
        progress.fraction += self.rate * (now - from) as f64 / 1e6;
        self.world.calls(from, now, progress.fraction as u64, &mut progress.waiting);
        progress.fraction = progress.fraction.fract();
        progress.waiting.sort_by_key(|signal| signal.micros);
        self.state.loaded_until = now;
        let later = progress.waiting.partition_point(|signal| signal.micros <= now);
        let waiting = progress.waiting.split_off(later);
        std::mem::replace(&mut progress.waiting, waiting)
    }

    async fn send(&self, due: Vec<Signal>, progress: &mut Progress) {
        for batch in batch::pack(due, BATCH_BYTES) {
            match self.sender.send(&batch).await {
                Ok(()) => progress.is_failing = false,
                Err(error) if !progress.is_failing => {
                    progress.is_failing = true;
                    tracing::warn!("live traffic of the demo does not arrive: {error:#}");
                }
                Err(_) => {}
            }
        }
    }

    /// Prints the steps of the incident that have begun.
    fn tell_steps(&self, now: i64, progress: &mut Progress) {
        let Some(incident_at) = self.incident_at else { return };
        for step in &INCIDENT_STEPS[progress.steps_told..] {
            let at = incident_at + step.after_micros;
            if at > now {
                return;
            }
            let time = jiff::Timestamp::from_microsecond(at).unwrap_or_default();
            terminal::print_note(&format!("{time:.0}  {}", step.text));
            progress.steps_told += 1;
        }
    }

    /// Without the state the next start asks the tables, so a disk that refuses is no reason to stop.
    fn save(&self) {
        if let Err(error) = self.state.write(&self.directory) {
            tracing::debug!("the state of the demo is not written: {error}");
        }
    }
}
