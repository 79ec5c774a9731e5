//! Counts missing records, and which of them had been acknowledged.
//!
//! A run is the time between one start of the program and its end. Within a run, sequences follow each other without a
//! gap, and every frame states up to which sequence everything was durable when it was written. So at the end of a run,
//! the missing sequences are known, and which of them had been acknowledged: those are damage. The rest is a write that
//! a crash cut off. No later frame confirms the last group of a run; if it is damaged, it counts as torn.
use super::Replay;
use super::format::{FrameHeader, SegmentHeader};
use super::sequence_ranges::SequenceRanges;

/// Counts losses while segments are read in order.
#[derive(Debug)]
pub(super) struct LossAccount<'a> {
    voids: &'a SequenceRanges,
    replay: Replay,
    /// The first sequence of the run being read.
    run: Option<u64>,
    /// The sequence that should come next.
    expected: u64,
    /// The sequence up to which everything in this run was acknowledged or void.
    durable: u64,
    /// The ranges of sequences that are missing, first and last.
    missing: Vec<(u64, u64)>,
    /// The lengths of byte ranges that could not be read, with the sequence before them.
    stretches: Vec<(u64, u64)>,
    /// The numbers of the existing segments, up to this one.
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

    /// Records that a segment exists, whatever its content.
    pub(super) fn file(&mut self, number: u64) {
        self.numbers.push(number);
    }

    /// Records the start of a segment.
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

    /// Returns the first sequence of this run that must exist. Segments are released oldest first: if an earlier one
    /// was read, nothing since has been released; and if the previous one exists, nothing of that.
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

    /// Records a segment without a readable header.
    pub(super) fn unreadable_segment(&mut self, bytes: u64) {
        self.replay.segments += 1;
        self.replay.unreadable_segments += 1;
        self.unreadable(bytes);
    }

    /// Records bytes that should be a frame but are not.
    pub(super) fn unreadable(&mut self, bytes: u64) {
        self.stretches.push((self.expected.saturating_sub(1), bytes));
    }

    /// Records a frame whose payload is damaged.
    pub(super) fn spoiled(&mut self, header: &FrameHeader, bytes: u64) {
        if header.sequence >= self.expected {
            self.expect(header.sequence);
            self.unreadable(bytes);
            self.expect(header.sequence + 1);
            self.durable = self.durable.max(header.durable);
        }
    }

    /// Records an intact frame. Returns true if its record must be passed on.
    pub(super) fn intact(&mut self, header: &FrameHeader) -> bool {
        // A sequence can only repeat if a whole segment was copied to a later name.
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

    /// Returns the run being read, and the sequence up to which everything in it is known to have been durable.
    pub(super) fn durable(&self) -> (Option<u64>, u64) {
        (self.run, self.durable)
    }

    /// Returns the sequence that should come next.
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
                // These bytes are left from a failed write, whose senders were told.
            } else if after >= self.durable {
                self.replay.torn += 1;
                self.replay.torn_bytes += bytes;
            } else {
                self.replay.damaged_bytes += bytes;
            }
        }
    }
}
