//! `faultline.toml`: the flags of `serve`, written down; every command that opens a data directory uses them.
//!
//! The command line is the one list of settings, with their names, meanings, defaults and what a right value is; a key
//! of the file is the name of a flag, and its first word may be a table: `web` in `[listen]` is `--listen-web`.
//!
//! A file is read in two steps: as it is written (keys and values with their lines, in [`written`]), then each value by
//! the parser of its flag. What it says takes the place of the built-in default, so that the environment and flags win
//! over it, and nobody else needs to know that there is a file.
//!
//! A command that opens a data directory has some of the flags of `serve` (where the directory is, what is kept, the
//! registry). They get the same values there, from the same file and the same variables: see [`command_line`].
//!
//! What always holds: a file with a mistake is not used at all, and every mistake in it is told, with its line.

mod page;
mod written;

pub(crate) use page::{Page, defaults};

use clap::builder::Resettable;
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use written::{Mistake, Value, Written};

/// The file that is read when none is named and it is there.
pub(crate) const FILE: &str = "faultline.toml";
/// The flag that names it.
pub(crate) const FLAG: &str = "settings";
/// The variable that names it.
const VARIABLE: &str = "FAULTLINE_SETTINGS";
/// The flag of every command that opens a data directory.
const DATA_DIR: &str = "data_dir";
/// Flags by which a command asks a server instead.
const OF_A_SERVER: [&str; 2] = ["server", "to"];
/// Words that are tables in the file.
const TABLES: [&str; 7] = ["hot", "keep", "limit", "listen", "query", "seal", "tls"];
/// Flags that a file cannot hold.
const NO_SETTINGS: [&str; 5] = [FLAG, "help", "version", "stdin", "tee"];

/// Why a file is not used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    file: String,
    mistakes: Vec<Mistake>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the settings are refused, and nothing of them is used; correct this and try again")?;
        for Mistake { line, column, what } in &self.mistakes {
            write!(f, "\n  {}:{line}:{column}: {what}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for Refused {}

/// What a file says: the names of flags, and their values.
#[derive(Debug, Default)]
pub(crate) struct Settings(Vec<(String, Vec<String>)>);

impl Settings {
    /// Reads a file.
    pub(crate) fn load(file: &Path) -> anyhow::Result<Self> {
        Ok(Self::read(&file.display().to_string(), &text_of(file)?)?.0)
    }

    /// Reads a file, and sees whether what it says fits together when nothing else is said.
    pub(crate) fn check(file: &Path) -> anyhow::Result<Self> {
        let name = file.display().to_string();
        let (settings, written) = Self::read(&name, &text_of(file)?)?;
        match settings.conflict(&written) {
            Some(mistake) => Err(Refused { file: name, mistakes: vec![mistake] }.into()),
            None => Ok(settings),
        }
    }

    /// What does not fit together, at the last setting that has a part in it.
    fn conflict(&self, written: &[Written]) -> Option<Mistake> {
        let command = crate::Cli::command().mut_subcommand("serve", |_| serve());
        let given = self.beneath(command, "serve").try_get_matches_from(["faultline", "serve"]).ok()?;
        let crate::Command::Serve(arguments) = crate::Cli::from_arg_matches(&given).ok()?.command else {
            return None;
        };
        let conflict = arguments.check().err()?;
        let has_part = |written: &&Written| conflict.flags.contains(&written.key.replace(['.', '-'], "_"));
        written.iter().rev().find(has_part).map(|written| written.mistake(conflict.what.clone()))
    }

    fn read(file: &str, text: &str) -> Result<(Self, Vec<Written>), Refused> {
        let refused = |mistakes| Refused { file: file.to_owned(), mistakes };
        let written = written::read(text).map_err(|mistake| refused(vec![mistake]))?;
        let serve = serve();
        let (settings, mistakes): (Vec<_>, Vec<_>) =
            written.iter().map(|written| setting(&serve, written)).partition(Result::is_ok);
        let mut mistakes: Vec<_> = mistakes.into_iter().filter_map(Result::err).collect();
        mistakes.extend(written::twice(&written));
        if mistakes.is_empty() {
            Ok((Self(settings.into_iter().filter_map(Result::ok).collect()), written))
        } else {
            Err(refused(mistakes))
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The command line of a command with these as its defaults. Where one of its flags looks at no variable and the
    /// same flag of `serve` does, the variable wins over the file here, too.
    fn beneath(&self, command: Command, name: &str) -> Command {
        let known = crate::Cli::command().find_subcommand("serve").cloned().unwrap_or_default();
        command.mut_subcommand(name, |command| {
            known.get_arguments().fold(command, |command, flag| {
                let Some(own) = command.get_arguments().find(|own| is_same(own, flag)) else {
                    return command;
                };
                let variable = if own.get_env().is_none() { variable_of(flag) } else { None };
                match variable.map(|value| vec![value]).or_else(|| self.of(flag)) {
                    Some(values) => command.mut_arg(flag.get_id(), |own| own.default_values(values)),
                    None => command,
                }
            })
        })
    }

    /// What the file says of a flag.
    fn of(&self, flag: &Arg) -> Option<Vec<OsString>> {
        let (_, values) = self.0.iter().find(|(name, _)| flag.get_id() == name.as_str())?;
        Some(values.iter().map(OsString::from).collect())
    }
}

/// Names the settings file, for commands that have no other use for it.
#[derive(Debug, clap::Args)]
pub(crate) struct SettingsFile {
    /// The settings file of the server, for where its data is and how it is kept; faultline.toml if it is there.
    #[arg(long, value_name = "FILE", env = VARIABLE, value_hint = clap::ValueHint::FilePath)]
    settings: Option<PathBuf>,
}

/// What was asked for.
pub(crate) struct Given {
    pub(crate) command: crate::Command,
    /// Every flag of the command and its value, wherever that came from.
    pub(crate) values: BTreeMap<String, Vec<OsString>>,
}

/// Reads the command line, the environment and the settings file.
pub(crate) fn given() -> anyhow::Result<Given> {
    let matches = command_line()?;
    let values = matches.subcommand().map(|(_, flags)| values(flags)).unwrap_or_default();
    let command = crate::Cli::from_arg_matches(&matches)?.command;
    match &command {
        crate::Command::Serve(arguments) => arguments.check()?,
        crate::Command::Ingest(arguments) => arguments.check()?,
        _ => {}
    }
    Ok(Given { command, values })
}

fn values(flags: &ArgMatches) -> BTreeMap<String, Vec<OsString>> {
    let value = |id: &clap::Id| {
        let raw = flags.try_get_raw(id.as_str()).ok().flatten()?;
        Some((id.to_string(), raw.map(OsString::from).collect()))
    };
    flags.ids().filter_map(value).collect()
}

/// What was given on the command line, with the environment and the settings file beneath it.
fn command_line() -> anyhow::Result<ArgMatches> {
    let given = crate::Cli::command().try_get_matches()?;
    let Some((name, flags)) = given.subcommand().filter(|(_, flags)| opens_a_directory(flags)) else {
        return Ok(given);
    };
    let named = flags.try_get_one::<PathBuf>(FLAG).ok().flatten().cloned();
    let settings = match named.or_else(usual_file) {
        Some(file) => Settings::load(&file)?,
        None => Settings::default(),
    };
    Ok(settings.beneath(crate::Cli::command(), name).try_get_matches()?)
}

/// Whether a command opens a data directory, and is not about a settings file itself.
fn opens_a_directory(flags: &ArgMatches) -> bool {
    let has = |name: &str| flags.try_contains_id(name).is_ok();
    let is_given = |name: &str| flags.try_contains_id(name).unwrap_or_default();
    let is_about_settings = has("print_defaults") && (is_given("print_defaults") || is_given(FLAG));
    has(DATA_DIR) && !is_about_settings && !OF_A_SERVER.into_iter().any(is_given)
}

/// The file that is read when no flag names one.
fn usual_file() -> Option<PathBuf> {
    let named = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(PathBuf::from);
    named.or_else(|| Path::new(FILE).exists().then(|| PathBuf::from(FILE)))
}

/// Whether a flag of a command is the same as one of `serve` that a file can hold.
fn is_same(own: &Arg, of_serve: &Arg) -> bool {
    own.get_id() == of_serve.get_id()
        && own.get_long() == of_serve.get_long()
        && is_setting(own.get_id().as_str())
}

/// What the environment says of a flag.
fn variable_of(flag: &Arg) -> Option<OsString> {
    std::env::var_os(flag.get_env()?).filter(|value| !value.is_empty())
}

/// The flags of `serve`, whatever the environment says.
fn serve() -> Command {
    let serve = crate::Cli::command().find_subcommand("serve").cloned().unwrap_or_default();
    serve.mut_args(|flag| flag.env(Resettable::Reset))
}

/// Whether a flag can be in a file.
fn is_setting(name: &str) -> bool {
    !NO_SETTINGS.contains(&name)
}

fn text_of(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).map_err(|error| {
        anyhow::anyhow!("cannot read the settings '{}' ({error}); check --{FLAG}", file.display())
    })
}

/// How a flag is written in a file.
pub(crate) fn key(name: &str) -> String {
    match name.split_once('_') {
        Some((table, rest)) if TABLES.contains(&table) => format!("{table}.{rest}"),
        _ => name.to_owned(),
    }
}

/// A setting as the flag that it stands for.
fn setting(serve: &Command, written: &Written) -> Result<(String, Vec<String>), Mistake> {
    let name = written.key.replace(['.', '-'], "_");
    let flag = serve.get_arguments().find(|flag| flag.get_id() == name.as_str() && is_setting(&name));
    let Some(flag) = flag else { return Err(written.mistake(unknown(serve, &written.key))) };
    let values = match (flag.get_action(), written.value.clone()) {
        (_, Value::Wrong(what)) => return Err(written.mistake(what)),
        (ArgAction::SetTrue, Value::Flag(value)) => vec![value.to_string()],
        (ArgAction::SetTrue, _) => return Err(written.mistake("write true or false".to_owned())),
        (_, Value::Flag(_)) => return Err(written.mistake("write a text in quotes".to_owned())),
        (ArgAction::Append, Value::Many(values)) => values,
        (_, Value::Many(_)) => return Err(written.mistake("write one value, not a list".to_owned())),
        (_, Value::One(value)) => vec![value],
    };
    if !matches!(flag.get_action(), ArgAction::SetTrue) {
        let long = flag.get_long().unwrap_or_default();
        let given = values.iter().map(|value| format!("--{long}={value}"));
        let parsed = serve.clone().try_get_matches_from(std::iter::once("serve".to_owned()).chain(given));
        parsed.map_err(|error| written.mistake(reason(&error)))?;
    }
    Ok((name, values))
}

/// What a parser says about a value, without what only the command line has.
fn reason(error: &clap::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            first.strip_prefix("error: ").unwrap_or(first).to_owned()
        }
    }
}

/// What to say about a key that nobody knows.
fn unknown(serve: &Command, key: &str) -> String {
    let flat = |key: &str| key.replace(['.', '-'], "_");
    let known = serve.get_arguments().map(|flag| flag.get_id().as_str()).filter(|name| is_setting(name));
    // The word may be right and only stand under another table.
    let words = [flat(key), flat(key.rsplit('.').next().unwrap_or(key))];
    let likeness =
        |name: &&str| words.iter().map(|word| strsim::jaro_winkler(word, name)).fold(0.0, f64::max);
    let nearest = known.max_by(|left, right| likeness(left).total_cmp(&likeness(right)));
    match nearest.filter(|name| likeness(name) > 0.8) {
        Some(name) => format!("nothing is called '{key}'; did you mean '{}'?", self::key(name)),
        None => format!("nothing is called '{key}'; `faultline check --print-defaults` lists what is"),
    }
}
