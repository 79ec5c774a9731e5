//! The reference of all settings with their defaults, as a config file or as the page `docs/settings.md`.

use super::file::{is_setting, setting_key};
use clap::{Arg, ArgAction, CommandFactory, ValueEnum};
use std::fmt::Write;

/// The form in which the reference is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReferenceFormat {
    /// A config file in which every setting is commented out.
    Toml,
    /// The page docs/settings.md.
    Markdown,
}

const MARKDOWN_HEADER: &str = "\
# Settings

`faultline serve` takes each setting from the first of these that has it: its flag, its environment variable, the config
file, the built-in default. The config file is `faultline.toml` in the current folder, or the file that `--config` or
`FAULTLINE_CONFIG` names.

Every command that opens a data directory (`ingest`, `sql`, `dump`, `tail`, `check`, `backup`, `restore`) reads the same file
and the same variables, for the settings that it shares with `serve`: the data directory, retention, the registry, the limits.
`ingest` never deletes data, whatever `[keep]` says; only a server does.

`faultline check --print-defaults` prints all settings as a file to start from, and `faultline check --config FILE` reports
every mistake in a file. A file with a mistake is not used at all. A test generates this page from the flags.

| key | flag | environment | default | meaning |
|---|---|---|---|---|
";

/// Renders all settings of `serve` with their defaults.
pub(crate) fn render_reference(format: ReferenceFormat) -> String {
    let cli = crate::commands::Cli::command();
    let Some(serve) = cli.find_subcommand("serve") else { return String::new() };
    let mut settings: Vec<_> = serve
        .get_arguments()
        .filter(|flag| is_setting(flag.get_id().as_str()))
        .map(SettingDoc::from_flag)
        .collect();
    // Keys without a table come first, because in TOML they must precede the tables.
    settings
        .sort_by_key(|setting| (setting.key.contains('.'), setting.key.split('.').next().map(str::to_owned)));
    match format {
        ReferenceFormat::Toml => render_toml(&settings),
        ReferenceFormat::Markdown => render_markdown(&settings),
    }
}

/// The documentation of one setting.
struct SettingDoc {
    key: String,
    flag: String,
    variable: String,
    default: String,
    about: String,
    /// The value's name, which represents the value of a setting without a default.
    placeholder: String,
    is_list: bool,
    is_flag: bool,
}

impl SettingDoc {
    fn from_flag(flag: &Arg) -> Self {
        let default: Vec<_> = flag.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        Self {
            key: setting_key(flag.get_id().as_str()),
            flag: format!("--{}", flag.get_long().unwrap_or_default()),
            variable: flag.get_env().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            default: default.join(","),
            about: flag.get_help().map(ToString::to_string).unwrap_or_default(),
            placeholder: flag
                .get_value_names()
                .and_then(|names| names.first())
                .map(ToString::to_string)
                .unwrap_or_default(),
            is_list: matches!(flag.get_action(), ArgAction::Append),
            is_flag: matches!(flag.get_action(), ArgAction::SetTrue),
        }
    }

    /// Returns the default as a TOML value.
    fn default_value(&self) -> String {
        match (self.is_flag, self.is_list) {
            (true, _) => "false".to_owned(),
            (_, true) => "[]".to_owned(),
            _ if self.default.parse::<u64>().is_ok() => self.default.clone(),
            _ if self.default.is_empty() => format!("\"{}\"", self.placeholder),
            _ => format!("\"{}\"", self.default),
        }
    }
}

fn render_toml(settings: &[SettingDoc]) -> String {
    let mut text = "# The settings of `faultline serve`, with their defaults.\n".to_owned();
    let mut table = "";
    for setting in settings {
        let (prefix, name) = setting.key.split_once('.').unwrap_or(("", &setting.key));
        if prefix != table {
            let _ = write!(text, "\n[{prefix}]\n");
            table = prefix;
        }
        let _ = write!(text, "\n# {}\n# {name} = {}\n", setting.about, setting.default_value());
    }
    text
}

fn render_markdown(settings: &[SettingDoc]) -> String {
    let mut text = MARKDOWN_HEADER.to_owned();
    for setting in settings {
        let SettingDoc { key, flag, variable, about, .. } = setting;
        let variable = if variable.is_empty() { String::new() } else { format!("`{variable}`") };
        let default = match setting.default.is_empty() && !setting.is_flag {
            true => String::new(),
            false => format!("`{}`", setting.default_value()),
        };
        let _ = writeln!(text, "| `{key}` | `{flag}` | {variable} | {default} | {about} |");
    }
    text
}
