//! Counts missing records, and which of them had been acknowledged.
//!
//! A run is the time between one start of the program and its end. Within a run, sequences follow each other without
//! a gap, and every frame says up to where all was durable when it was written. So at the end of a run it is known
//! what is missing, and what of that had been acknowledged: that is damage. The rest is a write that a crash cut off.
//! The last group of a run leaves no such witness; if it is damaged, it counts as torn.
use super::Replay;
use super::format::{FrameHeader, SegmentHeader};
use super::sequence_ranges::SequenceRanges;

/// Counts losses while segments are read in order.
#[derive(Debug)]
pub(super) struct LossAccount<'a> {
    voids: &'a SequenceRanges,
    replay: Replay,
    /// The run being read, by its first sequence.
    run: Option<u64>,
    /// The sequence that should come next.
    expected: u64,
    /// Everything in this run up to here was acknowledged or void.
    durable: u64,
    /// Sequences that should have come, first and last.
    missing: Vec<(u64, u64)>,
    /// Bytes that could not be read, with the sequence before them.
    stretches: Vec<(u64, u64)>,
    /// The numbers of the segments that are there, up to this one.
    numbers: Vec<u64>,
}

impl<'a> LossAccount<'a> {
    pub(super) fn new(voids: &'a SequenceRanges) -> Self {
        Self {
            voids,
            replay: Replay::default(),
            run: None,
            expected: 1,
            durable: 0,
            missing: Vec::new(),
            stretches: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// A segment is there, with whatever in it.
    pub(super) fn file(&mut self, number: u64) {
        self.numbers.push(number);
    }

    /// A segment begins.
    pub(super) fn segment(&mut self, header: &SegmentHeader) {
        self.replay.segments += 1;
        if self.run != Some(header.run) {
            self.end_run();
            self.expected = self.begins(header);
            self.run = Some(header.run);
            self.durable = 0;
        }
        self.expect(header.first);
        self.durable = self.durable.max(header.durable);
    }

    /// The first sequence of this run that must be here. Segments are released from the oldest on: if one before
    /// this was read, nothing since has been released; and if the one right before is there, nothing of that.
    fn begins(&self, header: &SegmentHeader) -> u64 {
        let (previous, first) = header.previous;
        if self.run.is_some() {
            header.run
        } else if self.numbers.contains(&previous) {
            header.run.max(first)
        } else {
            header.first
        }
    }

    /// A segment without a readable header.
    pub(super) fn unreadable_segment(&mut self, bytes: u64) {
        self.replay.segments += 1;
        self.replay.unreadable_segments += 1;
        self.unreadable(bytes);
    }

    /// Bytes that are not a frame and should be.
    pub(super) fn unreadable(&mut self, bytes: u64) {
        self.stretches.push((self.expected.saturating_sub(1), bytes));
    }

    /// A frame whose payload is damaged.
    pub(super) fn spoiled(&mut self, header: &FrameHeader, bytes: u64) {
        if header.sequence >= self.expected {
            self.expect(header.sequence);
            self.unreadable(bytes);
            self.expect(header.sequence + 1);
            self.durable = self.durable.max(header.durable);
        }
    }

    /// An intact frame. Says whether its record is to be handed out.
    pub(super) fn intact(&mut self, header: &FrameHeader) -> bool {
        // Only a copy of a whole segment under a later name brings back a sequence.
        if header.sequence < self.expected {
            return false;
        }
        self.expect(header.sequence);
        self.expected = header.sequence + 1;
        self.durable = self.durable.max(header.durable);
        if self.voids.contains(header.sequence) {
            self.replay.void += 1;
            return false;
        }
        self.replay.records += 1;
        self.replay.bytes += header.length as u64;
        self.replay.newest = header.sequence;
        true
    }

    /// Everything in the run being read up to here is known to have been durable.
    pub(super) fn durable(&self) -> (Option<u64>, u64) {
        (self.run, self.durable)
    }

    /// The sequence that should come next, by what was read so far.
    pub(super) fn expected(&self) -> u64 {
        self.expected
    }

    pub(super) fn finish(mut self) -> Replay {
        self.end_run();
        self.replay
    }

    fn expect(&mut self, sequence: u64) {
        if sequence > self.expected {
            self.missing.push((self.expected, sequence - 1));
            self.expected = sequence;
        }
    }

    fn end_run(&mut self) {
        self.expect(self.durable.saturating_add(1));
        for (first, last) in self.missing.drain(..) {
            let last = last.min(self.durable);
            if first <= last {
                self.replay.damaged += last - first + 1 - self.voids.overlap(first, last);
            }
        }
        for (after, bytes) in self.stretches.drain(..) {
            if self.voids.contains(after.saturating_add(1)) {
                // What a failed write left: its sender was told no.
            } else if after >= self.durable {
                self.replay.torn += 1;
                self.replay.torn_bytes += bytes;
            } else {
                self.replay.damaged_bytes += bytes;
            }
        }
    }
}
