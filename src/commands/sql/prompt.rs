//! The prompt, with line editing, history and completion. Statements end with a semicolon, commands begin with a dot.
//!
//! Invariants: Ctrl-C stops a query or clears the line, and never ends the prompt; a history that cannot be read or
//! written has no effect on anything else.

mod commands;
mod completion;
mod line_editor;

use super::runner::QueryRunner;
use super::statements::{Script, TokenKind, tokens};
use crate::cli::terminal::{self, format_count};
use crate::config::paths;
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use clap::builder::styling::AnsiColor;
use commands::Flow;
use completion::CompletionNames;
use line_editor::EditorHelper;
use rustyline::config::{BellStyle, CompletionType};
use rustyline::error::ReadlineError;
use rustyline::history::{FileHistory, History};
use rustyline::{Config, Editor};
use std::path::PathBuf;
use std::process::ExitCode;

const PROMPT: &str = "faultline> ";
/// The number of inputs that the history keeps.
const MAX_HISTORY: usize = 5_000;

/// Reads and runs lines until the user quits.
pub(super) fn run(mut runner: QueryRunner) -> anyhow::Result<ExitCode> {
    print_welcome(&runner)?;
    let completion = CompletionNames::query(&runner);
    let mut editor = editor(EditorHelper::new(completion, runner.style))?;
    let history = load_history(&mut editor);
    let prompt = (PROMPT, runner.style.paint(PROMPT, AnsiColor::Cyan));
    loop {
        let line = match editor.readline(&prompt) {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => continue,
            Err(ReadlineError::Eof) => break,
            // The size of the window has changed, or a signal has arrived.
            Err(ReadlineError::Signal(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        append_history(&mut editor, history.as_ref(), &line);
        match handle_line(&mut runner, editor.helper().map(EditorHelper::names), &line) {
            Ok(Flow::Continue) => {}
            Ok(Flow::Quit) => break,
            Err(error) if terminal::is_broken_pipe(&error) => return Err(error),
            // A file that cannot be written does not end the prompt.
            Err(error) => terminal::print_error(&format!("{error:#}")),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the command or the statements of a line.
fn handle_line(
    runner: &mut QueryRunner,
    completion: Option<&CompletionNames>,
    line: &str,
) -> anyhow::Result<Flow> {
    if let Some(command) = commands::parse_command(line) {
        return commands::run(runner, completion, &command);
    }
    runner.run(&Script::new(None, line.to_owned()), &[])?;
    Ok(Flow::Continue)
}

fn editor(line_editor: EditorHelper) -> rustyline::Result<Editor<EditorHelper, FileHistory>> {
    let config = Config::builder()
        .max_history_size(MAX_HISTORY)?
        .history_ignore_space(true)
        .completion_type(CompletionType::List)
        .completion_show_all_if_ambiguous(true)
        .bell_style(BellStyle::None)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(line_editor));
    Ok(editor)
}

/// Loads the history, and returns the path of its file.
fn load_history(editor: &mut Editor<EditorHelper, FileHistory>) -> Option<PathBuf> {
    let folder = paths::state_dir().ok()?;
    std::fs::create_dir_all(&folder).ok()?;
    let file = folder.join("history");
    // The first time there is no history, and one that cannot be read is treated the same.
    let _ = editor.load_history(&file);
    Some(file)
}

/// Appends a line to the history at once, so that it survives a crash.
fn append_history(editor: &mut Editor<EditorHelper, FileHistory>, file: Option<&PathBuf>, line: &str) {
    let line = line.trim();
    if line.is_empty() {
        return;
    }
    // A history that cannot be written is ignored.
    let is_new = editor.add_history_entry(line).unwrap_or(false);
    if let Some(file) = file.filter(|_| is_new && !editor.history().is_empty()) {
        let _ = editor.append_history(file);
    }
}

/// Prints the name of the target, its number of events, and examples.
fn print_welcome(runner: &QueryRunner) -> anyhow::Result<()> {
    let count = runner.fetch("SELECT count(*) FROM events", &[]).map_err(|error| {
        let hint = error.hint.map(|hint| format!("; {hint}")).unwrap_or_default();
        anyhow::anyhow!("{}{hint}", error.message)
    })?;
    let count =
        count.first().and_then(|batch| batch.column(0).as_primitive_opt::<Int64Type>()?.iter().next()?);
    let events = format_count(count.unwrap_or(0).unsigned_abs(), "event");
    let target = runner.target.name();
    terminal::print_note(&format!(
        "Reading {target}: {events}. Statements end with ; and .help tells the rest. For example:\n  \
         SELECT category, count(*) AS n FROM events GROUP BY category ORDER BY n DESC;\n  \
         SELECT time, service, canonical, message FROM errors ORDER BY time DESC LIMIT 10;"
    ));
    Ok(())
}

/// Returns true when Enter ends the input: commands and blank lines end at once, statements with their semicolon.
fn is_finished(input: &str) -> bool {
    commands::parse_command(input).is_some() || super::statements::is_complete(input)
}

/// Returns the words of a text in lower case, which may be names.
fn names_in(text: &str) -> impl Iterator<Item = String> {
    let names = tokens(text).filter(|token| matches!(token.kind, TokenKind::Word | TokenKind::Name));
    names.map(|token| token.text.trim_matches('"').to_lowercase())
}
