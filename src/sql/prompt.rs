//! The prompt: lines are edited, remembered and completed; statements end with a semicolon, commands begin with a dot.
//!
//! What always holds: Ctrl-C stops a query or clears the line, and never ends the prompt; a history that cannot be kept
//! stops nobody.

mod commands;
mod editing;
mod words;

use super::asking::Asker;
use super::statements::{Kind, Script, tokens};
use crate::places;
use crate::terminal::{self, counted};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use clap::builder::styling::AnsiColor;
use commands::Told;
use editing::Editing;
use rustyline::config::{BellStyle, CompletionType};
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};
use rustyline::{Config, Editor};
use std::path::PathBuf;
use std::process::ExitCode;
use words::Words;

const PROMPT: &str = "faultline> ";
/// What is remembered of what was typed.
const REMEMBERED: usize = 5_000;

/// Reads and answers until somebody has enough.
pub(super) fn run(mut asker: Asker) -> anyhow::Result<ExitCode> {
    welcome(&asker)?;
    let words = Words::ask(&asker);
    let mut editor = editor(Editing::new(words, asker.look))?;
    let history = remembered(&mut editor);
    let prompt = (PROMPT, asker.look.paint(PROMPT, AnsiColor::Cyan));
    loop {
        let line = match editor.readline(&prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            // The window has another size now, or a signal woke us up.
            Err(ReadlineError::Signal(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        remember(&mut editor, history.as_ref(), &line);
        match answer(&mut asker, editor.helper().map(Editing::words), &line) {
            Ok(Told::GoOn) => {}
            Ok(Told::Quit) => break,
            Err(error) if crate::is_broken_pipe(&error) => return Err(error),
            // A file that cannot be written is no reason to leave.
            Err(error) => terminal::complain(&format!("{error:#}")),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Does what a line says.
fn answer(asker: &mut Asker, words: Option<&Words>, line: &str) -> anyhow::Result<Told> {
    if let Some(command) = commands::command(line) {
        return commands::run(asker, words, &command);
    }
    asker.run(&Script::new(None, line.to_owned()), &[])?;
    Ok(Told::GoOn)
}

fn editor(editing: Editing) -> rustyline::Result<Editor<Editing, FileHistory>> {
    let config = Config::builder()
        .max_history_size(REMEMBERED)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .bell_style(BellStyle::None)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(editing));
    Ok(editor)
}

/// Reads what was typed before, and says where it is kept.
fn remembered(editor: &mut Editor<Editing, FileHistory>) -> Option<PathBuf> {
    let folder = places::state_folder().ok()?;
    std::fs::create_dir_all(&folder).ok()?;
    let file = folder.join("history");
    // There is none the first time, and one that cannot be read is none.
    let _ = editor.load_history(&file);
    Some(file)
}

/// Keeps a line at once, so that a crash does not take it.
fn remember(editor: &mut Editor<Editing, FileHistory>, file: Option<&PathBuf>, line: &str) {
    let line = line.trim();
    if line.is_empty() {
        return;
    }
    // Nobody is stopped by a history that cannot be kept.
    let is_new = editor.add_history_entry(line).unwrap_or(false);
    if let Some(file) = file.filter(|_| is_new && !editor.history().is_empty()) {
        let _ = editor.append_history(file);
    }
}

/// Says where we are, what is there, and how to begin.
fn welcome(asker: &Asker) -> anyhow::Result<()> {
    let count = asker.fetch("SELECT count(*) FROM events", &[]).map_err(|failure| {
        let hint = failure.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        anyhow::anyhow!("{}{hint}", failure.message)
    })?;
    let count =
        count.first().and_then(|batch| batch.column(0).as_primitive_opt::<Int64Type>()?.iter().next()?);
    let events = counted(count.unwrap_or(0).unsigned_abs(), "event");
    let place = asker.place.name();
    terminal::note(&format!(
        "Reading {place}: {events}. Statements end with ; and .help tells the rest. For example:\n  \
         SELECT category, count(*) AS n FROM events GROUP BY category ORDER BY n DESC;\n  \
         SELECT time, service, canonical, message FROM errors ORDER BY time DESC LIMIT 10;"
    ));
    Ok(())
}

/// Whether Enter ends the input: commands and blank lines do at once, statements with their semicolon.
fn is_finished(input: &str) -> bool {
    commands::command(input).is_some() || super::statements::is_complete(input)
}

/// The words of a text, in lower case: names that it may mean.
fn names_in(text: &str) -> impl Iterator<Item = String> {
    let names = tokens(text).filter(|token| matches!(token.kind, Kind::Word | Kind::Name));
    names.map(|token| token.text.trim_matches('"').to_lowercase())
}
