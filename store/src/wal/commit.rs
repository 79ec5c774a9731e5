//! The commit thread, which is the only one that writes records.
//!
//! Invariants:
//! - A record is acknowledged only after an fdatasync that covers it, its segment's header and its segment's name; and
//!   only when the segment still has that name, in the folder that was opened.
//! - Callbacks are called in the order of the sequences, and exactly once for every record.
//! - A segment in which a write or an fdatasync has failed is never written or trusted again: the kernel may have
//!   dropped data that it could not write and report success the next time. Earlier durable data in it stays.
//! - A sequence is assigned once. Those of a failed group are void, and the header of every later segment says so: no
//!   later record can be acknowledged in a way that brings a rejected one back.
//! - After a failure, first its records are rejected, then all that are queued, then the epoch rises.
use super::format::{self, FrameHeader, SegmentHeader, frame_bytes};
use super::location::FileLocation;
use super::segment_allocator::{PreparedSegment, SegmentAllocator};
use super::sequence_ranges::SequenceRanges;
use super::{CommitError, Done, RetiredSegment, Shared, WalOptions};
use crate::disk::DiskFile;
use arrow::buffer::Buffer;
use crossbeam_channel::Receiver;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

/// The size below which payloads are copied together: a part of a vectored write costs more than copying them.
const COPY_BELOW: usize = 16 << 10;
/// The bytes that pad a payload up to the next frame.
const ZEROS: [u8; format::ALIGN] = [0; format::ALIGN];

/// A message to the commit thread.
pub(super) enum CommitMessage {
    /// Stores this record.
    Append(PendingRecord),
    /// Stops, after everything that came before.
    Close,
}

/// A record that is queued to be stored.
pub(super) struct PendingRecord {
    pub(super) payload: Buffer,
    /// The checksum of the payload. It is computed on the callers' threads, because there are many of them.
    pub(super) checksum: u32,
    pub(super) epoch: u64,
    pub(super) answer: CommitCallback,
}

/// The callback of a record. It is called exactly once, whatever happens to the record, the queue or the thread.
pub(super) struct CommitCallback(Option<Done>);

impl CommitCallback {
    pub(super) fn new(done: Done) -> Self {
        Self(Some(done))
    }

    fn give(mut self, result: Result<u64, CommitError>) {
        self.call(result);
    }

    fn call(&mut self, result: Result<u64, CommitError>) {
        let Some(done) = self.0.take() else { return };
        // A bug in one caller's callback must not stop the WAL for all others.
        if catch_unwind(AssertUnwindSafe(|| done(result))).is_err() {
            tracing::error!("a callback of the log panicked");
        }
    }
}

impl Drop for CommitCallback {
    fn drop(&mut self) {
        self.call(Err(CommitError::Closed));
    }
}

/// The segment that is being written.
struct ActiveSegment {
    number: u64,
    file: Box<dyn DiskFile>,
    place: FileLocation,
    /// The size of the segment on disk.
    bytes: u64,
    salt: u64,
    /// The lowest sequence that it can hold.
    first: u64,
    /// The highest sequence that is durable in it.
    last: u64,
    /// The offset of the next frame; 0 if not even the header is written.
    position: u64,
}

/// The state of the commit thread.
pub(super) struct Committer {
    shared: Arc<Shared>,
    supply: SegmentAllocator,
    options: WalOptions,
    preamble: Arc<[u8]>,
    receiver: Receiver<CommitMessage>,
    active: Option<ActiveSegment>,
    /// The first sequence of this run.
    run: u64,
    next_sequence: u64,
    /// The number and the lowest sequence of the newest segment before the active one that holds anything.
    previous: (u64, u64),
    voids: SequenceRanges,
    /// True if there are void sequences that no durable header names.
    voids_unwritten: bool,
    /// Complete segments that must not be released yet: until a later header is durable, only their headers name the
    /// assigned sequences.
    waiting: Vec<RetiredSegment>,
    closing: bool,
    /// The length of the longest payload that is accepted.
    largest: usize,
    /// Frame headers and small payloads of the group being written. The buffer is reused.
    scratch: Vec<u8>,
}

impl Committer {
    pub(super) fn new(
        shared: Arc<Shared>,
        supply: SegmentAllocator,
        mut options: WalOptions,
        receiver: Receiver<CommitMessage>,
        (next_sequence, voids): (u64, SequenceRanges),
    ) -> Self {
        Self {
            shared,
            supply,
            preamble: std::mem::take(&mut options.preamble).into(),
            largest: usize::try_from(options.max_bytes / 4)
                .map_or(format::MAX_PAYLOAD, |b| b.min(format::MAX_PAYLOAD)),
            options,
            receiver,
            active: None,
            run: next_sequence,
            next_sequence,
            previous: (0, 0),
            voids,
            voids_unwritten: false,
            waiting: Vec::new(),
            closing: false,
            scratch: Vec::new(),
        }
    }

    /// Takes over the segments of earlier runs, then takes the first segment and makes its header durable, so that it
    /// repeats the sequences that earlier segments name, and the empty ones among these can be removed. The header may
    /// exceed `max_bytes`: a full WAL must still be able to start, and to release segments.
    pub(super) fn begin(&mut self, past: Vec<RetiredSegment>) -> Result<(), CommitError> {
        self.previous = past.last().map_or((0, 0), |newest| (newest.number, newest.first));
        self.waiting = past;
        let begun = self.supply.first().and_then(|prepared| {
            self.active = Some(ActiveSegment::new(prepared, self.next_sequence)?);
            self.write_group(&[])
        });
        if let Err(error) = &begun {
            self.shared.counters.failed(error);
            let newest = self.waiting.pop();
            self.hand_over();
            self.waiting.extend(newest);
        }
        begun.map(|_| ())
    }

    /// Returns the segment allocator.
    pub(super) fn supply(&self) -> &SegmentAllocator {
        &self.supply
    }

    /// Commits until the WAL is closed or dropped.
    pub(super) fn run(mut self) {
        let mut group = Vec::new();
        while !self.closing
            && let Ok(message) = self.receiver.recv()
        {
            self.gather(message, &mut group);
            self.commit(&mut group);
        }
        self.finish();
    }

    /// Collects the first record and those that have gathered behind it.
    fn gather(&mut self, first: CommitMessage, group: &mut Vec<PendingRecord>) {
        let (mut message, mut bytes) = (Some(first), 0);
        while let Some(next) = message.take() {
            match next {
                CommitMessage::Close => {
                    self.closing = true;
                    return;
                }
                CommitMessage::Append(pending) if pending.epoch != self.shared.epoch.load(SeqCst) => {
                    self.answer_no(pending, &CommitError::Stale);
                }
                CommitMessage::Append(pending) if pending.payload.len() > self.largest => {
                    // The records before it are stored as usual.
                    self.commit(group);
                    bytes = 0;
                    self.refuse(&mut vec![pending], &CommitError::TooLarge);
                }
                CommitMessage::Append(pending) => {
                    bytes += frame_bytes(pending.payload.len());
                    group.push(pending);
                }
            }
            if bytes < self.options.group_bytes {
                message = self.receiver.try_recv().ok();
            }
        }
    }

    /// Stores a group, if it is not empty, and calls its callbacks.
    fn commit(&mut self, group: &mut Vec<PendingRecord>) {
        if group.is_empty() {
            return;
        }
        let stored = self.make_room(group).and_then(|()| self.write_group(group));
        match stored {
            Ok(first) => self.accept(group, first),
            Err(error) => {
                self.shared.counters.failed(&error);
                self.refuse(group, &error);
            }
        }
    }

    /// Ensures that there is a segment with room for the group.
    fn make_room(&mut self, group: &[PendingRecord]) -> Result<(), CommitError> {
        let bytes: usize = group.iter().map(|pending| frame_bytes(pending.payload.len())).sum();
        if self.active.as_ref().is_some_and(|active| active.has_room(bytes as u64)) {
            return Ok(());
        }
        // The old segment is retired only when the next one exists, because it may still have room for smaller groups.
        let next = ActiveSegment::new(self.supply.next()?, self.next_sequence)?;
        if let Some(old) = self.active.replace(next) {
            self.retire(old);
        }
        Ok(())
    }

    /// Writes a group, and before it the header if it is the segment's first. When this returns the sequence of the
    /// first record, the group is durable. When it fails, its sequences are void and the segment is abandoned.
    fn write_group(&mut self, group: &[PendingRecord]) -> Result<u64, CommitError> {
        let first = self.next_sequence;
        self.next_sequence += group.len() as u64;
        let written = self.try_write(group, first).and_then(|written| {
            self.check_place()?;
            Ok(written)
        });
        match written {
            Ok((end, fsync)) => {
                self.written(end);
                if !group.is_empty() {
                    let bytes = group.iter().map(|pending| pending.payload.len() as u64).sum();
                    self.shared.counters.committed(group.len() as u64, bytes, fsync);
                }
                Ok(first)
            }
            Err(error) => {
                self.voids.add(first, self.next_sequence.saturating_sub(1));
                self.voids_unwritten |= !group.is_empty();
                self.abandon();
                Err(CommitError::from_disk(&error))
            }
        }
    }

    /// Returns the new length of the segment, and the time that the disk took to make it durable.
    fn try_write(&mut self, group: &[PendingRecord], first: u64) -> io::Result<(u64, Duration)> {
        let header = self.header_if_fresh(first);
        let Some(active) = &mut self.active else { return Err(io::Error::other("no segment")) };
        let begin = active.position + header.len() as u64;
        let frames = Frames { salt: active.salt, schema: self.options.schema, first };
        let (layout, end) = frames.lay_out(group, begin, &mut self.scratch);
        let mut parts = Vec::with_capacity(layout.len() + 1);
        parts.push(IoSlice::new(&header));
        parts.extend(layout.into_iter().map(|part| match part {
            Part::Scratch(range) => IoSlice::new(&self.scratch[range]),
            Part::Payload(index) => IoSlice::new(&group[index].payload),
        }));
        active.file.append(&mut parts)?;
        let begun = Instant::now();
        active.file.sync()?;
        Ok((end, begun.elapsed()))
    }

    /// Checks that the durable records can be found again.
    fn check_place(&self) -> io::Result<()> {
        let Shared { disk, place, .. } = &*self.shared;
        place.check(&**disk)?;
        self.active.as_ref().map_or(Ok(()), |active| active.place.check(&**disk))
    }

    /// Returns the header, or nothing if the segment has one already.
    fn header_if_fresh(&mut self, first: u64) -> Vec<u8> {
        let Some(active) = self.active.as_ref().filter(|active| active.position == 0) else {
            return Vec::new();
        };
        let oldest =
            self.shared.oldest_sequence().or_else(|| self.waiting.first().map(|segment| segment.first));
        self.voids.forget_below(oldest.unwrap_or(first));
        let header = SegmentHeader {
            salt: active.salt,
            run: self.run,
            first,
            durable: first.saturating_sub(1),
            previous: self.previous,
            voids: self.voids.as_slice().to_vec(),
            preamble: Arc::clone(&self.preamble),
        };
        header.encode()
    }

    /// Records that the active segment is durable up to `end`.
    fn written(&mut self, end: u64) {
        let Some(active) = &mut self.active else { return };
        if end > active.bytes {
            self.supply.count_as(active.bytes, end);
            active.bytes = end;
        }
        active.position = end;
        active.last = self.next_sequence.saturating_sub(1);
        if end > active.bytes / 2 {
            self.supply.make_ahead();
        }
        self.voids_unwritten = false;
        self.hand_over();
    }

    /// Closes a segment, and releases the unused part of its preallocation.
    fn retire(&mut self, old: ActiveSegment) {
        let ActiveSegment { number, file, place, bytes, first, last, position, .. } = old;
        drop(file);
        let path = place.path().to_owned();
        if position > 0 {
            self.previous = (number, first);
        }
        let bytes = self.supply.trim(&path, bytes, position);
        self.waiting.push(RetiredSegment { number, path, first, last, bytes });
    }

    /// Abandons the segment after a failure. Its durable data stays; rejected records are cut off if the disk allows,
    /// and are void in any case.
    fn abandon(&mut self) {
        let Some(active) = self.active.take() else { return };
        if active.position > 0 || !self.supply.discard(active.place.path(), active.bytes) {
            self.retire(active);
        }
    }

    fn hand_over(&mut self) {
        if !self.waiting.is_empty() {
            self.shared.retired().extend(self.waiting.drain(..));
        }
    }

    fn accept(&self, group: &mut Vec<PendingRecord>, first: u64) {
        for (sequence, pending) in (first..).zip(group.drain(..)) {
            pending.answer.give(Ok(sequence));
        }
    }

    /// Rejects a failed group and everything that is queued, and then raises the epoch: a caller that reads the new
    /// epoch can no longer find any rows that were rejected here.
    fn refuse(&mut self, group: &mut Vec<PendingRecord>, error: &CommitError) {
        for pending in group.drain(..) {
            self.answer_no(pending, error);
        }
        for _ in 0..self.receiver.len() {
            match self.receiver.try_recv() {
                Ok(CommitMessage::Append(pending)) => self.answer_no(pending, &CommitError::Stale),
                Ok(CommitMessage::Close) => self.closing = true,
                Err(_) => break,
            }
        }
        self.shared.epoch.fetch_add(1, SeqCst);
    }

    fn answer_no(&self, pending: PendingRecord, error: &CommitError) {
        self.shared.counters.refused(1, error);
        pending.answer.give(Err(error.clone()));
    }

    /// Finishes the WAL, and leaves the folder as small as possible.
    fn finish(mut self) {
        // There is no later group whose header could name the void sequences.
        if self.voids_unwritten && self.make_room(&[]).and_then(|()| self.write_group(&[])).is_err() {
            tracing::warn!("records that were refused may come back at the next start");
        }
        if let Some(active) = self.active.take() {
            drop(active.file);
            self.supply.trim(active.place.path(), active.bytes, active.position);
        }
        self.supply.stop();
        self.supply.sync_folder();
    }
}

impl ActiveSegment {
    fn new(prepared: PreparedSegment, first: u64) -> Result<Self, CommitError> {
        let salt = getrandom::u64().map_err(|error| CommitError::Io(error.to_string().into()))?;
        let PreparedSegment { number, file, place, bytes } = prepared;
        Ok(Self { number, file, place, bytes, salt, first, last: first.saturating_sub(1), position: 0 })
    }

    /// Returns true if this many bytes fit. A new segment accepts any size, because it grows.
    fn has_room(&self, bytes: u64) -> bool {
        self.position == 0 || self.position + bytes <= self.bytes
    }
}

/// The properties that all frames of a group share.
struct Frames {
    salt: u64,
    schema: u16,
    first: u64,
}

/// A part of a write.
enum Part {
    /// A range of the scratch buffer.
    Scratch(Range<usize>),
    /// The payload of this record, which is not copied.
    Payload(usize),
}

impl Frames {
    /// Arranges the frames of a group one after the other. Returns the source of each part, and the end of the last
    /// frame.
    fn lay_out(&self, group: &[PendingRecord], begin: u64, scratch: &mut Vec<u8>) -> (Vec<Part>, u64) {
        scratch.clear();
        let (mut parts, mut position, mut from) = (Vec::new(), begin, 0);
        for (index, pending) in group.iter().enumerate() {
            let payload = pending.payload.as_slice();
            scratch.extend_from_slice(&self.header(index, pending).encode(self.salt, position));
            if payload.len() < COPY_BELOW {
                scratch.extend_from_slice(payload);
            } else {
                parts.push(Part::Scratch(from..scratch.len()));
                parts.push(Part::Payload(index));
                from = scratch.len();
            }
            let whole = frame_bytes(payload.len());
            scratch.extend_from_slice(&ZEROS[..whole - format::ALIGN - payload.len()]);
            position += whole as u64;
        }
        parts.push(Part::Scratch(from..scratch.len()));
        (parts, position)
    }

    fn header(&self, index: usize, pending: &PendingRecord) -> FrameHeader {
        FrameHeader {
            sequence: self.first + index as u64,
            durable: self.first.saturating_sub(1),
            length: pending.payload.len(),
            checksum: pending.checksum,
            schema: self.schema,
        }
    }
}
