//! `faultline dashboards` lists the Grafana dashboards of this version, or writes them as files.
//!
//! The files in `dashboards/grafana` are the sources: plain dashboards in Grafana's JSON, embedded in the program.
//! Only the address of the collector, to which their links to the runbook lead, is set when they are written.

use crate::cli::terminal::{self, OutputStyle, cell, number_cell};
use anyhow::Context;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  faultline dashboards
  faultline dashboards --out grafana
  faultline dashboards --out grafana --collector http://collector:7070

Let a dashboard provider of Grafana name their folder, as deploy/grafana/provisioning does, or
import them one by one.

Exit codes:
  0  success
  1  a file could not be written
  2  wrong usage";

/// The address of the collector in the embedded files.
const DEFAULT_COLLECTOR: &str = "http://127.0.0.1:7070";

/// The dashboards by the names of their files, in the order in which they are listed.
const DASHBOARDS: [(&str, &str); 6] = [
    ("overview.json", include_str!("../../dashboards/grafana/overview.json")),
    ("service.json", include_str!("../../dashboards/grafana/service.json")),
    ("quotas.json", include_str!("../../dashboards/grafana/quotas.json")),
    ("trust.json", include_str!("../../dashboards/grafana/trust.json")),
    ("explorer.json", include_str!("../../dashboards/grafana/explorer.json")),
    ("health.json", include_str!("../../dashboards/grafana/health.json")),
];

/// Lists the Grafana dashboards of this version, or writes them as files.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Write the dashboards into this folder, one JSON file each.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// The web address of the collector, for links to its runbook.
    #[arg(long, value_name = "URL", default_value = DEFAULT_COLLECTOR)]
    collector: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.out {
        Some(folder) => write(folder, arguments.collector.trim_end_matches('/'))?,
        None => list()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn write(folder: &Path, collector: &str) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    // The address stands in JSON texts, with their quotes.
    let [default, collector] = [DEFAULT_COLLECTOR, collector].map(|url| Value::from(url).to_string());
    for (name, json) in DASHBOARDS {
        let path = folder.join(name);
        std::fs::write(&path, json.replace(&default, &collector))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let count = terminal::format_count(DASHBOARDS.len() as u64, "dashboard");
    terminal::print_note(&format!("{count} written to {}", folder.display()));
    Ok(())
}

fn list() -> anyhow::Result<()> {
    let style = OutputStyle::for_stdout();
    let mut table = style.table(&["FILE", "UID", "TITLE", "PANELS", "ABOUT"]);
    for (name, json) in DASHBOARDS {
        let dashboard: Value = serde_json::from_str(json).with_context(|| format!("{name} is not JSON"))?;
        let text = |key: &str| cell(dashboard[key].as_str().unwrap_or_default());
        let panels = dashboard["panels"].as_array().map_or(&[][..], Vec::as_slice);
        let count = panels.iter().filter(|panel| panel["type"] != "row").count();
        table.add_row([
            cell(name),
            text("uid"),
            text("title"),
            number_cell(&count.to_string()),
            text("description"),
        ]);
    }
    style.fit(&mut table, &[4, 0]);
    terminal::write_stdout(terminal::render_table(&table).as_bytes())?;
    Ok(())
}
