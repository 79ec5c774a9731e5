//! The commands of the prompt, which change how results are shown and list what can be queried.

use super::completion::CompletionNames;
use crate::cli::terminal::{self, cell};
use crate::commands::sql::formats::Format;
use crate::commands::sql::output::Output;
use crate::commands::sql::read_file;
use crate::commands::sql::runner::QueryRunner;
use crate::commands::sql::statements::Script;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Every command, with its arguments and its description.
pub(super) const COMMANDS: [(&str, &str, &str); 9] = [
    (".help", "", "this"),
    (".tables", "", "the tables and views, and what their rows are"),
    (".schema", "[TABLE]", "the columns of a table, or of all, and what they hold"),
    (".mode", "[FORMAT]", "how rows are shown: auto, table, vertical, csv, json, ndjson, parquet, arrow"),
    (".timer", "on|off", "whether to tell how long a query took"),
    (".output", "[FILE]", "write rows to a file from now on; without one, show them again"),
    (".read", "FILE", "run the statements of a file"),
    (".quit", "", "end, as Ctrl-D does"),
    (".exit", "", "the same"),
];

const COLUMNS_OF_TABLE: &str =
    "SELECT column_name, data_type, about FROM columns WHERE table_name = $1 ORDER BY position";
const ALL_COLUMNS: &str =
    "SELECT table_name, column_name, data_type, about FROM columns ORDER BY table_name, position";

/// Tells the prompt to continue or to quit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Continue,
    Quit,
}

/// A command with its argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    name: String,
    value: Option<String>,
}

/// Parses a command. Returns `None` if the line is not one. Commands of other SQL prompts, such as `\d`, are
/// recognized.
pub(super) fn parse_command(line: &str) -> Option<Command> {
    let line = line.trim();
    let bare = line.trim_end_matches(';').trim_end();
    let name = match bare.to_ascii_lowercase().as_str() {
        "help" | "\\?" | "\\h" => ".help",
        "quit" | "exit" | "\\q" => ".quit",
        "\\d" | "\\dt" => ".tables",
        _ if line.starts_with('.') => bare,
        _ => return None,
    };
    let (name, value) = name.split_once(char::is_whitespace).unwrap_or((name, ""));
    let value = value.trim().trim_matches(['\'', '"']);
    Some(Command { name: name.to_owned(), value: (!value.is_empty()).then(|| value.to_owned()) })
}

/// Returns true when the line is a command that takes a file, and the cursor is at the file.
pub(super) fn takes_file(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(".read ") || line.starts_with(".output ")
}

/// Runs a command.
pub(super) fn run(
    runner: &mut QueryRunner,
    names: Option<&CompletionNames>,
    command: &Command,
) -> anyhow::Result<Flow> {
    let value = command.value.as_deref();
    match command.name.as_str() {
        ".quit" | ".exit" => return Ok(Flow::Quit),
        ".help" => help(runner)?,
        ".tables" => tables(runner, names)?,
        ".schema" => schema(runner, names, value)?,
        ".mode" => mode(runner, value),
        ".timer" => timer(runner, value),
        ".output" => output(runner, value),
        ".read" => run_file(runner, value)?,
        other => terminal::print_error(&format!("there is no command {other}; .help lists them")),
    }
    Ok(Flow::Continue)
}

fn help(runner: &QueryRunner) -> anyhow::Result<()> {
    let mut table = runner.style.table(&["COMMAND", "", "WHAT IT DOES"]);
    for (name, takes, does) in COMMANDS {
        table.add_row([name, takes, does].map(cell));
    }
    let rest = "\nStatements end with ; and may take several lines. TAB completes names, the arrow keys and Ctrl-R \
                find\nwhat was typed before. Ctrl-C stops a query or clears the line, Ctrl-D ends.\n";
    Ok(terminal::write_stdout((terminal::render_table(&table) + rest).as_bytes())?)
}

fn tables(runner: &QueryRunner, names: Option<&CompletionNames>) -> anyhow::Result<()> {
    let mut table = runner.style.table(&["TABLE", "ITS ROWS"]);
    for name in names.into_iter().flat_map(CompletionNames::tables) {
        let about = query::tables::descriptions().find(|(known, _)| *known == name).map(|(_, about)| about);
        table.add_row([name, about.unwrap_or_default()].map(cell));
    }
    Ok(terminal::write_stdout(terminal::render_table(&table).as_bytes())?)
}

fn schema(
    runner: &mut QueryRunner,
    names: Option<&CompletionNames>,
    table: Option<&str>,
) -> anyhow::Result<()> {
    let Some(table) = table else {
        runner.run(&Script::new(None, ALL_COLUMNS.to_owned()), &[])?;
        return Ok(());
    };
    let table = table.to_lowercase();
    if names.is_some_and(|names| !names.tables().any(|known| known == table)) {
        terminal::print_error(&format!("there is no table '{table}'; .tables lists what there is"));
        return Ok(());
    }
    runner.run(&Script::new(None, COLUMNS_OF_TABLE.to_owned()), &[Value::String(table)])?;
    Ok(())
}

fn mode(runner: &mut QueryRunner, name: Option<&str>) {
    let Some(name) = name else {
        return terminal::print_note(&format!("mode {}", runner.format.name()));
    };
    match Format::named(name) {
        Some(format) if format.is_binary() && runner.output.path().is_none() => {
            terminal::print_error(&format!(
                "{name} is nothing for a terminal; give a file with .output first"
            ));
        }
        Some(format) => runner.format = format,
        None => terminal::print_error(&format!(
            "there is no mode '{name}'; there are auto, table, vertical, csv, json, ndjson, parquet and arrow"
        )),
    }
}

fn timer(runner: &mut QueryRunner, value: Option<&str>) {
    match value {
        Some("on") => runner.has_timer = true,
        Some("off") => runner.has_timer = false,
        None => runner.has_timer = !runner.has_timer,
        Some(other) => return terminal::print_error(&format!("the timer is on or off, not '{other}'")),
    }
    terminal::print_note(if runner.has_timer { "timer on" } else { "timer off" });
}

fn output(runner: &mut QueryRunner, file: Option<&str>) {
    runner.output = Output::new(file.map(expand_home));
    if runner.output.path().is_none() && runner.format.is_binary() {
        runner.format = Format::Auto;
    }
    match runner.output.path() {
        Some(path) => {
            terminal::print_note(&format!("rows go to {}, from the next statement on", path.display()));
        }
        None => terminal::print_note("rows are shown again"),
    }
}

/// Runs the statements of a file. A statement that fails, or a file that cannot be read, does not end the prompt.
fn run_file(runner: &mut QueryRunner, file: Option<&str>) -> anyhow::Result<()> {
    let Some(file) = file else {
        terminal::print_error("give a file, as in .read report.sql");
        return Ok(());
    };
    match read_file(&expand_home(file)) {
        Ok(script) => drop(runner.run(&script, &[])?),
        Err(error) => terminal::print_error(&format!("{error:#}")),
    }
    Ok(())
}

/// Expands a leading `~/` to the home folder, as a shell does.
fn expand_home(file: &str) -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match (file.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => Path::new(file).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_statements() {
        let run_file = |line: &str| parse_command(line).map(|command| (command.name, command.value));
        let is = |name: &str, value: Option<&str>| Some((name.to_owned(), value.map(str::to_owned)));
        assert_eq!(run_file(" .schema  events "), is(".schema", Some("events")));
        assert_eq!(run_file(".schema events;"), is(".schema", Some("events")));
        assert_eq!(run_file(".read 'my file.sql'"), is(".read", Some("my file.sql")));
        assert_eq!(run_file("exit"), is(".quit", None));
        assert_eq!(run_file("QUIT;"), is(".quit", None));
        assert_eq!(run_file("."), is(".", None));
        assert_eq!(run_file("SELECT .5;"), None);
        assert_eq!(run_file(""), None);
    }
}
