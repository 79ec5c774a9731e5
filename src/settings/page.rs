//! All settings with their defaults: as a file to start from, or as a page.

use super::{is_setting, key};
use clap::{Arg, ArgAction, CommandFactory, ValueEnum};
use std::fmt::Write;

/// In which form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Page {
    /// A settings file in which everything is commented out.
    Toml,
    /// The page docs/settings.md.
    Markdown,
}

const OPENING: &str = "\
# Settings

`faultline serve` reads `faultline.toml` in the current folder, or the file that `--settings` or `FAULTLINE_SETTINGS`
names; then the environment; then its flags. The later wins. Every command that opens a data directory (`ingest`, `sql`,
`dump`, `tail`, `check`, `backup`, `restore`) reads the same file and the same variables, for the settings that it shares
with `serve`: where the data is, how it is kept, the registry, the limits. `ingest` removes nothing, whatever `[keep]` says:
only a server does. This page is written by a test from the flags; `faultline check --print-defaults` prints it as a file to start from, and `faultline check --settings FILE` says what is
wrong with one. A file with a mistake is not used at all.

| key | flag | environment | default | meaning |
|---|---|---|---|---|
";

/// Writes all settings.
pub(crate) fn defaults(page: Page) -> String {
    let cli = crate::Cli::command();
    let Some(serve) = cli.find_subcommand("serve") else { return String::new() };
    let mut settings: Vec<_> =
        serve.get_arguments().filter(|flag| is_setting(flag.get_id().as_str())).map(Setting::of).collect();
    // Keys without a table come first, as a file needs them to.
    settings
        .sort_by_key(|setting| (setting.key.contains('.'), setting.key.split('.').next().map(str::to_owned)));
    match page {
        Page::Toml => as_toml(&settings),
        Page::Markdown => as_markdown(&settings),
    }
}

/// A setting as it is documented.
struct Setting {
    key: String,
    flag: String,
    variable: String,
    default: String,
    about: String,
    /// What stands for a value that there is no default for.
    placeholder: String,
    is_list: bool,
    is_flag: bool,
}

impl Setting {
    fn of(flag: &Arg) -> Self {
        let default: Vec<_> = flag.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        Self {
            key: key(flag.get_id().as_str()),
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

    /// The default as a value of TOML.
    fn value(&self) -> String {
        match (self.is_flag, self.is_list) {
            (true, _) => "false".to_owned(),
            (_, true) => "[]".to_owned(),
            _ if self.default.parse::<u64>().is_ok() => self.default.clone(),
            _ if self.default.is_empty() => format!("\"{}\"", self.placeholder),
            _ => format!("\"{}\"", self.default),
        }
    }
}

fn as_toml(settings: &[Setting]) -> String {
    let mut text = "# The settings of `faultline serve`, with their defaults.\n".to_owned();
    let mut table = "";
    for setting in settings {
        let (of, name) = setting.key.split_once('.').unwrap_or(("", &setting.key));
        if of != table {
            let _ = write!(text, "\n[{of}]\n");
            table = of;
        }
        let _ = write!(text, "\n# {}\n# {name} = {}\n", setting.about, setting.value());
    }
    text
}

fn as_markdown(settings: &[Setting]) -> String {
    let mut text = OPENING.to_owned();
    for setting in settings {
        let Setting { key, flag, variable, about, .. } = setting;
        let variable = if variable.is_empty() { String::new() } else { format!("`{variable}`") };
        let default = match setting.default.is_empty() && !setting.is_flag {
            true => String::new(),
            false => format!("`{}`", setting.value()),
        };
        let _ = writeln!(text, "| `{key}` | `{flag}` | {variable} | {default} | {about} |");
    }
    text
}
