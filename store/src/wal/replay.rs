//! Reads the segments of a folder back.
//!
//! Invariants: nothing in the folder is changed here, and nothing in it stops the reading except a newer format
//! version.
use super::format::{self, ALIGN, BadHeader, LABELS_END, SegmentHeader};
use super::loss_accounting::LossAccount;
use super::salvage::{self, SalvagedItem};
use super::segment_reader::{SegmentReader, Step};
use super::sequence_ranges::SequenceRanges;
use super::{Record, Replay, WalError};
use crate::disk::{Disk, DiskRead};
use arrow::buffer::Buffer;
use std::cmp::Reverse;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The segments of a folder, by their names and headers.
#[derive(Debug, Clone)]
pub(super) struct SegmentIndex {
    segments: Vec<IndexedSegment>,
    /// The rejected sequences of all headers. They must be known before the first record is passed on, because they are
    /// in the segments after it.
    voids: SequenceRanges,
}

#[derive(Debug, Clone)]
pub(super) struct IndexedSegment {
    number: u64,
    pub(super) path: PathBuf,
    bytes: u64,
    /// The open file, which can be read even if the segment is released later.
    pub(super) file: Result<Arc<dyn DiskRead>, Arc<io::Error>>,
    pub(super) header: Option<SegmentHeader>,
}

/// A segment that was read.
#[derive(Debug)]
pub(super) struct ReplayedSegment {
    pub(super) number: u64,
    pub(super) path: PathBuf,
    /// The length of the file.
    pub(super) bytes: u64,
    /// The lowest sequence that it can hold.
    pub(super) first: u64,
    /// The highest sequence in it, as far as is known.
    pub(super) last: u64,
    /// The length of the used part. Only zeros follow it.
    pub(super) used: u64,
    /// True if the segment has only a header, or not even that.
    pub(super) empty: bool,
}

/// The last group of the newest run in one segment. No later frame confirms that it became durable: the sync may have
/// failed, and the group may only be in the memory of the kernel.
#[derive(Debug)]
struct UnconfirmedGroup {
    path: PathBuf,
    /// The content of the segment up to the end of its last frame.
    content: Buffer,
    /// The offset of the group; 0 if it is the segment's first, because then the header is not confirmed either.
    from: usize,
}

/// The result of the replay that the WAL needs to continue.
#[derive(Debug)]
pub(super) struct ReplayState {
    pub(super) replay: Replay,
    pub(super) segments: Vec<ReplayedSegment>,
    pub(super) voids: SequenceRanges,
    /// The lowest segment number that was never used.
    pub(super) next_number: u64,
    /// The lowest sequence that was never used.
    pub(super) next_sequence: u64,
    unwitnessed: Vec<UnconfirmedGroup>,
}

impl ReplayState {
    /// Ensures that all records that were passed on survive a power loss, since a duplicate of one may be acknowledged
    /// because of it. Records that a later frame confirms do already. The rest is written again, because a sync is not
    /// enough.
    pub(super) fn secure(&mut self, disk: &dyn Disk) {
        for UnconfirmedGroup { path, content, from } in self.unwitnessed.drain(..) {
            if let Err(error) = disk.rewrite(&path, from as u64, &content[from..]) {
                tracing::warn!(%error, segment = %path.display(), "cannot make the end of the log durable");
                self.replay.unsynced_segments += 1;
            }
        }
    }
}

impl SegmentIndex {
    /// Lists the segments and reads their headers.
    pub(super) fn take(disk: &dyn Disk, folder: &Path) -> Result<Self, WalError> {
        let error = |error| WalError::Folder { folder: folder.to_owned(), error };
        let listed = disk.list(folder).map_err(error)?;
        let mut survey = Self { segments: Vec::new(), voids: SequenceRanges::default() };
        let mut numbered: Vec<_> =
            listed.into_iter().filter_map(|file| Some((format::number(&file.name)?, file))).collect();
        // Segments are released oldest first. Opening the newest first leaves no gap between the opened ones.
        numbered.sort_unstable_by_key(|(number, _)| Reverse(*number));
        for (number, listed) in numbered {
            let path = folder.join(&listed.name);
            let file = disk.open(&path);
            if is_gone(&file) {
                break;
            }
            let header = match header(&file) {
                Ok(header) => Some(header),
                Err(BadHeader::Newer(version)) => return Err(WalError::Newer { path, version }),
                Err(BadHeader::Damaged) => None,
            };
            for (first, last) in header.iter().flat_map(|header| &header.voids) {
                survey.voids.add(*first, *last);
            }
            survey.segments.push(IndexedSegment {
                number,
                path,
                bytes: listed.bytes,
                file: file.map_err(Arc::new),
                header,
            });
        }
        survey.segments.reverse();
        Ok(survey)
    }

    /// Returns the total length of all segments.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Returns the segments of this index that a later one no longer has, followed by those of the later one. Returns
    /// `None` when the oldest of these is newer than all of this index, because segments in between are unknown.
    pub(super) fn followed_by(&self, later: Self) -> Option<Vec<IndexedSegment>> {
        let oldest = later.segments.first().map_or(u64::MAX, |segment| segment.number);
        let newest = self.segments.last().map_or(u64::MAX, |segment| segment.number);
        let gone = self.segments.iter().filter(|segment| segment.number < oldest).cloned();
        (oldest <= newest).then(|| gone.chain(later.segments).collect())
    }

    /// Skips the oldest segments whose records are all at or below a sequence.
    fn skip_to(&mut self, after: u64) {
        let first_of = |segment: &IndexedSegment| segment.header.as_ref().map(|header| header.first);
        let newer =
            self.segments.iter().rposition(|segment| first_of(segment).is_some_and(|f| f <= after + 1));
        self.segments.drain(..newer.unwrap_or_default());
    }

    /// Passes every intact record to a function, in order, until the function stops.
    pub(super) fn replay(self, visit: &mut dyn FnMut(Record) -> ControlFlow<()>) -> ReplayState {
        self.read(None, visit)
    }

    /// Like `replay`, for the records after a sequence, with as little of a segment in memory as possible.
    pub(super) fn replay_after(
        mut self,
        after: u64,
        visit: &mut dyn FnMut(Record) -> ControlFlow<()>,
    ) -> Replay {
        self.skip_to(after);
        self.read(Some(after), visit).replay
    }

    fn read(self, after: Option<u64>, visit: &mut dyn FnMut(Record) -> ControlFlow<()>) -> ReplayState {
        let Self { segments, voids } = self;
        let next_number = segments.last().map_or(1, |segment| segment.number + 1);
        let account = LossAccount::new(&voids);
        let mut reader = Reader {
            visit,
            after,
            stopped: false,
            account,
            preamble: Arc::default(),
            floor: 1,
            unwitnessed: Vec::new(),
        };
        let mut past = Vec::with_capacity(segments.len());
        for segment in segments {
            if !reader.stopped {
                past.push(reader.segment(segment));
            }
        }
        let segments = past;
        let floor = reader.floor.max(voids.as_slice().last().map_or(1, |void| void.1 + 1));
        let (replay, unwitnessed) = (reader.account.finish(), reader.unwitnessed);
        // Sequences that may be in unreadable bytes are not assigned again, because the bytes may become readable
        // later.
        let unread = (replay.damaged_bytes + replay.torn_bytes).div_ceil(ALIGN as u64);
        ReplayState { replay, segments, voids, next_number, next_sequence: floor + unread, unwitnessed }
    }
}

fn header(file: &io::Result<Arc<dyn DiskRead>>) -> Result<SegmentHeader, BadHeader> {
    let read = |limit| file.as_ref().ok()?.read(limit).ok();
    let labels = read(LABELS_END).ok_or(BadHeader::Damaged)?;
    let frames = SegmentHeader::frames_begin(&labels).ok_or(BadHeader::Damaged)?;
    SegmentHeader::decode(&read(frames).ok_or(BadHeader::Damaged)?)
}

/// Returns true if the writing process has released the segment since the folder was listed.
fn is_gone<T>(file: &io::Result<T>) -> bool {
    file.as_ref().is_err_and(|error| error.kind() == ErrorKind::NotFound)
}

struct Reader<'a> {
    visit: &'a mut dyn FnMut(Record) -> ControlFlow<()>,
    /// If set, only records after this one are passed on, one at a time.
    after: Option<u64>,
    /// True if the visitor wants no more records.
    stopped: bool,
    account: LossAccount<'a>,
    /// The newest preamble, which segments with an equal one share.
    preamble: Arc<[u8]>,
    /// A sequence that is higher than every sequence so far.
    floor: u64,
    /// The unconfirmed groups of the run being read.
    unwitnessed: Vec<UnconfirmedGroup>,
}

impl Reader<'_> {
    fn segment(&mut self, segment: IndexedSegment) -> ReplayedSegment {
        self.account.file(segment.number);
        let first = self.account.expected();
        let mut past = ReplayedSegment {
            number: segment.number,
            path: segment.path,
            bytes: segment.bytes,
            first,
            last: first.saturating_sub(1),
            used: segment.bytes,
            empty: false,
        };
        let file = segment.file.map_err(|error| io::Error::new(error.kind(), error));
        match segment.header {
            Some(header) => self.with_header(&header, file, &mut past),
            None => self.without_header(file.and_then(|file| file.read(u64::MAX)), &mut past),
        }
        past
    }

    fn with_header(
        &mut self,
        header: &SegmentHeader,
        file: io::Result<Arc<dyn DiskRead>>,
        past: &mut ReplayedSegment,
    ) {
        self.witness(|account| account.segment(header));
        self.floor = self.floor.max(header.first).max(header.run).max(header.durable.saturating_add(1));
        past.first = header.first;
        past.last = header.first.saturating_sub(1);
        if *self.preamble != *header.preamble {
            self.preamble = Arc::clone(&header.preamble);
        }
        if let (Some(after), Ok(file)) = (self.after, &file)
            && self.one_by_one(header, &**file, after, past)
        {
            return;
        }
        match file.and_then(|file| file.read(u64::MAX)) {
            Ok(content) => self.frames(header, content, past),
            Err(error) => self.unreadable(past, &error.to_string()),
        }
    }

    fn without_header(&mut self, content: io::Result<Buffer>, past: &mut ReplayedSegment) {
        match content {
            Ok(content) => {
                past.used = salvage::used(&content) as u64;
                // The segment was prepared and never used; or another process has used it since it was indexed.
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

    /// Passes on the records of a segment one at a time, as long as nothing is damaged. Returns false on damage:
    /// records that were already passed on are then recognised by their sequence, and not passed on again.
    fn one_by_one(
        &mut self,
        header: &SegmentHeader,
        file: &dyn DiskRead,
        after: u64,
        past: &mut ReplayedSegment,
    ) -> bool {
        let mut walk = SegmentReader::new(file, header.salt, header.bytes());
        while !self.stopped {
            let frame = match walk.next() {
                Step::Frame(frame) => frame,
                Step::End => return true,
                Step::Odd => return false,
            };
            let payload = if frame.sequence > after { walk.payload(&frame) } else { Some(Buffer::default()) };
            let Some(payload) = payload else { return false };
            self.seen(frame.sequence, past);
            if self.witness(|account| account.intact(&frame)) && frame.sequence > after {
                let (sequence, schema) = (frame.sequence, frame.schema);
                self.hand_out(Record { sequence, schema, payload, preamble: Arc::clone(&self.preamble) });
            }
        }
        true
    }

    fn frames(&mut self, header: &SegmentHeader, mut content: Buffer, past: &mut ReplayedSegment) {
        let begin = header.bytes();
        let (pieces, end) = salvage::pieces(&content, header.salt, begin);
        past.used = end as u64;
        past.empty = pieces.is_empty();
        // Records are slices of this buffer and keep it alive, so the preallocated rest is left out.
        content = content.slice_with_length(0, end.min(content.len()));
        content.shrink_to_fit();
        for piece in &pieces {
            self.piece(piece, &content, begin, past);
        }
        let bad = pieces.iter().filter(|piece| !matches!(piece, SalvagedItem::Intact { .. })).count();
        if bad > 0 {
            tracing::warn!(stretches = bad, segment = %past.path.display(), "a log segment is torn or damaged");
        }
    }

    fn piece(&mut self, piece: &SalvagedItem, content: &Buffer, begin: usize, past: &mut ReplayedSegment) {
        match piece {
            SalvagedItem::Intact { header, payload } => {
                self.seen(header.sequence, past);
                if self.witness(|account| account.intact(header)) {
                    let frame = payload - ALIGN;
                    self.needs_witness(past, content, if frame == begin { 0 } else { frame });
                    self.hand_out(Record {
                        sequence: header.sequence,
                        schema: header.schema,
                        payload: content.slice_with_length(*payload, header.length),
                        preamble: Arc::clone(&self.preamble),
                    });
                }
            }
            SalvagedItem::Spoiled { header, bytes } => {
                self.seen(header.sequence, past);
                self.witness(|account| account.spoiled(header, *bytes as u64));
            }
            SalvagedItem::Unreadable { bytes } => self.account.unreadable(*bytes as u64),
        }
    }

    fn hand_out(&mut self, record: Record) {
        if !self.stopped {
            self.stopped = (self.visit)(record).is_break();
        }
    }

    /// Takes a note that may confirm that everything before it was durable.
    fn witness<T>(&mut self, note: impl FnOnce(&mut LossAccount<'_>) -> T) -> T {
        let before = self.account.durable();
        let noted = note(&mut self.account);
        if self.account.durable() != before {
            self.unwitnessed.clear();
        }
        noted
    }

    /// Records that the last group of this segment, which begins at `from`, is not confirmed.
    fn needs_witness(&mut self, past: &ReplayedSegment, content: &Buffer, from: usize) {
        if self.unwitnessed.last().is_none_or(|last| last.path != past.path) {
            self.unwitnessed.push(UnconfirmedGroup {
                path: past.path.clone(),
                content: content.clone(),
                from,
            });
        }
    }

    fn seen(&mut self, sequence: u64, past: &mut ReplayedSegment) {
        past.last = past.last.max(sequence);
        self.floor = self.floor.max(sequence.saturating_add(1));
    }

    fn unreadable(&mut self, past: &ReplayedSegment, error: &str) {
        self.account.unreadable(past.bytes);
        tracing::warn!(error, segment = %past.path.display(), "cannot read a log segment");
    }
}
