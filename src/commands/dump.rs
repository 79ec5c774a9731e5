//! `faultline dump` prints stored rows as NDJSON, for tests, scripts and audits.
//!
//! It only reads the data directory, so it works while a server is using it, and its output has everything that was
//! acknowledged before it started.

use crate::cli::terminal;
use crate::config::ConfigFileArg;
use arrow::array::RecordBatch;
use clap::ValueEnum;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use store::disk::{Disk, RealDisk};
use store::snapshot::{Snapshot, Unflushed};
use store::{DataDirectory, Table, json};

const EXAMPLES: &str = "\
Examples:
  faultline dump
  faultline dump --data-dir /var/lib/faultline | jq -r .canonical | sort | uniq -c
  faultline dump --table traffic

Null values are left out. A server may be using the directory; nothing is written to it.

Exit codes:
  0  success, even if damaged records were left out (a note says how many)
  1  the data directory does not exist or cannot be read
  2  wrong usage";

/// Prints stored events as NDJSON.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The data directory; a server may be using it.
    #[arg(long, value_name = "DIR", default_value = "faultline-data", env = "FAULTLINE_DATA_DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: PathBuf,
    #[command(flatten)]
    _config: ConfigFileArg,
    /// The table to print.
    #[arg(long, value_enum, default_value_t = DumpTable::Events)]
    table: DumpTable,
    /// Do not print the note at the end.
    #[arg(long, short)]
    quiet: bool,
}

/// The tables that can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DumpTable {
    /// Every error, warning and audit event.
    Events,
    /// Numbers of calls by minute and outcome: partial sums, to be added up.
    Traffic,
    /// A sample of the records that could not be read.
    Rejects,
}

impl DumpTable {
    fn table(self) -> Table {
        match self {
            Self::Events => Table::Events,
            Self::Traffic => Table::Traffic,
            Self::Rejects => Table::Rejects,
        }
    }
}

/// Prints the rows of one table: those in its files, day by day, and then those that are not flushed yet.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let directory = DataDirectory::existing(&arguments.data_dir)?;
    let table = arguments.table.table();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let snapshot = Snapshot::read_only(table, &disk, &directory)?;
    let mut printer = Printer { table, lines: String::new(), rows: 0, failed: None };
    let mut files = snapshot.files.files.clone();
    files.sort_by_key(|file| (file.day, file.written_at));
    for file in &files {
        if snapshot.read_file(file, None, &mut |rows| printer.print(&rows))?.is_break() {
            break;
        }
    }
    let mut unflushed = Unflushed::default();
    if printer.failed.is_none() {
        unflushed = snapshot.read_unflushed(&mut |rows| printer.print(&rows));
    }
    if let Some(error) = printer.failed.take() {
        return Err(error);
    }
    if !arguments.quiet {
        terminal::print_note(&printer.summary(&unflushed));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints rows as they are read.
struct Printer {
    table: Table,
    lines: String,
    rows: u64,
    /// The error that stopped the printing, if any.
    failed: Option<anyhow::Error>,
}

impl Printer {
    fn print(&mut self, rows: &RecordBatch) -> ControlFlow<()> {
        self.lines.clear();
        json::lines(self.table, rows, &mut self.lines);
        self.rows += rows.num_rows() as u64;
        terminal::sanitize_json(&mut self.lines);
        self.failed = terminal::write_stdout(self.lines.as_bytes()).err().map(Into::into);
        if self.failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn summary(&self, unflushed: &Unflushed) -> String {
        let mut text = format!("{} of {}", terminal::format_count(self.rows, "row"), self.table.name());
        let read = &unflushed.replay;
        let lost = read.damaged + unflushed.unreadable;
        if lost > 0 {
            text.push_str(&format!("; {} damaged and left out", terminal::format_count(lost, "record")));
        }
        if read.unreadable_segments > 0 {
            let segments = terminal::format_count(read.unreadable_segments, "log segment");
            text.push_str(&format!("; {segments} damaged beyond reading"));
        }
        text
    }
}
