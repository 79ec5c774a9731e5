//! Parses and validates `faultline.toml`, which sets the flags of `serve` in a file.
//!
//! A file is read in two steps: first its keys and values with their lines ([`super::entries`]), then each value with
//! the parser of its flag. The values replace the built-in defaults of the flags ([`ConfigFile::apply_as_defaults`]),
//! so that the environment and the command line win over the file, and no command needs to know that there is a file.

use super::entries::{self, ConfigProblem, FileEntry, Value};
use crate::commands::Cli;
use clap::builder::Resettable;
use clap::{Arg, ArgAction, Command, CommandFactory, FromArgMatches};
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

/// The id and the name of the flag that specifies the file.
pub(super) const CONFIG_FLAG: &str = "config";
/// Prefixes of flags that are tables in the file.
const TABLES: [&str; 7] = ["buffer", "flush", "keep", "limit", "listen", "query", "tls"];
/// Flags of `serve` that a file cannot set.
const NOT_SETTINGS: [&str; 5] = [CONFIG_FLAG, "help", "version", "stdin", "tee"];

/// The error for a file that cannot be used, with every problem in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ConfigFileError {
    file: String,
    problems: Vec<ConfigProblem>,
}

impl fmt::Display for ConfigFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the config file has mistakes, and nothing in it is used; correct them and try again")?;
        for ConfigProblem { line, column, message } in &self.problems {
            write!(f, "\n  {}:{line}:{column}: {message}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigFileError {}

/// The settings of a file: ids of flags, and their values.
#[derive(Debug, Default)]
pub(crate) struct ConfigFile(Vec<(String, Vec<String>)>);

impl ConfigFile {
    /// Reads a file, and checks each value separately.
    pub(crate) fn load(file: &Path) -> anyhow::Result<Self> {
        Ok(Self::parse(&file.display().to_string(), &read_text(file)?)?.0)
    }

    /// Reads a file, and also checks that its settings are consistent with each other and with the defaults.
    pub(crate) fn load_and_validate(file: &Path) -> anyhow::Result<Self> {
        let name = file.display().to_string();
        let (config, entries) = Self::parse(&name, &read_text(file)?)?;
        match config.find_conflict(&entries) {
            Some(problem) => Err(ConfigFileError { file: name, problems: vec![problem] }.into()),
            None => Ok(config),
        }
    }

    /// Finds settings that contradict each other, and reports the conflict at the last setting involved.
    fn find_conflict(&self, entries: &[FileEntry]) -> Option<ConfigProblem> {
        let command = Cli::command().mut_subcommand("serve", |_| serve_without_environment());
        let command = self.apply_as_defaults(command, "serve");
        let matches = command.try_get_matches_from(["faultline", "serve"]).ok()?;
        let crate::commands::Command::Serve(arguments) = Cli::from_arg_matches(&matches).ok()?.command else {
            return None;
        };
        let conflict = arguments.validate().err()?;
        let takes_part = |entry: &&FileEntry| conflict.flags.contains(&flag_id(&entry.key));
        entries.iter().rev().find(takes_part).map(|entry| entry.problem(conflict.message.clone()))
    }

    fn parse(file: &str, text: &str) -> Result<(Self, Vec<FileEntry>), ConfigFileError> {
        let error = |problems| ConfigFileError { file: file.to_owned(), problems };
        let entries = entries::parse(text).map_err(|problem| error(vec![problem]))?;
        let serve = serve_without_environment();
        let (settings, problems): (Vec<_>, Vec<_>) =
            entries.iter().map(|entry| parse_setting(&serve, entry)).partition(Result::is_ok);
        let mut problems: Vec<_> = problems.into_iter().filter_map(Result::err).collect();
        problems.extend(entries::duplicates(&entries));
        if problems.is_empty() {
            Ok((Self(settings.into_iter().filter_map(Result::ok).collect()), entries))
        } else {
            Err(error(problems))
        }
    }

    /// Returns the number of settings.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Makes these settings the defaults of a subcommand. If one of its flags reads no environment variable but the
    /// same flag of `serve` does, the variable wins over the file for that subcommand, too.
    pub(super) fn apply_as_defaults(&self, command: Command, subcommand: &str) -> Command {
        let serve = Cli::command().find_subcommand("serve").cloned().unwrap_or_default();
        command.mut_subcommand(subcommand, |command| {
            serve.get_arguments().fold(command, |command, flag| {
                let Some(own) = command.get_arguments().find(|own| is_same_setting(own, flag)) else {
                    return command;
                };
                let variable = if own.get_env().is_none() { environment_value(flag) } else { None };
                match variable.map(|value| vec![value]).or_else(|| self.values_of(flag)) {
                    Some(values) => command.mut_arg(flag.get_id(), |own| own.default_values(values)),
                    None => command,
                }
            })
        })
    }

    /// Returns the values that the file has for a flag.
    fn values_of(&self, flag: &Arg) -> Option<Vec<OsString>> {
        let (_, values) = self.0.iter().find(|(name, _)| flag.get_id() == name.as_str())?;
        Some(values.iter().map(OsString::from).collect())
    }
}

/// Returns true when a flag of a command is a setting, and the same as one of `serve`.
fn is_same_setting(own: &Arg, of_serve: &Arg) -> bool {
    own.get_id() == of_serve.get_id()
        && own.get_long() == of_serve.get_long()
        && is_setting(own.get_id().as_str())
}

/// Returns the value of a flag's environment variable, unless it is empty.
fn environment_value(flag: &Arg) -> Option<OsString> {
    std::env::var_os(flag.get_env()?).filter(|value| !value.is_empty())
}

/// Returns the command `serve` with flags that ignore the environment.
fn serve_without_environment() -> Command {
    let serve = Cli::command().find_subcommand("serve").cloned().unwrap_or_default();
    serve.mut_args(|flag| flag.env(Resettable::Reset))
}

/// Returns true when a file can set the flag with this id.
pub(super) fn is_setting(id: &str) -> bool {
    !NOT_SETTINGS.contains(&id)
}

fn read_text(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).map_err(|error| {
        anyhow::anyhow!("cannot read the config file '{}': {error}; check --{CONFIG_FLAG}", file.display())
    })
}

/// Returns the key in a file for the flag with this id: `listen_web` is `listen.web`.
pub(crate) fn setting_key(id: &str) -> String {
    match id.split_once('_') {
        Some((table, rest)) if TABLES.contains(&table) => format!("{table}.{rest}"),
        _ => id.to_owned(),
    }
}

/// Returns the id of the flag for a key in a file, which may be written with dots or dashes.
pub(super) fn flag_id(key: &str) -> String {
    key.replace(['.', '-'], "_")
}

/// Parses an entry with the parser of its flag; returns the flag's id and the values.
fn parse_setting(serve: &Command, entry: &FileEntry) -> Result<(String, Vec<String>), ConfigProblem> {
    let id = flag_id(&entry.key);
    let flag = serve.get_arguments().find(|flag| flag.get_id() == id.as_str() && is_setting(&id));
    let Some(flag) = flag else { return Err(entry.problem(unknown_setting(serve, &entry.key))) };
    let values = match (flag.get_action(), entry.value.clone()) {
        (_, Value::Invalid(message)) => return Err(entry.problem(message)),
        (ArgAction::SetTrue, Value::Bool(value)) => vec![value.to_string()],
        (ArgAction::SetTrue, _) => return Err(entry.problem("write true or false".to_owned())),
        (_, Value::Bool(_)) => return Err(entry.problem("write a string in quotes".to_owned())),
        (ArgAction::Append, Value::List(values)) => values,
        (_, Value::List(_)) => return Err(entry.problem("write one value, not a list".to_owned())),
        (_, Value::Scalar(value)) => vec![value],
    };
    if !matches!(flag.get_action(), ArgAction::SetTrue) {
        let long = flag.get_long().unwrap_or_default();
        let arguments = values.iter().map(|value| format!("--{long}={value}"));
        let parsed = serve.clone().try_get_matches_from(std::iter::once("serve".to_owned()).chain(arguments));
        parsed.map_err(|error| entry.problem(value_error(&error)))?;
    }
    Ok((id, values))
}

/// Returns the message of a parser about a value, without the parts that only make sense on a command line.
fn value_error(error: &clap::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_owned()
        }
    }
}

/// Describes a key that is not a setting, and suggests the most similar one.
fn unknown_setting(serve: &Command, key: &str) -> String {
    let known = serve.get_arguments().map(|flag| flag.get_id().as_str()).filter(|id| is_setting(id));
    // The last part of the key may be correct, with only the table being wrong.
    let candidates = [flag_id(key), flag_id(key.rsplit('.').next().unwrap_or(key))];
    let similarity = |id: &&str| {
        candidates.iter().map(|candidate| strsim::jaro_winkler(candidate, id)).fold(0.0, f64::max)
    };
    let nearest = known.max_by(|left, right| similarity(left).total_cmp(&similarity(right)));
    match nearest.filter(|id| similarity(id) > 0.8) {
        Some(id) => format!("unknown setting '{key}'; did you mean '{}'?", setting_key(id)),
        None => format!("unknown setting '{key}'; `faultline check --print-defaults` lists all settings"),
    }
}
