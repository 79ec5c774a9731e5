//! Reading a folder of segments back.
//!
//! What must always hold: nothing in the folder is changed here, and nothing in it stops the reading but a format
//! from the future.
use super::account::Account;
use super::format::{self, ALIGN, BadHeader, LABELS_END, SegmentHeader};
use super::ranges::Ranges;
use super::scan::{self, Piece};
use super::{LogError, Record, Replay};
use crate::disk::Disk;
use arrow::buffer::Buffer;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The segments of a folder, by their names and headers.
#[derive(Debug)]
pub(super) struct Survey {
    segments: Vec<Surveyed>,
    /// The refused sequences of all headers. They must be known before the first record is handed out, because they
    /// stand in the segments behind it.
    voids: Ranges,
}

#[derive(Debug)]
struct Surveyed {
    number: u64,
    path: PathBuf,
    bytes: u64,
    header: Option<SegmentHeader>,
}

/// A segment that was read.
#[derive(Debug)]
pub(super) struct PastSegment {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    /// The length of the file.
    pub(super) bytes: u64,
    /// The lowest sequence it can hold.
    pub(super) first: u64,
    /// The highest sequence in it, as far as is known.
    pub(super) last: u64,
    /// The length up to which anything is in it. Behind it are only zeros.
    pub(super) used: u64,
    /// Whether it holds nothing but a header, or not even that.
    pub(super) empty: bool,
}

/// The last group of the newest run, as it stands in one segment. No later frame says that it was made durable: it
/// may have been refused because that failed, and be in the kernel's memory only.
#[derive(Debug)]
struct Unwitnessed {
    path: PathBuf,
    /// The content of the segment up to the end of its last frame.
    content: Buffer,
    /// Where the group begins; 0 when it is the segment's first, because then its header has no witness either.
    from: usize,
}

/// What a log has to know of its past to go on.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) replay: Replay,
    pub(super) segments: Vec<PastSegment>,
    pub(super) voids: Ranges,
    /// No segment has had this number or a higher one.
    pub(super) next_number: u64,
    /// No record has had this sequence or a higher one.
    pub(super) next_sequence: u64,
    unwitnessed: Vec<Unwitnessed>,
}

impl Past {
    /// Makes sure that all that was handed out survives a power loss, since it may be the reason for a yes ("I have
    /// this already"). What has a witness does. The rest is written once more: a sync is not enough.
    pub(super) fn secure(&mut self, disk: &dyn Disk) {
        for Unwitnessed { path, content, from } in self.unwitnessed.drain(..) {
            if let Err(error) = disk.rewrite(&path, from as u64, &content[from..]) {
                tracing::warn!(%error, segment = %path.display(), "cannot make the end of the log durable");
                self.replay.unsynced_segments += 1;
            }
        }
    }
}

impl Survey {
    /// Lists the segments and reads their headers.
    pub(super) fn take(disk: &dyn Disk, folder: &Path) -> Result<Self, LogError> {
        let error = |error| LogError::Folder { folder: folder.to_owned(), error };
        let listed = disk.list(folder).map_err(error)?;
        let mut survey = Self { segments: Vec::new(), voids: Ranges::default() };
        for file in listed {
            let Some(number) = format::number(&file.name) else { continue };
            let path = folder.join(&file.name);
            let header = match header(disk, &path) {
                Ok(header) => Some(header),
                Err(BadHeader::Newer(version)) => return Err(LogError::Newer { path, version }),
                Err(BadHeader::Damaged) => None,
            };
            for (first, last) in header.iter().flat_map(|header| &header.voids) {
                survey.voids.add(*first, *last);
            }
            survey.segments.push(Surveyed { number, path, bytes: file.bytes, header });
        }
        survey.segments.sort_unstable_by_key(|segment| segment.number);
        Ok(survey)
    }

    /// Hands out every intact record, in order.
    pub(super) fn replay(self, disk: &dyn Disk, visit: &mut dyn FnMut(Record)) -> Past {
        let Self { segments, voids } = self;
        let next_number = segments.last().map_or(1, |segment| segment.number + 1);
        let account = Account::new(&voids);
        let mut reader =
            Reader { disk, visit, account, preamble: Arc::default(), floor: 1, unwitnessed: Vec::new() };
        let segments: Vec<_> = segments.into_iter().filter_map(|segment| reader.segment(segment)).collect();
        let floor = reader.floor.max(voids.as_slice().last().map_or(1, |void| void.1 + 1));
        let (replay, unwitnessed) = (reader.account.finish(), reader.unwitnessed);
        // Sequences that may stand in what could not be read are not given again: it may be readable tomorrow.
        let unread = (replay.damaged_bytes + replay.torn_bytes).div_ceil(ALIGN as u64);
        Past { replay, segments, voids, next_number, next_sequence: floor + unread, unwitnessed }
    }
}

fn header(disk: &dyn Disk, path: &Path) -> Result<SegmentHeader, BadHeader> {
    let labels = disk.read(path, LABELS_END).map_err(|_| BadHeader::Damaged)?;
    let frames = SegmentHeader::frames_begin(&labels).ok_or(BadHeader::Damaged)?;
    SegmentHeader::decode(&disk.read(path, frames).map_err(|_| BadHeader::Damaged)?)
}

struct Reader<'a> {
    disk: &'a dyn Disk,
    visit: &'a mut dyn FnMut(Record),
    account: Account<'a>,
    /// The newest preamble: segments with the same share it.
    preamble: Arc<[u8]>,
    /// Higher than every sequence named so far.
    floor: u64,
    /// Of the run being read.
    unwitnessed: Vec<Unwitnessed>,
}

impl Reader<'_> {
    /// Reads one segment; `None` when it is gone.
    fn segment(&mut self, segment: Surveyed) -> Option<PastSegment> {
        let content = self.disk.read(&segment.path, u64::MAX);
        if content.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            self.account.released_segment();
            return None;
        }
        self.account.file(segment.number);
        let first = self.account.expected();
        let mut past = PastSegment {
            number: segment.number,
            path: segment.path,
            bytes: segment.bytes,
            first,
            last: first.saturating_sub(1),
            used: segment.bytes,
            empty: false,
        };
        match segment.header {
            Some(header) => self.with_header(&header, content, &mut past),
            None => self.without_header(content, &mut past),
        }
        Some(past)
    }

    fn with_header(&mut self, header: &SegmentHeader, content: io::Result<Buffer>, past: &mut PastSegment) {
        self.witness(|account| account.segment(header));
        self.floor = self.floor.max(header.first).max(header.run).max(header.durable.saturating_add(1));
        past.first = header.first;
        past.last = header.first.saturating_sub(1);
        match content {
            Ok(content) => self.frames(header, content, past),
            Err(error) => self.unreadable(past, &error.to_string()),
        }
    }

    fn without_header(&mut self, content: io::Result<Buffer>, past: &mut PastSegment) {
        match content {
            Ok(content) => {
                past.used = scan::used(&content) as u64;
                // Made ahead and never used; or, when another process is writing, used since it was surveyed.
                past.empty = past.used == 0;
                if !past.empty && SegmentHeader::decode(&content).is_err() {
                    self.account.unreadable_segment(past.used);
                    tracing::warn!(segment = %past.path.display(), "the header of a log segment is damaged");
                }
            }
            Err(error) => {
                self.account.unreadable_segment(past.bytes);
                tracing::warn!(%error, segment = %past.path.display(), "cannot read a log segment");
            }
        }
    }

    fn frames(&mut self, header: &SegmentHeader, mut content: Buffer, past: &mut PastSegment) {
        let begin = header.bytes();
        let (pieces, end) = scan::pieces(&content, header.salt, begin);
        past.used = end as u64;
        past.empty = pieces.is_empty();
        // Records are slices of this and keep it alive: without what is only preallocated.
        content = content.slice_with_length(0, end.min(content.len()));
        content.shrink_to_fit();
        if *self.preamble != *header.preamble {
            self.preamble = Arc::clone(&header.preamble);
        }
        for piece in &pieces {
            self.piece(piece, &content, begin, past);
        }
        let bad = pieces.iter().filter(|piece| !matches!(piece, Piece::Intact { .. })).count();
        if bad > 0 {
            tracing::warn!(stretches = bad, segment = %past.path.display(), "a log segment is torn or damaged");
        }
    }

    fn piece(&mut self, piece: &Piece, content: &Buffer, begin: usize, past: &mut PastSegment) {
        match piece {
            Piece::Intact { header, payload } => {
                self.seen(header.sequence, past);
                if self.witness(|account| account.intact(header)) {
                    let frame = payload - ALIGN;
                    self.needs_witness(past, content, if frame == begin { 0 } else { frame });
                    (self.visit)(Record {
                        sequence: header.sequence,
                        schema: header.schema,
                        payload: content.slice_with_length(*payload, header.length),
                        preamble: Arc::clone(&self.preamble),
                    });
                }
            }
            Piece::Spoiled { header, bytes } => {
                self.seen(header.sequence, past);
                self.witness(|account| account.spoiled(header, *bytes as u64));
            }
            Piece::Unreadable { bytes } => self.account.unreadable(*bytes as u64),
        }
    }

    /// Does something that may show that everything before it was durable.
    fn witness<T>(&mut self, note: impl FnOnce(&mut Account<'_>) -> T) -> T {
        let before = self.account.durable();
        let noted = note(&mut self.account);
        if self.account.durable() != before {
            self.unwitnessed.clear();
        }
        noted
    }

    /// Notes where in this segment the last group begins, as far as is known.
    fn needs_witness(&mut self, past: &PastSegment, content: &Buffer, from: usize) {
        if self.unwitnessed.last().is_none_or(|last| last.path != past.path) {
            self.unwitnessed.push(Unwitnessed { path: past.path.clone(), content: content.clone(), from });
        }
    }

    fn seen(&mut self, sequence: u64, past: &mut PastSegment) {
        past.last = past.last.max(sequence);
        self.floor = self.floor.max(sequence.saturating_add(1));
    }

    fn unreadable(&mut self, past: &PastSegment, error: &str) {
        self.account.unreadable(past.bytes);
        tracing::warn!(error, segment = %past.path.display(), "cannot read a log segment");
    }
}
