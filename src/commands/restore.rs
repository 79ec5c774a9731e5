//! `faultline restore` turns a backup into a data directory again.

use crate::commands::backup;
use crate::config::ConfigFileArg;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  faultline restore /backup/monday --data-dir /var/lib/faultline

Copies a backup into a data directory that is empty or does not exist, and verifies it. Nothing is
overwritten: move existing data away first. Run it as the user that the server runs as. The backup
is not changed.

An interrupted restore leaves a folder that every other command refuses to use: run the same command
again to finish it, or delete the folder.

Exit codes:
  0  the data directory exists and is good
  1  there is no data directory, or it has problems, which are reported
  2  wrong usage";

/// Restores a backup into a data directory, and verifies it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The backup to restore, as `faultline backup` writes it.
    #[arg(value_name = "FROM", value_hint = clap::ValueHint::DirPath)]
    from: PathBuf,
    /// The data directory to create; it must be empty or not exist.
    #[arg(long, value_name = "DIR", default_value = "faultline-data", env = "FAULTLINE_DATA_DIR", value_hint = clap::ValueHint::DirPath)]
    data_dir: PathBuf,
    #[command(flatten)]
    _config: ConfigFileArg,
}

/// Restores a backup, which is the same copy in the other direction.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    backup::copy(&arguments.from, &arguments.data_dir, None)
}
