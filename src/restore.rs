//! `faultline restore`: a backup made a data directory again.

use crate::backup;
use crate::settings::SettingsFile;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  faultline restore /backup/monday --data-dir /var/lib/faultline

Copies a backup into a data directory that is empty or is not there, and verifies it. Nothing is
overwritten: what is there has to be moved out of the way first, as rows of two states of a directory
cannot be told apart. Run it as the user that the server runs as. The backup stays as it is.

A restore that was interrupted leaves a folder that every other command refuses: run the same command again to finish
it, or remove the folder.

Exit codes:
  0  the data directory is there, and nothing is wrong with it
  1  it is not; or it is, and something is wrong with it, which is told
  2  wrong usage";

/// Makes a data directory of a backup, and verifies it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// A backup, as `faultline backup` makes it.
    #[arg(value_name = "FROM", value_hint = clap::ValueHint::DirPath)]
    from: PathBuf,
    /// Where to: a folder that is empty, or is not there yet.
    #[arg(long, value_name = "DIR", default_value = "faultline-data", env = "FAULTLINE_DATA_DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: PathBuf,
    #[command(flatten)]
    _settings: SettingsFile,
}

/// Restores a backup: the same copy, the other way.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    backup::copy(&arguments.from, &arguments.data_dir, None)
}
