//! `faultline backup` copies a data directory while a server uses it, and verifies the copy.

use crate::cli::terminal::{self, sanitize};
use crate::commands::check;
use crate::config::ConfigFileArg;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use store::backup::{Backup, Copied};
use store::disk::RealDisk;

const EXAMPLES: &str = "\
Examples:
  faultline backup /backup/monday --data-dir /var/lib/faultline
  faultline backup /backup/tuesday --data-dir /var/lib/faultline --base /backup/monday
  faultline restore /backup/tuesday --data-dir /var/lib/faultline

A server may be using the directory. The backup has everything that was acknowledged before it
began, once. Every byte of the copy is then verified, and every problem reported. A backup is a data
directory: `faultline sql --data-dir /backup/monday` queries it.

With --base, files that the earlier backup has are hard-linked instead of copied, on the same file
system. Each backup is complete by itself, so you can delete any of them.

A backup contains the key of token hashes, so protect it like the data directory. It does not
contain settings, tokens, certificates or the registry: copy them, too.

Exit codes:
  0  the backup exists and is good
  1  there is no backup, or it has problems, which are reported
  2  wrong usage";

/// Copies a data directory, which a server may be using, and verifies the copy.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The folder to write the backup to; it must be empty or not exist.
    #[arg(value_name = "TO", value_hint = clap::ValueHint::DirPath)]
    target: PathBuf,
    /// The data directory; a server may be using it.
    #[arg(long, value_name = "DIR", default_value = "faultline-data", env = "FAULTLINE_DATA_DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: PathBuf,
    #[command(flatten)]
    _config: ConfigFileArg,
    /// An earlier backup on the same file system, whose files are hard-linked instead of copied.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    base: Option<PathBuf>,
}

/// Creates a backup.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    copy(&arguments.data_dir, &arguments.target, arguments.base.as_deref())
}

/// Copies a data directory, and verifies the copy.
pub(crate) fn copy(from: &Path, to: &Path, base: Option<&Path>) -> anyhow::Result<ExitCode> {
    let backup = Backup::new(Arc::new(RealDisk), from, to, base)?;
    let bar = check::progress_bar(0);
    let copied = backup.run(&mut |bytes| {
        bar.inc_length(bytes);
        bar.inc(bytes);
    });
    bar.finish_and_clear();
    let Copied { files, bytes, shared } = copied?;
    let shared =
        if shared > 0 { format!(", {shared} of them shared with the earlier one") } else { String::new() };
    terminal::print_note(&format!(
        "copied {} to {}: {}{shared}, {bytes} bytes; verifying every byte of the copy",
        sanitize(&from.display().to_string()),
        sanitize(&to.display().to_string()),
        terminal::format_count(files, "file"),
    ));
    check::check_directory(to)
}
