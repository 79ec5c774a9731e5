//! `faultline completions` prints a shell completion script, which is generated from the definition of the arguments.
//!
//! The script is generated in memory first, because the generator panics if a write fails, as on a closed pipe.

use crate::cli::terminal;
use crate::commands::Cli;
use clap::CommandFactory;
use clap_complete::Shell;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  faultline completions bash > faultline.bash
  faultline completions zsh > _faultline
  faultline completions fish > faultline.fish

Put the file here:
  bash  ~/.local/share/bash-completion/completions/faultline
  zsh   a folder of $fpath, as _faultline
  fish  ~/.config/fish/completions/faultline.fish";

/// Prints a completion script for a shell.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The shell to write for.
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "faultline", &mut script);
    terminal::write_stdout(&script)?;
    Ok(ExitCode::SUCCESS)
}
