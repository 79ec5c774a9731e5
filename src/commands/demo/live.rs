//! The live traffic: several times a second, the signals that the world has generated since the last time are sent.
//!
//! Invariants: an error is logged once, and again only after a request has succeeded in between; no signal is sent
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
/// The longest time span to catch up on. After a longer pause, such as a laptop's sleep, the rest is skipped.
const LONGEST_GAP_US: i64 = 5_000_000;
/// The interval at which the state is written.
const SAVE_EVERY: Duration = Duration::from_secs(5);
const BATCH_BYTES: usize = 1 << 20;

/// The generator of live traffic, which runs beside the server.
pub(super) struct LiveTraffic {
    pub(super) world: World,
    /// The start of the incident, if there is one.
    pub(super) incident_at: Option<i64>,
    /// The number of calls a second in an average hour of a working day.
    pub(super) rate: f64,
    pub(super) state: DemoState,
    pub(super) directory: DataDirectory,
    pub(super) sender: Sender,
}

/// The pending signals, and the state of the output.
#[derive(Default)]
struct Progress {
    /// The signals that are not due yet.
    waiting: Vec<Signal>,
    /// The fraction of a call that is carried over to the next tick.
    fraction: f64,
    steps_told: usize,
    is_failing: bool,
}

impl LiveTraffic {
    /// Sends traffic until the server stops.
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

    /// Generates signals up to `now`, and returns those that are due.
    fn due(&mut self, now: i64, progress: &mut Progress) -> Vec<Signal> {
        let from = self.state.loaded_until.max(now - LONGEST_GAP_US).min(now);
        progress.fraction += self.calls_per_second(now) * (now - from) as f64 / 1e6;
        self.world.calls(from, now, progress.fraction as u64, &mut progress.waiting);
        progress.fraction = progress.fraction.fract();
        progress.waiting.sort_by_key(|signal| signal.micros);
        self.state.loaded_until = now;
        let later = progress.waiting.partition_point(|signal| signal.micros <= now);
        let waiting = progress.waiting.split_off(later);
        std::mem::replace(&mut progress.waiting, waiting)
    }

    /// Returns the rate at a time, which follows the same daily rhythm as the history. An incident happens in an average
    /// hour, whatever the clock says.
    fn calls_per_second(&self, at: i64) -> f64 {
        if self.incident_at.is_some() { self.rate } else { self.rate * World::activity(at) as f64 / 1_000.0 }
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

    /// Writes the state. A failure is not fatal, because without the state the next start reads the end of the history
    /// from the tables.
    fn save(&self) {
        if let Err(error) = self.state.write(&self.directory) {
            tracing::debug!("the state of the demo is not written: {error}");
        }
    }
}
