//! Combines the command line, the environment and the config file into the command to run.
//!
//! Every command that opens a data directory shares some flags with `serve` (the directory, retention, the registry).
//! They get the same values there, from the same file and the same environment variables.

use super::file::{CONFIG_FLAG, ConfigFile};
use crate::commands::{Cli, Command, command_line};
use clap::{ArgMatches, FromArgMatches};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The file that is read if no file is named and this one exists.
const DEFAULT_FILE: &str = "faultline.toml";
/// The environment variable that names the file.
pub(crate) const CONFIG_VARIABLE: &str = "FAULTLINE_CONFIG";
/// The command that reads a config file only if it is named.
const DEMO: &str = "demo";
/// The flag of every command that opens a data directory.
const DATA_DIR_FLAG: &str = "data_dir";
/// Flags with which a command uses a server instead of a data directory.
const SERVER_FLAGS: [&str; 2] = ["server", "to"];

/// The flag that names the config file, for commands that need nothing else of it.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigFileArg {
    /// Read settings such as the data directory from this config file; by default faultline.toml, if it exists.
    #[arg(long, value_name = "FILE", env = CONFIG_VARIABLE, value_hint = clap::ValueHint::FilePath)]
    config: Option<PathBuf>,
}

/// The command to run, and the settings that it was built from.
pub(crate) struct LoadedConfig {
    pub(crate) command: Command,
    /// The value of every flag of the command, whatever its source.
    pub(crate) values: BTreeMap<String, Vec<OsString>>,
}

/// Reads the command line, the environment and the config file.
pub(crate) fn load() -> anyhow::Result<LoadedConfig> {
    let matches = parse_command_line()?;
    let values = matches.subcommand().map(|(_, flags)| flag_values(flags)).unwrap_or_default();
    let command = Cli::from_arg_matches(&matches)?.command;
    match &command {
        Command::Serve(arguments) => arguments.validate()?,
        Command::Demo(arguments) => arguments.server().validate()?,
        Command::Ingest(arguments) => arguments.validate()?,
        _ => {}
    }
    Ok(LoadedConfig { command, values })
}

fn flag_values(flags: &ArgMatches) -> BTreeMap<String, Vec<OsString>> {
    let value = |id: &clap::Id| {
        let raw = flags.try_get_raw(id.as_str()).ok().flatten()?;
        Some((id.to_string(), raw.map(OsString::from).collect()))
    };
    flags.ids().filter_map(value).collect()
}

/// Parses the command line, with the environment and the config file as defaults.
fn parse_command_line() -> anyhow::Result<ArgMatches> {
    let matches = command_line().try_get_matches()?;
    let Some((name, flags)) = matches.subcommand().filter(|(_, flags)| uses_config_file(flags)) else {
        return Ok(matches);
    };
    // The demo must not start in a directory with real data by accident, so it only uses a file that is named
    // explicitly.
    if name == DEMO && !flags.contains_id(CONFIG_FLAG) {
        return Ok(matches);
    }
    let named = flags.try_get_one::<PathBuf>(CONFIG_FLAG).ok().flatten().cloned();
    let config = match named.or_else(default_file) {
        Some(file) => ConfigFile::load(&file)?,
        None => ConfigFile::default(),
    };
    Ok(config.apply_as_defaults(command_line(), name).try_get_matches()?)
}

/// Returns true when a command opens a data directory, except for `check` of a config file or of the defaults.
fn uses_config_file(flags: &ArgMatches) -> bool {
    let has = |name: &str| flags.try_contains_id(name).is_ok();
    let is_given = |name: &str| flags.try_contains_id(name).unwrap_or_default();
    let checks_config = has("print_defaults") && (is_given("print_defaults") || is_given(CONFIG_FLAG));
    has(DATA_DIR_FLAG) && !checks_config && !SERVER_FLAGS.into_iter().any(is_given)
}

/// Returns the file to read when no flag names one.
fn default_file() -> Option<PathBuf> {
    let named = std::env::var_os(CONFIG_VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    named.or_else(|| Path::new(DEFAULT_FILE).exists().then(|| PathBuf::from(DEFAULT_FILE)))
}
