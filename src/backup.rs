//! `faultline backup`: a data directory copied while a server uses it, and the copy verified.

use crate::check;
use crate::settings::SettingsFile;
use crate::terminal::{self, safe};
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

A server may be using the directory, and notices nothing. Everything that it answered with a yes
before the backup began is in it, once. Then every byte of the backup is read, and what is wrong with
it is told. A backup is a data directory: `faultline sql --data-dir /backup/monday` looks into one.

With --base, files that the earlier backup has are not copied but get a second name, on the same file
system: each backup is whole, and any of them can be removed.

It has what the data directory has, the key of token hashes too: keep it as safe. Settings, tokens,
certificates and the registry are elsewhere; copy them as well.

Exit codes:
  0  there is a backup, and nothing is wrong with it
  1  there is none; or there is one, and something is wrong with it, which is told
  2  wrong usage";

/// Copies a data directory, also one that a server is using, and verifies the copy.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Where to: a folder that is empty, or is not there yet.
    #[arg(value_name = "TO", value_hint = clap::ValueHint::DirPath)]
    target: PathBuf,
    /// The data directory of a server, running or not.
    #[arg(long, value_name = "DIR", default_value = "faultline-data", env = "FAULTLINE_DATA_DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: PathBuf,
    #[command(flatten)]
    _settings: SettingsFile,
    /// An earlier backup on the same file system, whose files need not be copied again.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    base: Option<PathBuf>,
}

/// Makes a backup.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    copy(&arguments.data_dir, &arguments.target, arguments.base.as_deref())
}

/// Copies a data directory, and verifies the copy.
pub(crate) fn copy(from: &Path, to: &Path, base: Option<&Path>) -> anyhow::Result<ExitCode> {
    let backup = Backup::new(Arc::new(RealDisk), from, to, base)?;
    let bar = check::bar(0);
    let copied = backup.run(&mut |bytes| {
        bar.inc_length(bytes);
        bar.inc(bytes);
    });
    bar.finish_and_clear();
    let Copied { files, bytes, shared } = copied?;
    let shared =
        if shared > 0 { format!(", {shared} of them shared with the earlier one") } else { String::new() };
    terminal::note(&format!(
        "copied {} to {}: {}{shared}, {bytes} bytes; now reading all of it again",
        safe(&from.display().to_string()),
        safe(&to.display().to_string()),
        terminal::counted(files, "file"),
    ));
    check::check_directory(to)
}
