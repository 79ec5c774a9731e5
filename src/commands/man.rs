//! `faultline man` writes the manual pages, which are generated from the definition of the arguments.

use crate::commands::Cli;
use anyhow::Context;
use clap::CommandFactory;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  faultline man ~/.local/share/man/man1
  man faultline-serve";

/// Writes the manual pages: one of the program, and one of each command.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The folder to write the pages into; created if it does not exist.
    #[arg(value_hint = clap::ValueHint::DirPath)]
    folder: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let folder = &arguments.folder;
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), folder))
        .with_context(|| format!("cannot write the manual pages into '{}'", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}
