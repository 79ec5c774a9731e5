//! Commands of the prompt: about how to show answers, not about what is asked.

use super::words::Words;
use crate::sql::asking::Asker;
use crate::sql::formats::Format;
use crate::sql::output::Output;
use crate::sql::read_file;
use crate::sql::statements::Script;
use crate::terminal::{self, cell};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Every command, with what it takes and what it does.
pub(super) const NAMES: [(&str, &str, &str); 9] = [
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

const COLUMNS_OF_ONE: &str =
    "SELECT column_name, data_type, about FROM columns WHERE table_name = $1 ORDER BY position";
const COLUMNS_OF_ALL: &str =
    "SELECT table_name, column_name, data_type, about FROM columns ORDER BY table_name, position";

/// Whether the prompt goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    GoOn,
    Quit,
}

/// A command, and what was given to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    name: String,
    value: Option<String>,
}

/// Reads a command; none when the line is something else. Words that people try first are known, too.
pub(super) fn command(line: &str) -> Option<Command> {
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

/// Whether the line is a command that takes a file, and the cursor is where it stands.
pub(super) fn wants_file(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with(".read ") || line.starts_with(".output ")
}

/// Does what a command says.
pub(super) fn run(asker: &mut Asker, words: Option<&Words>, command: &Command) -> anyhow::Result<Told> {
    let value = command.value.as_deref();
    match command.name.as_str() {
        ".quit" | ".exit" => return Ok(Told::Quit),
        ".help" => help(asker)?,
        ".tables" => tables(asker, words)?,
        ".schema" => schema(asker, words, value)?,
        ".mode" => mode(asker, value),
        ".timer" => timer(asker, value),
        ".output" => output(asker, value),
        ".read" => read(asker, value)?,
        other => terminal::complain(&format!("there is no command {other}; .help lists them")),
    }
    Ok(Told::GoOn)
}

fn help(asker: &Asker) -> anyhow::Result<()> {
    let mut table = asker.look.table(&["COMMAND", "", "WHAT IT DOES"]);
    for (name, takes, does) in NAMES {
        table.add_row([name, takes, does].map(cell));
    }
    let rest = "\nStatements end with ; and may take several lines. TAB completes names, the arrow keys and Ctrl-R \
                find\nwhat was typed before. Ctrl-C stops a query or clears the line, Ctrl-D ends.\n";
    Ok(terminal::print((terminal::text_of(&table) + rest).as_bytes())?)
}

fn tables(asker: &Asker, words: Option<&Words>) -> anyhow::Result<()> {
    let mut table = asker.look.table(&["TABLE", "ITS ROWS"]);
    for name in words.into_iter().flat_map(Words::tables) {
        let about = query::tables::described().find(|(known, _)| *known == name).map(|(_, about)| about);
        table.add_row([name, about.unwrap_or_default()].map(cell));
    }
    Ok(terminal::print(terminal::text_of(&table).as_bytes())?)
}

fn schema(asker: &mut Asker, words: Option<&Words>, table: Option<&str>) -> anyhow::Result<()> {
    let Some(table) = table else {
        asker.run(&Script::new(None, COLUMNS_OF_ALL.to_owned()), &[])?;
        return Ok(());
    };
    let table = table.to_lowercase();
    if words.is_some_and(|words| !words.tables().any(|known| known == table)) {
        terminal::complain(&format!("there is no table '{table}'; .tables lists what there is"));
        return Ok(());
    }
    asker.run(&Script::new(None, COLUMNS_OF_ONE.to_owned()), &[Value::String(table)])?;
    Ok(())
}

fn mode(asker: &mut Asker, name: Option<&str>) {
    let Some(name) = name else {
        return terminal::note(&format!("mode {}", asker.format.name()));
    };
    match Format::named(name) {
        Some(format) if format.is_binary() && asker.output.path().is_none() => {
            terminal::complain(&format!("{name} is nothing for a terminal; give a file with .output first"));
        }
        Some(format) => asker.format = format,
        None => terminal::complain(&format!(
            "there is no mode '{name}'; there are auto, table, vertical, csv, json, ndjson, parquet and arrow"
        )),
    }
}

fn timer(asker: &mut Asker, value: Option<&str>) {
    match value {
        Some("on") => asker.has_timer = true,
        Some("off") => asker.has_timer = false,
        None => asker.has_timer = !asker.has_timer,
        Some(other) => return terminal::complain(&format!("the timer is on or off, not '{other}'")),
    }
    terminal::note(if asker.has_timer { "timer on" } else { "timer off" });
}

fn output(asker: &mut Asker, file: Option<&str>) {
    asker.output = Output::new(file.map(from_home));
    if asker.output.path().is_none() && asker.format.is_binary() {
        asker.format = Format::Auto;
    }
    match asker.output.path() {
        Some(path) => terminal::note(&format!("rows go to {}, from the next statement on", path.display())),
        None => terminal::note("rows are shown again"),
    }
}

/// A statement that fails, or a file that cannot be read or written, does not end the prompt.
fn read(asker: &mut Asker, file: Option<&str>) -> anyhow::Result<()> {
    let Some(file) = file else {
        terminal::complain("give a file, as in .read report.sql");
        return Ok(());
    };
    match read_file(&from_home(file)) {
        Ok(script) => drop(asker.run(&script, &[])?),
        Err(error) => terminal::complain(&format!("{error:#}")),
    }
    Ok(())
}

/// `~` is the home folder, as in a shell.
fn from_home(file: &str) -> PathBuf {
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
        let read = |line: &str| command(line).map(|command| (command.name, command.value));
        let is = |name: &str, value: Option<&str>| Some((name.to_owned(), value.map(str::to_owned)));
        assert_eq!(read(" .schema  events "), is(".schema", Some("events")));
        assert_eq!(read(".schema events;"), is(".schema", Some("events")));
        assert_eq!(read(".read 'my file.sql'"), is(".read", Some("my file.sql")));
        assert_eq!(read("exit"), is(".quit", None));
        assert_eq!(read("QUIT;"), is(".quit", None));
        assert_eq!(read("."), is(".", None));
        assert_eq!(read("SELECT .5;"), None);
        assert_eq!(read(""), None);
    }
}
