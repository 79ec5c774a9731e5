//! The history, which is loaded into the data directory by a separate pipeline before the server opens the directory.
//!
//! Requests go to the routes of the receivers within this process, so that they are handled like those of any client;
//! only the socket is missing.
//!
//! Invariants: the history begins at the newest stored event, if there is one, and ends less than a second before loading
//! ends. If loading is interrupted, the next start continues it.

use super::batch::{self, Batch};
use crate::cli::terminal::{self, format_count};
use crate::commands::running_pipeline::RunningPipeline;
use crate::commands::serve;
use anyhow::Context;
use arrow::array::AsArray;
use arrow::datatypes::TimestampMicrosecondType;
use auth::Authenticator;
use axum::body::Body;
use collector::receivers;
use demo::{Signal, World};
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::Arc;
use std::time::{Duration, Instant};
use store::delta::MaintenanceMode;
use store::{DataDirectory, Table};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// The maximum number of calls a second in the history, in an average hour of a working day: a week at this rate is
/// loaded in seconds. Below it, history and live traffic have the same rate.
const MOST_CALLS_PER_SECOND: f64 = 4.0;
const SECOND: i64 = 1_000_000;
/// The length of the time span that is generated at once.
const BLOCK: i64 = 10 * 60 * SECOND;
/// The size of a request, and the number of concurrent requests.
const BATCH_BYTES: usize = 256 << 10;
const MAX_IN_FLIGHT: usize = 4;
/// The time for which a request is retried when the pipeline has no capacity, and the pause between two attempts.
const RETRY_FOR: Duration = Duration::from_secs(30);
const RETRY_AFTER: Duration = Duration::from_millis(100);
/// The shortest gap that is filled.
const SHORTEST_GAP: i64 = SECOND;

const BAR: &str = "{msg} [{bar:30}] {percent} % of {human_len} calls, {eta} left";

/// The parameters of the history.
pub(super) struct Plan {
    pub(super) world: World,
    /// The length of the history.
    pub(super) length: Duration,
    /// The number of calls a second, in an average hour of a working day, of the live traffic that follows.
    pub(super) rate: f64,
}

/// A time span and the number of its calls.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Block {
    from: i64,
    to: i64,
    calls: u64,
}

impl Plan {
    /// Returns the blocks between two times, in order.
    fn blocks(&self, from: i64, to: i64) -> Vec<Block> {
        let mut blocks = Vec::new();
        let (mut at, mut fraction) = (from, 0.0);
        while at < to {
            let end = (at + BLOCK).min(to);
            fraction += self.calls_per_second(at) * (end - at) as f64 / SECOND as f64;
            blocks.push(Block { from: at, to: end, calls: fraction as u64 });
            fraction = fraction.fract();
            at = end;
        }
        blocks
    }

    fn calls_per_second(&self, at: i64) -> f64 {
        self.rate.min(MOST_CALLS_PER_SECOND) * World::activity(at) as f64 / 1_000.0
    }
}

/// Loads the missing history. Returns the time up to which there is traffic now.
pub(super) fn load(
    plan: &Plan,
    loaded_until: i64,
    server: &serve::Arguments,
    directory: &DataDirectory,
    runtime: &Runtime,
) -> anyhow::Result<i64> {
    let began = Instant::now();
    let store = {
        let _context = runtime.enter();
        server.open_pipeline(directory, MaintenanceMode::CheckpointsOnly)?
    };
    let now = micros_now();
    let wanted = now - i64::try_from(plan.length.as_micros()).unwrap_or(i64::MAX);
    let stored = loaded_until.max(newest_event(&store).unwrap_or_default());
    let from = stored.max(wanted).min(now);
    let result = runtime.block_on(send_until_now(plan, from, &store));
    store.pipeline.close();
    store.maintenance.stop();
    let (records, until) = result.context("the history could not be loaded")?;
    if until > from {
        let from = jiff::Timestamp::from_microsecond(from).unwrap_or_default();
        terminal::print_note(&format!(
            "loaded the history since {from:.0}: {} in {:.1} s",
            format_count(records, "record"),
            began.elapsed().as_secs_f64()
        ));
    }
    Ok(until)
}

fn micros_now() -> i64 {
    jiff::Timestamp::now().as_microsecond()
}

/// Returns the time of the newest event in the tables and in the buffer.
fn newest_event(store: &RunningPipeline) -> Option<i64> {
    let files = store.maintenance.delta().map(|delta| delta.files(Table::Events));
    let of_files = files.iter().flat_map(|files| &files.files);
    let flushed = of_files.filter_map(|file| Some(file.statistics.times("time")?.1)).max();
    let buffered = store.pipeline.hot().snapshot().records.into_iter().filter_map(|record| {
        let batch = record.current_batch(Table::Events).ok().flatten()?;
        let times = batch.column_by_name("time")?.as_primitive_opt::<TimestampMicrosecondType>()?;
        arrow::compute::max(times)
    });
    flushed.max(buffered.max())
}

/// Sends the traffic since a time through the pipeline. Sending takes a while, so the traffic of that while follows, until
/// nothing is missing. Returns the number of records, and the time up to which there is traffic.
async fn send_until_now(plan: &Plan, from: i64, store: &RunningPipeline) -> anyhow::Result<(u64, i64)> {
    let authenticator = Arc::new(Authenticator::without_tokens(true));
    let routes = receivers::routers(store.pipeline.clone(), &authenticator).http;
    let service = TowerToHyperService::new(routes);
    let bar = progress_bar();
    let (mut later, mut records, mut tasks) = (Vec::new(), 0, JoinSet::new());
    let (mut until, mut now) = (from, micros_now());
    while now - until >= SHORTEST_GAP {
        let blocks = plan.blocks(until, now);
        bar.inc_length(blocks.iter().map(|block| block.calls).sum());
        for block in &blocks {
            let signals = play(plan, block, &mut later);
            records += signals.len() as u64;
            for batch in batch::pack(signals, BATCH_BYTES) {
                if tasks.len() >= MAX_IN_FLIGHT {
                    finish_one(&mut tasks).await?;
                }
                tasks.spawn(post(service.clone(), batch));
            }
            bar.inc(block.calls);
        }
        while !tasks.is_empty() {
            finish_one(&mut tasks).await?;
        }
        (until, now) = (now, micros_now());
    }
    bar.finish_and_clear();
    Ok((records, until))
}

/// Returns the signals of a block in order of time, and keeps later ones in `later` for the next block.
fn play(plan: &Plan, block: &Block, later: &mut Vec<Signal>) -> Vec<Signal> {
    let mut signals = std::mem::take(later);
    plan.world.calls(block.from, block.to, block.calls, &mut signals);
    signals.sort_by_key(|signal| signal.micros);
    *later = signals.split_off(signals.partition_point(|signal| signal.micros < block.to));
    signals
}

async fn finish_one(tasks: &mut JoinSet<anyhow::Result<()>>) -> anyhow::Result<()> {
    match tasks.join_next().await {
        Some(done) => done?,
        None => Ok(()),
    }
}

/// Posts a batch, and retries it while the pipeline has no capacity for it.
async fn post(service: TowerToHyperService<axum::Router>, batch: Batch) -> anyhow::Result<()> {
    let began = Instant::now();
    loop {
        let request = Request::post(batch.kind.path())
            .header(HOST, "localhost")
            .header(CONTENT_TYPE, batch.kind.content_type())
            .body(Body::from(batch.body.clone()))?;
        let response = service.call(request).await?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let is_temporary = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status);
        if !is_temporary || began.elapsed() > RETRY_FOR {
            let body = response.into_body().collect().await?.to_bytes();
            anyhow::bail!("a request was answered {status}: {}", String::from_utf8_lossy(&body).trim());
        }
        tokio::time::sleep(RETRY_AFTER).await;
    }
}

/// Returns a progress bar, which is drawn only on a terminal.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new(0);
    let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style.progress_chars("=> ")).with_message("loading the history")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600 * SECOND;
    const DAY: i64 = 24 * HOUR;
    /// The time of a Monday at midnight.
    const MONDAY: i64 = 1_793_577_600 * SECOND;

    fn plan(rate: f64) -> Plan {
        Plan { world: World::new(1), length: Duration::from_secs(1), rate }
    }

    fn calls(blocks: &[Block]) -> u64 {
        blocks.iter().map(|block| block.calls).sum()
    }

    #[test]
    fn a_week_has_a_million_calls_without_a_gap() {
        let blocks = plan(2.0).blocks(MONDAY, MONDAY + 7 * DAY);
        assert!((950_000..1_050_000).contains(&calls(&blocks)), "{}", calls(&blocks));
        assert!(blocks.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert_eq!((blocks[0].from, blocks[blocks.len() - 1].to), (MONDAY, MONDAY + 7 * DAY));
    }

    #[test]
    fn the_history_is_as_busy_as_live_up_to_a_rate_that_loads_in_seconds() {
        let last_ten_minutes = |rate: f64| {
            let blocks = plan(rate).blocks(MONDAY, MONDAY + 12 * HOUR);
            blocks.last().map_or(0, |block| block.calls) as f64
        };
        let live = |rate: f64| rate * World::activity(MONDAY + 12 * HOUR) as f64 / 1_000.0 * 600.0;
        assert!((last_ten_minutes(2.0) / live(2.0) - 1.0).abs() < 0.05);
        assert!(last_ten_minutes(1_000.0) < live(5.0));
        assert!(plan(2.0).blocks(MONDAY, MONDAY).is_empty());
    }

    #[test]
    fn what_comes_later_is_kept_for_the_next_block() {
        let (plan, mut later) = (plan(2.0), Vec::new());
        let mut times = Vec::new();
        for block in plan.blocks(MONDAY, MONDAY + 2 * HOUR) {
            let signals = play(&plan, &block, &mut later);
            assert!(signals.iter().all(|signal| (block.from..block.to).contains(&signal.micros)));
            times.extend(signals.into_iter().map(|signal| signal.micros));
        }
        assert!(times.is_sorted() && times.len() > 4_000);
    }
}
