//! Measures the speed of the WAL on this machine's disk. It is not a test: run `cargo test --release -p store speed --
//! --ignored --nocapture`. It writes to the folder of `FAULTLINE_SPEED_DIR`, or to the system's folder for temporary
//! files.
use super::*;
use std::time::Instant;

fn folder() -> tempfile::TempDir {
    match std::env::var_os("FAULTLINE_SPEED_DIR") {
        Some(folder) => tempfile::tempdir_in(folder).unwrap(),
        None => tempfile::tempdir().unwrap(),
    }
}

/// Returns the CPU time of this thread, which other work on the machine affects less than the elapsed time.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

#[test]
#[ignore = "measures; see the module"]
fn speed() {
    for (record, in_flight, records) in [
        (100 << 10, 1, 2000),
        (100 << 10, 16, 10_000),
        (1 << 10, 1, 2000),
        (1 << 10, 256, 200_000),
        (1 << 20, 4, 1000),
    ] {
        let folder = folder();
        let options = WalOptions { max_bytes: 8 << 30, ..WalOptions::default() };
        let (log, _) = Wal::open(Arc::new(RealDisk), folder.path(), options.clone(), &mut |_| {}).unwrap();
        let payload: Vec<u8> = (0..record).map(|n| (n * 31) as u8).collect();
        let (permit, permits) = bounded(in_flight);
        let begun = Instant::now();
        for _ in 0..records {
            permit.send(()).unwrap();
            let permits = permits.clone();
            log.submit(
                payload.clone(),
                0,
                Box::new(move |result| {
                    result.unwrap();
                    permits.recv().unwrap();
                }),
            );
        }
        log.close();
        let seconds = begun.elapsed().as_secs_f64();
        let stats = log.stats();
        println!(
            "{} KiB records, {in_flight} in flight: {:.0} records/s, {:.0} MB/s, {:.1} records a commit, fdatasync mean {} µs, max {} µs {:?}",
            record >> 10,
            f64::from(records) / seconds,
            f64::from(records) * f64::from(record) / seconds / 1e6,
            stats.records as f64 / stats.commits as f64,
            stats.fsync_micros / stats.commits,
            stats.fsync_max_micros,
            stats.fsync_buckets,
        );
        drop(log);
        for _ in 0..2 {
            let (begun, cpu) = (Instant::now(), cpu_seconds());
            let mut bytes = 0;
            let replay = read(&RealDisk, folder.path(), &mut |record| bytes += record.payload.len());
            let seconds = begun.elapsed().as_secs_f64();
            assert_eq!(replay.records, records as u64);
            let gigabytes = bytes as f64 / 1e9;
            let cpu = cpu_seconds() - cpu;
            println!(
                "    read back: {:.2} GB/s by the clock, {:.2} by the CPU",
                gigabytes / seconds,
                gigabytes / cpu
            );
        }
    }
}
