//! The OpenTelemetry Collector: how it is built, configured and started.

use crate::sender::connection::{Protocol, Security, TRACES, Target};
use crate::sender::process::Process;
use crate::{Contender, PATIENCE, cache, run};
use anyhow::{Context, ensure};
use std::fs::File;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

const VERSION: &str = "v0.161.0";
const MODULES: &str = include_str!("collector.yaml");
/// The contender that the goal of the project refers to. By default the exporter compresses what it sends, which costs
/// more than everything else, so it also runs without.
pub(crate) const FORWARDING: &str = "Collector `otlp -> batch -> otlp`, uncompressed";

/// A running collector, which ends with the benchmark.
pub(crate) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the collectors that are measured; none where there is neither Go nor a program.
pub(crate) fn contenders(folder: &Path) -> anyhow::Result<Vec<Contender>> {
    let Some(program) = program()? else { return Ok(Vec::new()) };
    let (sink, sink_address) = start(&program, folder, "sink", "nop: {}")?;
    let (discarding, discarding_address) = start(&program, folder, "discarding", "nop: {}")?;
    let exporter =
        |more: &str| format!("otlp: {{endpoint: '{sink_address}', tls: {{insecure: true}}{more}}}");
    let (compressing, compressing_address) = start(&program, folder, "compressing", &exporter(""))?;
    let (forwarding, forwarding_address) =
        start(&program, folder, "forwarding", &exporter(", compression: none"))?;
    let contender = |name: &str, does, processes: Vec<Running>, address| Contender {
        name: name.to_owned(),
        does,
        process: Process::of(processes[0].0.id()),
        target: target(address),
        running: crate::Running::Collector { _processes: processes },
        rounds: Vec::new(),
    };
    Ok(vec![
        contender(
            "Collector `otlp -> batch -> nop`",
            "decodes and discards",
            vec![discarding],
            discarding_address,
        ),
        contender(
            "Collector `otlp -> batch -> otlp`",
            "compresses and forwards, stores nothing",
            vec![compressing],
            compressing_address,
        ),
        contender(FORWARDING, "forwards, stores nothing", vec![forwarding, sink], forwarding_address),
    ])
}

fn target(address: SocketAddr) -> Target {
    let protocol = Protocol::Grpc { path: TRACES, encoding: "identity" };
    Target { address, protocol, security: Security::default() }
}

/// Returns the program that the environment names, or builds one with Go.
fn program() -> anyhow::Result<Option<PathBuf>> {
    if let Some(program) = std::env::var_os("OTELCOL") {
        return Ok(Some(program.into()));
    }
    let folder = cache("otelcol");
    let program = folder.join("otelcol");
    if program.exists() {
        return Ok(Some(program));
    }
    if Command::new("go").arg("version").output().is_err() {
        println!("Go is missing, so the OpenTelemetry Collector is not measured: install Go, or set OTELCOL");
        return Ok(None);
    }
    println!("building the OpenTelemetry Collector {VERSION} with Go");
    std::fs::create_dir_all(&folder)?;
    let config = folder.join("collector.yaml");
    std::fs::write(&config, MODULES.replace("OUTPUT", &folder.to_string_lossy()))?;
    let builder = format!("go.opentelemetry.io/collector/cmd/builder@{VERSION}");
    run(Command::new("go").args(["run", &builder, "--config"]).arg(&config))?;
    ensure!(program.exists(), "the build made no {}", program.display());
    Ok(Some(program))
}

/// Starts a collector with one exporter, and waits until it listens.
fn start(program: &Path, folder: &Path, name: &str, exporter: &str) -> anyhow::Result<(Running, SocketAddr)> {
    // The collector does not say which port it got, so it is told one that was free just now.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let exporter_name = exporter.split(':').next().unwrap_or_default();
    let text = format!(
        "receivers: {{otlp: {{protocols: {{grpc: {{endpoint: '{address}'}}}}}}}}\n\
         processors: {{batch: {{}}}}\n\
         exporters: {{{exporter}}}\n\
         service:\n  \
           telemetry: {{metrics: {{level: none}}}}\n  \
           pipelines: {{traces: {{receivers: [otlp], processors: [batch], exporters: [{exporter_name}]}}}}\n"
    );
    let config = folder.join(format!("{name}.yaml"));
    std::fs::write(&config, text)?;
    let log = folder.join(format!("{name}.log"));
    let child = Command::new(program)
        .arg("--config")
        .arg(&config)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(File::create(&log)?)
        .spawn()
        .with_context(|| program.display().to_string())?;
    let mut running = Running(child);
    let begin = Instant::now();
    while TcpStream::connect(address).is_err() {
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        ensure!(running.0.try_wait()?.is_none(), "the collector ended: {}", said());
        ensure!(begin.elapsed() < PATIENCE, "the collector does not listen: {}", said());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Ok((running, address))
}
