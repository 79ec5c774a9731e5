//! `faultline dump`: what is stored, as NDJSON: for tests, scripts and trust.
//!
//! Reads the data directory and nothing else, so that it works while a server is using it: everything that
//! was answered with a yes before is in the output.

use crate::terminal;
use clap::ValueEnum;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use store::codec::{CodecError, Decoder};
use store::disk::RealDisk;
use store::log::{self, Record, Replay};
use store::{DataDirectory, Table, json};

const EXAMPLES: &str = "\
Examples:
  faultline dump
  faultline dump --data-dir /var/lib/faultline | jq -r .canonical | sort | uniq -c
  faultline dump --table traffic

Cells without a value are left out. A server may be using the directory: nothing is written to it.

Exit codes:
  0  it worked, also when damaged records had to be left out (a note says how many)
  1  the data directory is not there or cannot be read
  2  wrong usage";

/// Prints stored events as NDJSON.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The data directory of a server, running or not.
    #[arg(long, value_name = "DIR", default_value = "faultline-data", env = "FAULTLINE_DATA_DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: PathBuf,
    /// Which table.
    #[arg(long, value_enum, default_value_t = Stored::Events)]
    table: Stored,
    /// Leave out the note at the end.
    #[arg(long, short)]
    quiet: bool,
}

/// The tables that can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stored {
    /// Every error, warning and audit event.
    Events,
    /// How many calls there were, and how they went; partial sums, to be added up.
    Traffic,
    /// A sample of what could not be read.
    Rejects,
}

impl Stored {
    fn table(self) -> Table {
        match self {
            Self::Events => Table::Events,
            Self::Traffic => Table::Traffic,
            Self::Rejects => Table::Rejects,
        }
    }
}

/// Prints the rows of one table.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let directory = DataDirectory::existing(&arguments.data_dir)?;
    let mut printer = Printer::new(arguments.table.table());
    let read = log::read(&RealDisk, &directory.log(), &mut |record| printer.record(&record))?;
    if let Some(error) = printer.failed.take() {
        return Err(error);
    }
    if !arguments.quiet {
        terminal::note(&printer.summary(&read));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints records as they are read.
struct Printer {
    table: Table,
    decoder: Option<(Arc<[u8]>, Decoder)>,
    lines: String,
    rows: u64,
    /// Records that are intact but could not be understood.
    unreadable: u64,
    /// Why printing stopped, if it did.
    failed: Option<anyhow::Error>,
}

impl Printer {
    fn new(table: Table) -> Self {
        Self { table, decoder: None, lines: String::new(), rows: 0, unreadable: 0, failed: None }
    }

    fn record(&mut self, record: &Record) {
        if self.failed.is_some() {
            return;
        }
        self.lines.clear();
        match self.write(record) {
            Ok(rows) => self.rows += rows,
            Err(_) => self.unreadable += 1,
        }
        terminal::harmless_json(&mut self.lines);
        self.failed = terminal::print(self.lines.as_bytes()).err().map(Into::into);
    }

    fn write(&mut self, record: &Record) -> Result<u64, CodecError> {
        let is_known = self.decoder.as_ref().is_some_and(|(preamble, _)| *preamble == record.preamble);
        if !is_known {
            self.decoder = Some((Arc::clone(&record.preamble), Decoder::new(&record.preamble)?));
        }
        let Some((_, decoder)) = &self.decoder else { return Ok(0) };
        let Some(batch) = decoder.batch(&record.payload, self.table)? else { return Ok(0) };
        json::lines(self.table, &batch, &mut self.lines);
        Ok(batch.num_rows() as u64)
    }

    fn summary(&self, read: &Replay) -> String {
        let mut text = format!("{} of {}", terminal::counted(self.rows, "row"), self.table.name());
        let lost = read.damaged + self.unreadable;
        if lost > 0 {
            text.push_str(&format!("; {} damaged and left out", terminal::counted(lost, "record")));
        }
        if read.unreadable_segments > 0 {
            let segments = terminal::counted(read.unreadable_segments, "log segment");
            text.push_str(&format!("; {segments} damaged beyond reading"));
        }
        text
    }
}
