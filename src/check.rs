//! `faultline check`: a whole data directory verified, and what to do about what is wrong with it; or a settings file.

use crate::settings::{self, Page, Settings};
use crate::terminal::{self, Look, cell, figure, safe};
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
  faultline check --settings faultline.toml
  faultline check --print-defaults > faultline.toml
  faultline check --confirm-clock --data-dir /var/lib/faultline

Reads every byte of the log and of the tables: whether it can be read, whether rows are in their day and in
order, and whether the tables say the truth about them. Nothing is changed; a server may be using the directory.

--confirm-clock is for a server that removes nothing because its clock jumped (FaultlineClockJumped): look at
the time that it prints, and only if that is right, let it be. Run it as the server's user, on its machine.

Exit codes:
  0  everything is as it should be
  1  something is wrong, or the directory cannot be read
  2  wrong usage";

const BAR: &str = "{bytes:>10} of {total_bytes} [{bar:30}] {bytes_per_sec}, {eta} left";

/// Verifies a data directory: log, tables, files, statistics.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The data directory of a server, running or not.
    #[arg(long, value_name = "DIR", default_value = "faultline-data", env = "FAULTLINE_DATA_DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: PathBuf,
    /// Check this settings file instead.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    settings: Option<PathBuf>,
    /// Print all settings with their defaults instead, as a file to start from.
    #[arg(long, value_name = "FORM", value_enum, num_args = 0..=1, default_missing_value = "toml", conflicts_with = "settings")]
    print_defaults: Option<Page>,
    /// Tell the server of the data directory that the machine's clock is right, after it jumped; nothing else is done.
    #[arg(long, conflicts_with_all = ["settings", "print_defaults"])]
    confirm_clock: bool,
}

/// Verifies, and prints what was found.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(page) = arguments.print_defaults {
        terminal::print(settings::defaults(page).as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    if arguments.confirm_clock {
        return confirm_clock(&arguments.data_dir);
    }
    match &arguments.settings {
        Some(file) => check_settings(file),
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
        safe(&folder)
    );
    terminal::print(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

fn check_settings(file: &Path) -> anyhow::Result<ExitCode> {
    let settings = Settings::check(file)?.len();
    let count = terminal::counted(settings as u64, "setting");
    terminal::print(format!("{}: {count}, nothing wrong\n", safe(&file.display().to_string())).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// Reads every byte of a data directory, and prints what was found.
pub(crate) fn check_directory(data_dir: &Path) -> anyhow::Result<ExitCode> {
    let directory = DataDirectory::existing(data_dir)?;
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let check = Check::begin(&disk, &directory)?;
    let bar = bar(check.bytes());
    let report = check.run(&mut |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    show(&report)?;
    Ok(if report.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A bar on stderr, if that is a terminal.
pub(crate) fn bar(bytes: u64) -> ProgressBar {
    let target =
        if io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let style = ProgressStyle::with_template(BAR).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(Some(bytes), target).with_style(style.progress_chars("=> "))
}

fn show(report: &Report) -> io::Result<()> {
    let look = Look::of_stdout();
    let mut table = look.table(&["part", "files", "rows", "bytes", "state"]);
    for part in &report.parts {
        let state =
            if part.problems == 0 { "ok".to_owned() } else { terminal::counted(part.problems, "problem") };
        table.add_row(vec![
            cell(&part.name),
            figure(&part.files.to_string()),
            figure(&part.rows.to_string()),
            figure(&part.bytes.to_string()),
            if part.problems == 0 { cell(&state) } else { look.marked(&state) },
        ]);
    }
    let mut text = terminal::text_of(&table);
    for problem in &report.problems {
        text.push_str(&format!(
            "\n{}\n  wrong:  {}\n  to do:  {}\n",
            safe(&problem.place),
            safe(&problem.what),
            safe(&problem.remedy)
        ));
    }
    for note in &report.notes {
        text.push_str(&format!("\nnote: {}\n", safe(note)));
    }
    terminal::print(text.as_bytes())
}
