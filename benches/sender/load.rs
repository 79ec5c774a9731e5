//! Generates the load: several connections, each with one request at a time.

use super::bodies::{Bodies, RECORDS};
use super::connection::{Connection, Target};
use std::cell::RefCell;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

const CONNECTIONS: usize = 8;

/// The rate at which to send.
#[derive(Clone, Copy)]
pub(crate) enum Pace {
    /// Each request follows the response to the one before.
    Top,
    /// The number of requests per second, which are due at fixed times, whether or not responses arrive.
    Requests(f64),
}

/// The requests that were sent and acknowledged.
pub(crate) struct Loaded {
    elapsed: Duration,
    /// The durations from when a request was due to its response, sorted.
    times: Vec<Duration>,
}

impl Loaded {
    pub(crate) fn elapsed(&self) -> Duration {
        self.elapsed
    }

    pub(crate) fn requests(&self) -> usize {
        self.times.len()
    }

    pub(crate) fn records(&self) -> f64 {
        (self.requests() * RECORDS) as f64
    }

    /// Returns the number of requests per second.
    pub(crate) fn rate(&self) -> f64 {
        self.requests() as f64 / self.elapsed.as_secs_f64()
    }

    /// Returns the response time that this share of requests did not exceed.
    pub(crate) fn time(&self, share: f64) -> Duration {
        let place = (self.times.len() as f64 * share) as usize;
        self.times.get(place.min(self.times.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

/// Sends for a while, then waits for the outstanding responses.
pub(crate) async fn run(
    target: &Target,
    bodies: &mut Bodies,
    pace: Pace,
    duration: Duration,
) -> anyhow::Result<Loaded> {
    run_over(CONNECTIONS, target, bodies, pace, duration).await
}

/// Sends over a number of connections.
pub(crate) async fn run_over(
    count: usize,
    target: &Target,
    bodies: &mut Bodies,
    pace: Pace,
    duration: Duration,
) -> anyhow::Result<Loaded> {
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(Connection::open(target).await?);
    }
    let begin = Instant::now();
    let schedule = Schedule { pace, begin, end: begin + duration, connections: count };
    let bodies = RefCell::new(bodies);
    let sending = connections.into_iter().enumerate();
    let sending = sending.map(|(number, connection)| send_all(connection, number, schedule, &bodies));
    let times = futures_util::future::try_join_all(sending).await?;
    let elapsed = begin.elapsed();
    let mut times = times.concat();
    times.sort_unstable();
    Ok(Loaded { elapsed, times })
}

#[derive(Clone, Copy)]
struct Schedule {
    pace: Pace,
    begin: Instant,
    end: Instant,
    connections: usize,
}

impl Schedule {
    /// Returns the time when a connection's request is due; the connections take turns.
    fn due(&self, connection: usize, request: usize) -> Instant {
        match self.pace {
            Pace::Top => Instant::now(),
            Pace::Requests(rate) => {
                self.begin + Duration::from_secs_f64((request * self.connections + connection) as f64 / rate)
            }
        }
    }
}

async fn send_all(
    mut connection: Connection,
    number: usize,
    schedule: Schedule,
    bodies: &RefCell<&mut Bodies>,
) -> anyhow::Result<Vec<Duration>> {
    let mut times = Vec::new();
    loop {
        let due = schedule.due(number, times.len());
        if due >= schedule.end {
            return Ok(times);
        }
        sleep_until(due).await;
        let body = bodies.borrow_mut().next();
        connection.send(body).await?;
        times.push(due.elapsed());
    }
}
