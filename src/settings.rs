//! `faultline.toml`: the flags of `serve`, written down.
//!
//! The command line is the one list of settings, with their names, meanings, defaults and what a right value is; a key
//! of the file is the name of a flag, and its first word may be a table: `web` in `[listen]` is `--listen-web`.
//!
//! A file is read in two steps: as it is written (keys and values with their lines, in [`written`]), then each value by
//! the parser of its flag. What it says takes the place of the built-in default, so that the environment and flags win
//! over it, and nobody else needs to know that there is a file.
//!
//! What always holds: a file with a mistake is not used at all, and every mistake in it is told, with its line.

mod page;
mod written;

pub(crate) use page::{Page, defaults};

use clap::builder::Resettable;
use clap::{ArgAction, Command, CommandFactory, FromArgMatches};
use std::fmt;
use std::path::{Path, PathBuf};
use written::{Mistake, Value, Written};

/// The file that is read when none is named and it is there.
pub(crate) const FILE: &str = "faultline.toml";
/// The flag that names it.
pub(crate) const FLAG: &str = "settings";
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
        let given =
            Self(self.0.clone()).beneath(command).try_get_matches_from(["faultline", "serve"]).ok()?;
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

    /// The command line with these as its defaults.
    pub(crate) fn beneath(self, command: Command) -> Command {
        command.mut_subcommand("serve", |serve| {
            self.0.into_iter().fold(serve, |serve, (name, values)| {
                serve.mut_arg(name, |flag| flag.default_values(values.clone()))
            })
        })
    }
}

/// The file to read: the one that is named, or the usual one if it is there.
pub(crate) fn file(named: Option<&PathBuf>) -> Option<PathBuf> {
    named.cloned().or_else(|| Path::new(FILE).exists().then(|| PathBuf::from(FILE)))
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
