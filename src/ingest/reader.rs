//! Reads the inputs one after another, in a thread of its own, and hands their pieces over.
//!
//! Unpacking and hashing go on while earlier pieces are worked on; how far it may be ahead is bounded by the channel.

use super::ledger::Entry;
use super::pieces::{Piece, Pieces, Sizes};
use super::resume;
use super::text::Text;
use crate::input::{Input, refusal};
use crate::progress::Meter;
use std::io::{self, Read};
use tokio::sync::mpsc::Sender;

/// What the reader tells, in order.
pub(super) enum Told {
    /// An input begins. Of a stream nothing is remembered, so there is no entry.
    Begin { file: usize, entry: Option<Entry>, is_continued: bool },
    /// Lines of it.
    Piece { file: usize, piece: Piece },
    /// It is over.
    End { file: usize, how: Ended },
}

/// How an input ended.
#[derive(Debug, Clone)]
pub(super) enum Ended {
    /// Everything was read.
    Whole,
    /// It was ingested before, and nothing is new.
    Already(Box<Entry>),
    /// It is the same as this one of the same command.
    SameAs(String),
    /// It could not be read, or not to its end; why.
    Failed(String),
}

/// What the reader works with.
pub(super) struct Reader {
    pub(super) inputs: Vec<Input>,
    /// What is known from earlier runs.
    pub(super) known: Vec<Entry>,
    /// The name of this run, when everything is to be ingested once more.
    pub(super) again: Option<String>,
    pub(super) meter: Meter,
    pub(super) told: Sender<Told>,
    /// Gives new entries their numbers.
    pub(super) next_id: u64,
}

/// Nobody listens any more: the run is over.
struct Hung;

type Heard = Result<(), Hung>;

impl Reader {
    /// Reads everything, or until nobody listens.
    pub(super) fn run(mut self) {
        let mut read = Vec::new();
        for file in 0..self.inputs.len() {
            if self.file(file, &mut read).is_err() {
                return;
            }
        }
    }

    fn tell(&self, told: Told) -> Heard {
        self.told.blocking_send(told).map_err(|_| Hung)
    }

    fn end(&self, file: usize, how: Ended) -> Heard {
        self.tell(Told::End { file, how })
    }

    /// Reads one input; `read` is what this run has read before.
    fn file(&mut self, file: usize, read: &mut Vec<Entry>) -> Heard {
        let input = self.inputs[file].clone();
        self.meter.at(&input);
        let opened =
            if input.is_stream() { self.stream(file, &input) } else { self.known(file, &input, read) };
        match opened {
            Ok(told) => told,
            Err(error) => self.end(file, Ended::Failed(refusal::opening(&input.name, &error))),
        }
    }

    /// Reads what can be read once: nothing is looked up, and nothing that is there waits for more.
    fn stream(&self, file: usize, input: &Input) -> io::Result<Heard> {
        let text = Text::new(input.open(&self.meter)?);
        let mut pieces = Pieces::live(text, Sizes::default());
        Ok(self
            .tell(Told::Begin { file, entry: None, is_continued: false })
            .and_then(|()| self.pieces(file, input, &mut pieces)))
    }

    /// Reads a file from where it is not known.
    fn known(&mut self, file: usize, input: &Input, read: &mut Vec<Entry>) -> io::Result<Heard> {
        let from = self.meter.position();
        let known: Vec<Entry> = self.known.iter().chain(read.iter()).cloned().collect();
        let mut found = resume::find(&known, || {
            self.meter.back_to(from);
            input.open(&self.meter)
        })?;
        if found.has_nothing_new()
            && let Some((mut entry, known)) = found.entry.take()
        {
            entry.lines = entry.lines_at(known);
            let same = read.iter().any(|other| other.id == entry.id);
            let how = if same { Ended::SameAs(entry.name) } else { Ended::Already(Box::new(entry)) };
            return Ok(self.end(file, how));
        }
        let is_continued = found.text.position() > 0;
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let mut entry = match found.entry {
            Some((mut entry, known)) if is_continued => {
                entry.go_on(known, id);
                entry
            }
            // Of a text of which nothing is ingested yet, only the name tells that it is the same.
            Some((entry, _)) if entry.name == input.name => entry,
            _ => Entry::new(id, &input.name, found.first, self.again.clone()),
        };
        entry.name.clone_from(&input.name);
        let mut pieces = Pieces::new(found.text, Sizes::default(), entry.plans.clone());
        let told = self
            .tell(Told::Begin { file, entry: Some(entry.clone()), is_continued })
            .and_then(|()| self.pieces(file, input, &mut pieces));
        entry.done = pieces.text().mark();
        read.push(entry);
        Ok(told)
    }

    fn pieces<R: Read>(&self, file: usize, input: &Input, pieces: &mut Pieces<R>) -> Heard {
        while let Some(piece) = pieces.next() {
            self.tell(Told::Piece { file, piece })?;
        }
        let failure = pieces.text().failure().map(|error| refusal::reading(&input.name, error));
        self.end(file, failure.map_or(Ended::Whole, Ended::Failed))
    }
}
