//! What the line editor asks about what is being typed: whether it is complete, how it goes on, and what to colour.

use super::words::Words;
use super::{commands, is_finished};
use crate::sql::statements::{Kind, tokens};
use crate::terminal::Look;
use clap::builder::styling::AnsiColor;
use rustyline::completion::{Completer, FilenameCompleter, Pair};
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{Context, Helper, Result};
use std::borrow::Cow;

/// Helps the line editor.
pub(super) struct Editing {
    words: Words,
    files: FilenameCompleter,
    look: Look,
}

impl Editing {
    pub(super) fn new(words: Words, look: Look) -> Self {
        Self { words, files: FilenameCompleter::new(), look }
    }

    pub(super) fn words(&self) -> &Words {
        &self.words
    }
}

impl Helper for Editing {}

impl Hinter for Editing {
    type Hint = String;
}

impl Validator for Editing {
    fn validate(&self, context: &mut ValidationContext<'_>) -> Result<ValidationResult> {
        let is_finished = is_finished(context.input());
        Ok(if is_finished { ValidationResult::Valid(None) } else { ValidationResult::Incomplete })
    }
}

impl Completer for Editing {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, context: &Context<'_>) -> Result<(usize, Vec<Pair>)> {
        if commands::wants_file(line) {
            return self.files.complete(line, position, context);
        }
        let (start, found) = self.words.completions(line, position);
        let pair = |word: String| Pair { display: word.clone(), replacement: word };
        Ok((start, found.into_iter().map(pair).collect()))
    }
}

impl Highlighter for Editing {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if !self.look.colour || line.trim_start().starts_with('.') {
            return Cow::Borrowed(line);
        }
        let coloured = tokens(line).map(|token| match token.kind {
            Kind::Word if self.words.is_keyword(token.text) => self.look.bold(token.text),
            Kind::Text => self.look.paint(token.text, AnsiColor::Green),
            Kind::Comment => self.look.paint(token.text, AnsiColor::BrightBlack),
            _ => token.text.to_owned(),
        });
        Cow::Owned(coloured.collect())
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.look.colour && kind != CmdKind::MoveCursor
    }
}
