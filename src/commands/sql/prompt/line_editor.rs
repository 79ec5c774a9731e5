//! Callbacks of the line editor, which check that the input is complete, complete words, and colour the input.

use super::completion::CompletionNames;
use super::{commands, is_finished};
use crate::cli::terminal::OutputStyle;
use crate::commands::sql::statements::{TokenKind, tokens};
use clap::builder::styling::AnsiColor;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper, Result};
use std::borrow::Cow;

/// The helper of the line editor.
pub(super) struct EditorHelper {
    names: CompletionNames,
    files: FilenameCompleter,
    style: OutputStyle,
}

impl EditorHelper {
    pub(super) fn new(names: CompletionNames, style: OutputStyle) -> Self {
        Self { names, files: FilenameCompleter::new(), style }
    }

    pub(super) fn names(&self) -> &CompletionNames {
        &self.names
    }
}

impl Helper for EditorHelper {}

impl Hinter for EditorHelper {
    type Hint = String;
}

impl Validator for EditorHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        let is_finished = is_finished(context.input());
        Ok(if is_finished { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for EditorHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, context: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        if commands::takes_file(line) {
            return self.files.complete(line, position, context);
        }
        let (start, candidates) = self.names.completions(line, position);
        let pair = |word: String| Pair { display: word.clone(), replacement: word };
        Ok((start, candidates.into_iter().map(pair).collect()))
    }
}

impl Highlighter for EditorHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if !self.style.colour || line.trim_start().starts_with('.') {
            return Cow::Borrowed(line);
        }
        let coloured = tokens(line).map(|token| match token.kind {
            TokenKind::Word if self.names.is_keyword(token.text) => self.style.bold(token.text),
            TokenKind::Text => self.style.paint(token.text, AnsiColor::Green),
            TokenKind::Comment => self.style.paint(token.text, AnsiColor::BrightBlack),
            _ => token.text.to_owned(),
        });
        Cow::Owned(coloured.collect())
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.style.colour && kind != CmdKind::MoveCursor
    }
}
