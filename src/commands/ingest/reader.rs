//! Reads the inputs one after another in a separate thread, and sends their chunks to the run.
//!
//! Decompression and hashing continue while earlier chunks are delivered; the capacity of the channel bounds the lead.

use super::chunks::{Chunk, ChunkSizes, Chunker};
use super::hashing_reader::HashingReader;
use super::ledger::Entry;
use super::resume;
use crate::cli::input::{Input, errors};
use crate::cli::progress::ProgressHandle;
use std::io::{self, Read};
use tokio::sync::mpsc::Sender;

/// A message of the reader. Messages are sent in order.
pub(super) enum ReaderMessage {
    /// An input begins. Streams are not recorded, so they have no entry.
    Begin { file: usize, entry: Option<Entry>, is_continued: bool },
    /// A chunk of an input.
    Chunk { file: usize, chunk: Chunk },
    /// An input ended.
    End { file: usize, how: InputEnd },
}

/// The result of reading an input.
#[derive(Debug, Clone)]
pub(super) enum InputEnd {
    /// Everything was read.
    Complete,
    /// The input was ingested before, and has nothing new.
    AlreadyIngested(Box<Entry>),
    /// The input is the same as this one of the same command.
    DuplicateOf(String),
    /// The input could not be read, or not to its end, for this reason.
    Failed(String),
}

/// The state of the reader.
pub(super) struct Reader {
    pub(super) inputs: Vec<Input>,
    /// The entries of earlier runs.
    pub(super) ingested: Vec<Entry>,
    /// The name of this run, if everything is to be ingested again.
    pub(super) again: Option<String>,
    pub(super) progress: ProgressHandle,
    pub(super) messages: Sender<ReaderMessage>,
    /// The identifier of the next new entry.
    pub(super) next_id: u64,
}

/// The receiver of messages is gone, so the run is over.
struct Disconnected;

type SendResult = Result<(), Disconnected>;

impl Reader {
    /// Reads all inputs, or until the receiver of messages is gone.
    pub(super) fn run(mut self) {
        let mut read_so_far = Vec::new();
        for file in 0..self.inputs.len() {
            if self.file(file, &mut read_so_far).is_err() {
                return;
            }
        }
    }

    fn send(&self, messages: ReaderMessage) -> SendResult {
        self.messages.blocking_send(messages).map_err(|_| Disconnected)
    }

    fn end(&self, file: usize, how: InputEnd) -> SendResult {
        self.send(ReaderMessage::End { file, how })
    }

    /// Reads one input; `read_so_far` has the entries of the inputs that this run has read before.
    fn file(&mut self, file: usize, read_so_far: &mut Vec<Entry>) -> SendResult {
        let input = self.inputs[file].clone();
        self.progress.set_input(&input);
        let opened = if input.is_stream() {
            self.stream(file, &input)
        } else {
            self.ingested(file, &input, read_so_far)
        };
        match opened {
            Ok(messages) => messages,
            Err(error) => self.end(file, InputEnd::Failed(errors::open_error(&input.name, &error))),
        }
    }

    /// Reads a stream, which can be read only once: it is not looked up, and its whole lines are sent as they arrive.
    fn stream(&self, file: usize, input: &Input) -> io::Result<SendResult> {
        let hashing_reader = HashingReader::new(input.open(&self.progress)?);
        let mut chunks = Chunker::streaming(hashing_reader, ChunkSizes::default());
        Ok(self
            .send(ReaderMessage::Begin { file, entry: None, is_continued: false })
            .and_then(|()| self.chunks(file, input, &mut chunks)))
    }

    /// Reads a file from the position up to which it is known.
    fn ingested(
        &mut self,
        file: usize,
        input: &Input,
        read_so_far: &mut Vec<Entry>,
    ) -> io::Result<SendResult> {
        let from = self.progress.position();
        let ingested: Vec<Entry> = self.ingested.iter().chain(read_so_far.iter()).cloned().collect();
        let mut resume_point = resume::find_resume_point(&ingested, || {
            self.progress.rewind_to(from);
            input.open(&self.progress)
        })?;
        if resume_point.has_nothing_new()
            && let Some((mut entry, ingested)) = resume_point.entry.take()
        {
            entry.lines = entry.lines_at(ingested);
            let same = read_so_far.iter().any(|other| other.id == entry.id);
            let how = if same {
                InputEnd::DuplicateOf(entry.name)
            } else {
                InputEnd::AlreadyIngested(Box::new(entry))
            };
            return Ok(self.end(file, how));
        }
        let is_continued = resume_point.reader.position() > 0;
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let mut entry = match resume_point.entry {
            Some((mut entry, ingested)) if is_continued => {
                entry.resume_from(ingested, id);
                entry
            }
            // A text without progress is identified by its name only.
            Some((entry, _)) if entry.name == input.name => entry,
            _ => Entry::new(id, &input.name, resume_point.first_line, self.again.clone()),
        };
        entry.name.clone_from(&input.name);
        let mut chunks = Chunker::new(resume_point.reader, ChunkSizes::default(), entry.plans.clone());
        let messages = self
            .send(ReaderMessage::Begin { file, entry: Some(entry.clone()), is_continued })
            .and_then(|()| self.chunks(file, input, &mut chunks));
        entry.done = chunks.reader().offset();
        read_so_far.push(entry);
        Ok(messages)
    }

    fn chunks<R: Read>(&self, file: usize, input: &Input, chunks: &mut Chunker<R>) -> SendResult {
        while let Some(chunk) = chunks.next() {
            self.send(ReaderMessage::Chunk { file, chunk })?;
        }
        let failure = chunks.reader().error().map(|error| errors::read_error(&input.name, error));
        self.end(file, failure.map_or(InputEnd::Complete, InputEnd::Failed))
    }
}
