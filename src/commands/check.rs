//! `faultline check` verifies a whole data directory and explains how to fix problems, or verifies a config file.

use crate::cli::terminal::{self, OutputStyle, cell, number_cell, sanitize};
use crate::config::{self, ConfigFile, ReferenceFormat};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use store::DataDirectory;
use store::check::{Check, Report};
use store::clock;
use store::disk::{Disk, RealDisk};

const EXAMPLES: &str = "\
Examples:
  faultline check
  faultline check --data-dir /var/lib/faultline
  faultline check --config faultline.toml
  faultline check --print-defaults > faultline.toml
  faultline check --confirm-clock --data-dir /var/lib/faultline

Reads every byte of the WAL and the tables, and checks that it is readable, that rows are in their
day and in order, and that the statistics of the tables are right. It changes nothing; a server may
be using the directory.

--confirm-clock is for a server that has paused retention because its clock jumped
(FaultlineClockJumped). Confirm only if the time that it prints is right. Run it as the server's
user, on its machine.

Exit codes:
  0  no problem was found
  1  a problem was found, or the directory cannot be read
  2  wrong usage";

const BAR_TEMPLATE: &str = "{bytes:>10} of {total_bytes} [{progress_bar:30}] {bytes_per_sec}, {eta} left";

/// Verifies a data directory (WAL, tables, files, statistics) or a config file.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The data directory; a server may be using it.
    #[arg(long, value_name = "DIR", default_value = "faultline-data", env = "FAULTLINE_DATA_DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: PathBuf,
    /// Check this config file instead.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,
    /// Print all settings with their defaults instead, as a file to start from.
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, default_missing_value = "toml", conflicts_with = "config")]
    print_defaults: Option<ReferenceFormat>,
    /// Confirm that the machine's clock is right after it jumped, so that the server resumes retention; do nothing else.
    #[arg(long, conflicts_with_all = ["config", "print_defaults"])]
    confirm_clock: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(page) = arguments.print_defaults {
        terminal::write_stdout(config::render_reference(page).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.confirm_clock {
        return confirm_clock(&arguments.data_dir);
    }
    match &arguments.config {
        Some(file) => check_config(file),
        None => check_directory(&arguments.data_dir),
    }
}

fn confirm_clock(data_dir: &Path) -> anyhow::Result<ExitCode> {
    let directory = DataDirectory::existing(data_dir)?;
    let now = jiff::Timestamp::now();
    clock::confirm(&directory, now.as_microsecond())?;
    let folder = data_dir.display().to_string();
    let text = format!(
        "confirmed for {} that it is {now:.0}; a running server trusts its clock within seconds, and one that is \
         stopped when it is started\n",
        sanitize(&folder)
    );
    terminal::write_stdout(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn check_config(file: &Path) -> anyhow::Result<ExitCode> {
    let config = ConfigFile::load_and_validate(file)?.len();
    let count = terminal::format_count(config as u64, "setting");
    terminal::write_stdout(
        format!("{}: {count}, nothing wrong\n", sanitize(&file.display().to_string())).as_bytes(),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Reads every byte of a data directory, and prints the findings.
pub(crate) fn check_directory(data_dir: &Path) -> anyhow::Result<ExitCode> {
    let directory = DataDirectory::existing(data_dir)?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let check = Check::begin(&disk, &directory)?;
    let progress_bar = progress_bar(check.bytes());
    let report = check.run(&mut |bytes| progress_bar.inc(bytes));
    progress_bar.finish_and_clear();
    print_report(&report)?;
    Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns a progress bar on stderr, which is hidden unless that is a terminal.
pub(crate) fn progress_bar(bytes: u64) -> ProgressBar {
    let target =
        if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(BAR_TEMPLATE).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(bytes), target).with_style(style.progress_chars("=> "))
}

fn print_report(report: &Report) -> io::Result<()> {
    let style = OutputStyle::for_stdout();
    let mut table = style.table(&["part", "files", "rows", "bytes", "state"]);
    for part in &report.parts {
        let state = if part.problems == 0 {
            "ok".to_owned()
        } else {
            terminal::format_count(part.problems, "problem")
        };
        table.add_row(vec![
            cell(&part.name),
            number_cell(&part.files.to_string()),
            number_cell(&part.rows.to_string()),
            number_cell(&part.bytes.to_string()),
            if part.problems == 0 { cell(&state) } else { style.marked(&state) },
        ]);
    }
    let mut text = terminal::render_table(&table);
    for problem in &report.problems {
        text.push_str(&format!(
            "\n{}\n  wrong:  {}\n  to do:  {}\n",
            sanitize(&problem.place),
            sanitize(&problem.what),
            sanitize(&problem.remedy)
        ));
    }
    for note in &report.notes {
        text.push_str(&format!("\nnote: {}\n", sanitize(note)));
    }
    terminal::write_stdout(text.as_bytes())
}
