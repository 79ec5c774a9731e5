//! Everything at once: kills, floods, hostile statements and a clock that jumps, on one data directory.
//!
//! A few rounds are part of every test run. `FAULTLINE_STORM_MINUTES=60` continues for an hour, as a nightly run would.
//! The seed of a storm is printed, and `FAULTLINE_STORM_SEED` repeats it.

use super::durability::ledger::Ledger;
use super::durability::load::{Load, settle};
use super::hostile_queries::{Grammar, Highest, Processes, assert_bounded, greedy};
use super::http_sql;
use super::retention::clock::Machine;
use super::server::ask;
use serde_json::json;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The flags of every server of the storm: frequent flushes, short queries.
const ARGUMENTS: [&str; 10] = [
    "--flush-after",
    "500ms",
    "--query-time",
    "4s",
    "--vacuum-grace",
    "30s",
    "--keep-events",
    "400d",
    "--limit-connections",
    "300",
];
/// The number of rounds of a usual run.
const ROUNDS: u64 = 3;
/// The number of rounds after which a new data directory is used, because each is read as a whole after every kill.
const LIFE: u64 = 8;
/// The number of days by which the clock jumps.
const JUMPS: [i64; 6] = [600, -600, 0, 2, -2, 40];
/// The number of idle connections.
const FLOOD: usize = 150;

/// Random numbers from a seed, so that a storm can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) % most
    }
}

/// Scenario: senders with and without keys, statements from a grammar and greedy ones, idle connections, a wall clock
/// that jumps by up to 600 days either way, and SIGKILL or SIGTERM in the middle of it; again and again.
/// Guarantee: what was acknowledged is stored once and whole, whatever the clock says; no statement ends the server or
/// passes the bounds of memory; every new server takes requests and answers queries.
#[test]
fn nothing_breaks_in_a_storm() {
    let minutes = std::env::var("FAULTLINE_STORM_MINUTES").ok().and_then(|minutes| minutes.parse().ok());
    let until = minutes.map(|minutes: f64| Instant::now() + Duration::from_secs_f64(minutes * 60.0));
    let asked = std::env::var("FAULTLINE_STORM_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = asked.unwrap_or(u64::from(std::process::id()) << 20 | 0x5eed);
    println!("FAULTLINE_STORM_SEED={seed}");
    let mut dice = Dice(seed);
    let mut sums = Sums::default();
    let (mut machine, mut ledger) = (Machine::new(), Arc::new(Ledger::default()));
    let mut round = 0;
    while until.map_or(round < ROUNDS, |until| Instant::now() < until) {
        if round > 0 && round.is_multiple_of(LIFE) {
            sums.acknowledged += ledger.acknowledged();
            (machine, ledger) = (Machine::new(), Arc::new(Ledger::default()));
        }
        storm(&machine, &ledger, &mut dice, round, &mut sums);
        ledger.check(&machine.data_dir());
        round += 1;
    }
    sums.acknowledged += ledger.acknowledged();
    let server = machine.start_with(&ARGUMENTS);
    let stored =
        http_sql::rows(&server, "SELECT count(DISTINCT request_id) AS n FROM events")[0]["n"].clone();
    assert!(stored.as_u64().is_some_and(|stored| stored > 0), "{stored}");
    assert!(server.stop().success());
    println!("{round} rounds: {sums:?}");
    assert!(sums.acknowledged > 0 && sums.statements > 0 && sums.highest.worker > 0, "{sums:?}");
}

/// The counts of a storm.
#[derive(Debug, Default)]
struct Sums {
    acknowledged: usize,
    statements: u64,
    kills: u64,
    jumps: u64,
    highest: Highest,
}

/// One server, from its start to its end.
fn storm(machine: &Machine, ledger: &Arc<Ledger>, dice: &mut Dice, round: u64, sums: &mut Sums) {
    let server = machine.start_with(&ARGUMENTS);
    settle(server.address("otlp_http"), ledger);
    let processes = Processes::watch(server.pid());
    let load = Load::start(server.address("otlp_http"), ledger, &format!("r{round}"));
    let (is_over, asked) = (AtomicBool::new(false), AtomicU64::new(0));
    let web = server.address("web");
    let seeds = [dice.below(u64::MAX), dice.below(u64::MAX)];
    std::thread::scope(|scope| {
        for seed in seeds {
            let (is_over, asked) = (&is_over, &asked);
            scope.spawn(move || keep_asking(web, seed, is_over, asked));
        }
        let _flood: Vec<_> = (0..FLOOD).filter_map(|_| TcpStream::connect(web).ok()).collect();
        for _ in 0..3 {
            load.until(1 + usize::try_from(dice.below(150)).unwrap_or(0), || false);
            let days = JUMPS[usize::try_from(dice.below(6)).unwrap_or(0)];
            machine.set(&format!("{days:+}d"));
            sums.jumps += u64::from(days != 0);
            std::thread::sleep(Duration::from_millis(dice.below(1_500)));
        }
        assert_eq!(ask(web, "GET", "/healthz", &[], b"").expect("an answer").status, 200);
        is_over.store(true, Ordering::Relaxed);
        if dice.below(4) == 0 {
            assert!(server.stop().success());
        } else {
            server.kill();
            sums.kills += 1;
        }
    });
    load.end();
    machine.set("+0");
    let highest = processes.highest();
    highest.assert_bounded();
    sums.highest = sums.highest.max(highest);
    sums.statements += asked.load(Ordering::Relaxed);
}

/// Sends queries until the storm is over, or the server has ended.
fn keep_asking(web: SocketAddr, seed: u64, is_over: &AtomicBool, asked: &AtomicU64) {
    let mut grammar = Grammar::new(seed);
    let greedy = greedy();
    for number in (seed % 16).. {
        if is_over.load(Ordering::Relaxed) {
            return;
        }
        let statement = match number % 3 {
            0 => greedy[usize::try_from(number / 3).unwrap_or(0) % greedy.len()].1.clone(),
            _ => grammar.statement(),
        };
        let body = json!({"query": statement}).to_string();
        let headers = [("Content-Type", "application/json")];
        let Ok(answer) = ask(web, "POST", "/api/v1/sql", &headers, body.as_bytes()) else { return };
        if !is_over.load(Ordering::Relaxed) {
            assert_bounded(&answer, &statement);
        }
        asked.fetch_add(1, Ordering::Relaxed);
    }
}
