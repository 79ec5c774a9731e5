//! Reads the CPU time and the memory of a process from the kernel.

use anyhow::Context;
use std::time::Duration;

/// The unit in which Linux reports CPU time to user space, whatever the frequency of its own clock.
const TICK: Duration = Duration::from_millis(10);

/// Resident memory in bytes.
#[derive(Clone, Copy)]
pub(crate) struct Resident {
    pub(crate) now: u64,
    pub(crate) highest: u64,
}

/// A process, identified by its folder in `/proc`.
#[derive(Clone)]
pub(crate) struct Process(String);

impl Process {
    pub(crate) fn this() -> Self {
        Self("/proc/self".to_owned())
    }

    pub(crate) fn of(pid: u32) -> Self {
        Self(format!("/proc/{pid}"))
    }

    /// Returns the user and system time of all threads.
    pub(crate) fn cpu(&self) -> anyhow::Result<Duration> {
        let stat = self.read("stat")?;
        // The name before the last bracket may contain any characters.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
        let ticks: Result<Vec<u32>, _> = fields.skip(11).take(2).map(str::parse).collect();
        Ok(TICK * ticks?.iter().sum::<u32>())
    }

    pub(crate) fn resident(&self) -> anyhow::Result<Resident> {
        let status = self.read("status")?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such field")?;
            let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
            anyhow::Ok(kib << 10)
        };
        Ok(Resident { now: field("VmRSS:")?, highest: field("VmHWM:")? })
    }

    /// Resets the highest resident memory. Where that is not allowed, it remains that of the whole run.
    pub(crate) fn reset_peak(&self) {
        let _ = std::fs::write(format!("{}/clear_refs", self.0), "5");
    }

    fn read(&self, file: &str) -> anyhow::Result<String> {
        let path = format!("{}/{file}", self.0);
        std::fs::read_to_string(&path).with_context(|| path)
    }
}

/// Returns the CPU time of this thread in nanoseconds, because a pass of `serde_json` is too short for ticks.
pub(crate) fn this_thread_cpu() -> anyhow::Result<Duration> {
    let path = "/proc/thread-self/schedstat";
    let text = std::fs::read_to_string(path).context(path)?;
    let nanos = text.split_whitespace().next().context("empty")?.parse()?;
    Ok(Duration::from_nanos(nanos))
}
