//! `faultline dashboards` lists the Grafana dashboards of this version, or writes them as files.
//!
//! Each dashboard is a short file in `dashboards/grafana/source`, and `style.toml` there has what they share: colours,
//! thresholds, variables, links, fragments of queries. The modules below turn them into Grafana's JSON.
//!
//! Invariants: the same sources give the same bytes; an unknown name (of a metric, a colour, a link) is an error that
//! names its location.

mod document;
mod layout;
mod link;
mod panel;
mod query;
mod source;
mod table;
mod variable;
mod words;

use crate::cli::terminal::{self, OutputStyle, cell, number_cell};
use anyhow::Context;
use document::DashboardSet;
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

/// Lists the Grafana dashboards of this version, or writes them as files.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Write the dashboards into this folder, one JSON file each.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    out: Option<PathBuf>,
    /// The web address of the collector, for links to its runbook.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7070")]
    collector: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let set = DashboardSet::open(arguments.collector.trim_end_matches('/'))?;
    match &arguments.out {
        Some(folder) => write(&set, folder)?,
        None => list(&set)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn write(set: &DashboardSet, folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (name, _) in set.dashboards() {
        let path = folder.join(format!("{name}.json"));
        let json = set.json(name)?;
        std::fs::write(&path, json).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let count = terminal::format_count(set.dashboards().len() as u64, "dashboard");
    terminal::print_note(&format!("{count} written to {}", folder.display()));
    Ok(())
}

fn list(set: &DashboardSet) -> anyhow::Result<()> {
    let style = OutputStyle::for_stdout();
    let mut table = style.table(&["FILE", "UID", "TITLE", "PANELS", "ABOUT"]);
    for (name, dashboard) in set.dashboards() {
        let panels = dashboard.panel.iter().filter(|panel| panel.kind != source::Kind::Row).count();
        table.add_row([
            cell(&format!("{name}.json")),
            cell(&dashboard.uid),
            cell(&dashboard.title),
            number_cell(&panels.to_string()),
            cell(&dashboard.about),
        ]);
    }
    style.fit(&mut table, &[4, 0]);
    terminal::write_stdout(terminal::render_table(&table).as_bytes())?;
    Ok(())
}
