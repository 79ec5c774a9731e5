//! Tails all files in rounds: discovers files, reads a batch from each, delivers the batches and records the results.
//!
//! Invariants:
//! - A content is read from one file at a time: a possible copy of a content that is being read waits until that is
//!   done.
//! - The position after a batch is recorded only once the batch is durable.
//! - Memory is bounded by one batch for each of a few files in a round; the number of open files is bounded too.

use super::content_index::ContentIndex;
use super::discovery::{DiscoveredFile, MAX_FILES, discover_files};
use super::file_content::{FileContent, FileStamp};
use super::file_reader::FileReader;
use super::rotation;
use super::tailed_file::{Batch, FileId, Next, TailedFile};
use super::timeouts::Timeouts;
use super::{FilePattern, content_match};
use crate::counters::FileCounters;
use crate::pipeline::{Defaults, Encoding, IngestResponse, Request};
use crate::receivers::envelopes::read_lines;
use crate::{Rejection, RejectionReason, Source};
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The most files that are open at once.
const MAX_OPEN_FILES: usize = 256;
/// The most batches that are delivered at once.
const MAX_BATCHES: usize = 8;

/// The destination of batches, which tests replace.
pub(super) trait DeliveryTarget {
    /// Delivers requests and returns the result of each, in order.
    fn deliver(&mut self, requests: Vec<Request>) -> Vec<Result<IngestResponse, Rejection>>;

    /// Returns the counters of the file receiver.
    fn counters(&self) -> &FileCounters;

    /// Returns the current time in microseconds since 1970.
    fn now(&self) -> i64;

    /// Returns the length of the longest line; longer ones are rejected.
    fn longest_line(&self) -> usize {
        classifier::Limits::DEFAULT.line_bytes
    }
}

/// The result of a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PollOutcome {
    /// There may be more to read.
    Busy,
    /// There was nothing to read.
    Idle,
    /// A batch was rejected; the next round starts after this time.
    RejectionBody(Duration),
}

/// A file that may be a copy of a content that is being read.
struct PendingCopy {
    stamp: FileStamp,
    text: u64,
    position: u64,
}

/// The state of all files.
pub(super) struct Tailer<D> {
    watches: Vec<FilePattern>,
    times: Timeouts,
    known: ContentIndex,
    pub(super) to: D,
    files: Vec<TailedFile>,
    /// Files that were read completely and are closed until they change.
    resting: HashMap<FileId, FileStamp>,
    waits: HashMap<FileId, PendingCopy>,
    /// Archives, and the time since which they have not changed.
    steady: HashMap<FileId, (FileStamp, Instant)>,
    /// Files that could not be read, their stamps then, and the time to retry if they do not change before.
    troubled: HashMap<PathBuf, (FileStamp, Instant)>,
    matched: HashSet<u64>,
    next_look: Option<Instant>,
    next_save: Option<Instant>,
    /// The index of the file with which the next round begins.
    turn: usize,
    has_warned_of_many: bool,
    has_warned_of_save: bool,
}

impl<D: DeliveryTarget> Tailer<D> {
    pub(super) fn new(watches: Vec<FilePattern>, times: Timeouts, known: ContentIndex, to: D) -> Self {
        Self {
            watches,
            times,
            known,
            to,
            files: Vec::new(),
            resting: HashMap::new(),
            waits: HashMap::new(),
            steady: HashMap::new(),
            troubled: HashMap::new(),
            matched: HashSet::new(),
            next_look: None,
            next_save: None,
            turn: 0,
            has_warned_of_many: false,
            has_warned_of_save: false,
        }
    }

    /// Runs one round.
    pub(super) fn round(&mut self, now: Instant) -> PollOutcome {
        if self.next_look.is_none_or(|due| now >= due) {
            self.next_look = Some(now + self.times.discovery_interval);
            self.look(now);
        }
        self.check(now);
        let (batches, is_busy) = self.gather(now);
        let round = self.deliver(batches, is_busy);
        let due = *self.next_save.get_or_insert(now + self.times.save_interval);
        if now >= due {
            self.next_save = Some(now + self.times.save_interval);
            self.save();
        }
        self.to.counters().open.set(self.files.len() as u64);
        self.to.counters().lag.set(self.files.iter().map(TailedFile::lag).sum());
        round
    }

    /// Saves the positions of all contents in `files.json`.
    pub(super) fn save(&mut self) {
        match self.known.save() {
            Ok(()) => self.has_warned_of_save = false,
            Err(error) if !self.has_warned_of_save => {
                self.has_warned_of_save = true;
                tracing::warn!(%error, "files.json cannot be written; the log knows the same for a day");
            }
            Err(_) => {}
        }
    }

    /// Discovers the files that match, and opens those that are to be read.
    fn look(&mut self, now: Instant) {
        let found = discover_files(&self.watches);
        if found.len() == MAX_FILES && !self.has_warned_of_many {
            self.has_warned_of_many = true;
            tracing::warn!("more than {MAX_FILES} files match; the rest are not read: use narrower patterns");
        }
        self.matched = found.iter().map(|file| file.id.inode).collect();
        let ids: HashSet<FileId> = found.iter().map(|file| file.id).collect();
        self.resting.retain(|id, _| ids.contains(id));
        self.waits.retain(|id, _| ids.contains(id));
        self.steady.retain(|id, _| ids.contains(id));
        self.troubled.retain(|path, _| found.iter().any(|file| file.path == *path));
        let new = self.follow_names(found);
        // Files that were read before are opened first, so that an original is not taken for a copy of itself.
        let (old, new): (Vec<_>, Vec<_>) =
            new.into_iter().partition(|file| !self.known.of_inode(file.id.inode).is_empty());
        let waiting = old.into_iter().chain(new).filter(|file| !self.admit(file, now)).count();
        self.to.counters().waiting.set(waiting as u64);
    }

    /// Records the current paths of the open files; returns the files that are not open.
    fn follow_names(&mut self, found: Vec<DiscoveredFile>) -> Vec<DiscoveredFile> {
        let mut by_id: HashMap<FileId, DiscoveredFile> =
            found.iter().map(|file| (file.id, file.clone())).collect();
        for file in &mut self.files {
            let here = by_id.remove(&file.id);
            file.is_gone = here.is_none();
            if let Some(here) = here.filter(|here| here.path != file.path) {
                self.to.counters().rotations.add(1);
                file.renamed(here.path);
            }
        }
        found.into_iter().filter(|file| by_id.contains_key(&file.id)).collect()
    }

    /// Opens a file if it is to be read now. Returns false if it has to wait.
    fn admit(&mut self, file: &DiscoveredFile, now: Instant) -> bool {
        if self.resting.get(&file.id) == Some(&file.stamp) {
            return true;
        }
        self.resting.remove(&file.id);
        let is_troubled =
            self.troubled.get(&file.path).is_some_and(|(stamp, due)| *stamp == file.stamp && now < *due);
        if is_troubled || !self.is_steady(file, now) || !self.has_room() {
            return false;
        }
        match self.open(file, now) {
            Ok(opened) => opened,
            Err(error) => {
                self.trouble(&file.path, file.stamp, &error, now);
                false
            }
        }
    }

    /// Returns false while an archive may still be written.
    fn is_steady(&mut self, file: &DiscoveredFile, now: Instant) -> bool {
        if rotation::packing(&file.path).is_none() {
            return true;
        }
        let since = self.steady.entry(file.id).or_insert((file.stamp, now));
        if since.0 != file.stamp {
            *since = (file.stamp, now);
        }
        now.saturating_duration_since(since.1) >= self.times.archive_settle
    }

    /// Returns true if one more file can be opened, which may close one that was read completely.
    fn has_room(&mut self) -> bool {
        if self.files.len() < MAX_OPEN_FILES {
            return true;
        }
        let idle = self.files.iter().enumerate().filter(|(_, file)| file.is_read() && !file.is_gone);
        let Some((place, _)) = idle.min_by_key(|(_, file)| file.changed) else { return false };
        self.rest(place);
        true
    }

    /// Identifies the content of a file and begins to read it. Returns false if the file has to wait.
    fn open(&mut self, file: &DiscoveredFile, now: Instant) -> io::Result<bool> {
        let packing = rotation::packing(&file.path);
        let mut best: Option<(FileContent, _)> = None;
        for text in self.known.of_inode(file.id.inode) {
            if packing.is_some() && text.done == Some(file.stamp) {
                self.resting.insert(file.id, file.stamp);
                return Ok(true);
            }
            match content_match::goes_on(&mut FileReader::open(&file.path, packing)?, &text)? {
                Some(on) if best.as_ref().is_none_or(|(best, _)| best.state.offset < text.state.offset) => {
                    best = Some((text, on));
                }
                Some(_) => {}
                None => self.known.let_go(text.id),
            }
        }
        let mut reader = FileReader::open(&file.path, packing)?;
        if let Some((mut text, (chain, before))) = best {
            text.path.clone_from(&file.path);
            let is_rotated = rotation::name_of(&file.path) != text.first_name;
            let mut tailed =
                TailedFile::new(file.id, file.pattern, text, chain, reader, now)?.with_before(&before);
            tailed.is_rotated = is_rotated;
            self.files.push(tailed);
            return Ok(true);
        }
        let Some(found) = self.look_for_copy(file, &mut reader)? else { return Ok(false) };
        // An archive cannot be read backwards, so it is opened again.
        let reader = if packing.is_some() { FileReader::open(&file.path, packing)? } else { reader };
        let text = FileContent::new(&file.path, file.id.inode)?.at(&found.chain);
        if found.text.is_some() {
            self.to.counters().copies.add(1);
            self.known.put(text.clone());
        }
        self.files.push(TailedFile::new(file.id, file.pattern, text, found.chain, reader, now)?);
        Ok(true)
    }

    /// Returns how much of a file was already read from another one; `None` while that one is still being read.
    fn look_for_copy(
        &mut self,
        file: &DiscoveredFile,
        reader: &mut FileReader,
    ) -> io::Result<Option<content_match::ContentMatch>> {
        if let Some(wait) = self.waits.get(&file.id) {
            let position = self.known.get(wait.text).map_or(0, |text| text.state.offset);
            let is_same = wait.stamp == file.stamp && position < wait.position.saturating_mul(2);
            if is_same && self.is_live(wait.text) {
                return Ok(None);
            }
        }
        self.waits.remove(&file.id);
        let found = content_match::by_content(reader, self.known.kin_of(&file.path))?;
        let Some(text) = found.text else { return Ok(Some(found)) };
        let position = self.known.get(text).map_or(0, |text| text.state.offset);
        // A copy of content that was read completely has nothing to wait for.
        let has_more = found.chain.offset() < file.stamp.size || rotation::packing(&file.path).is_some();
        if has_more && self.is_live(text) {
            self.waits.insert(file.id, PendingCopy { stamp: file.stamp, text, position });
            return Ok(None);
        }
        Ok(Some(found))
    }

    /// Returns true while a file exists from which this content is being read.
    fn is_live(&self, id: u64) -> bool {
        let Some(text) = self.known.get(id).filter(|text| !text.let_go) else { return false };
        self.matched.contains(&text.inode) || self.files.iter().any(|file| file.text.id == id)
    }

    /// Checks the open files for changes, and closes those that are finished.
    fn check(&mut self, now: Instant) {
        for place in (0..self.files.len()).rev() {
            match self.files[place].look(now) {
                Ok(true) => self.restart(place, now),
                Ok(false) => self.close_if_done(place, now),
                Err(error) => self.drop_troubled(place, &error, now),
            }
        }
    }

    fn close_if_done(&mut self, place: usize, now: Instant) {
        let file = &mut self.files[place];
        let is_finished = file.is_finished(now, &self.times);
        if file.is_packed() && is_finished {
            self.to.counters().archives.add(1);
            file.text.done = Some(file.stamp);
            self.known.put(file.text.clone());
            self.rest(place);
        } else if file.is_gone && is_finished {
            self.files.swap_remove(place);
        } else if !file.is_gone
            && file.is_read()
            && now.saturating_duration_since(file.changed) >= self.times.close_after
        {
            self.rest(place);
        }
    }

    /// Closes a file until it changes.
    fn rest(&mut self, place: usize) {
        let file = self.files.swap_remove(place);
        self.resting.insert(file.id, file.stamp);
    }

    /// Starts over with a file that no longer has the content that was read from it.
    fn restart(&mut self, place: usize, now: Instant) {
        self.to.counters().truncations.add(1);
        let file = &mut self.files[place];
        self.known.let_go(file.text.id);
        if let Err(error) = file.restart(now) {
            self.drop_troubled(place, &error, now);
        }
    }

    fn drop_troubled(&mut self, place: usize, error: &io::Error, now: Instant) {
        let file = self.files.swap_remove(place);
        self.trouble(&file.path, file.stamp, error, now);
    }

    /// Logs once that a file cannot be read. It is tried again after a while, or when it has changed.
    fn trouble(&mut self, path: &Path, stamp: FileStamp, error: &io::Error, now: Instant) {
        self.to.counters().unreadable.add(1);
        if self.troubled.insert(path.to_owned(), (stamp, now + self.times.retry_interval)).is_none() {
            let path = path.display();
            tracing::warn!("cannot read {path}: {error}; check its permissions, it is tried again");
        }
    }

    /// Reads a batch from each file in turn. Also returns true if there may be more to read.
    fn gather(&mut self, now: Instant) -> (Vec<(usize, Batch)>, bool) {
        let mut batches = Vec::new();
        let mut is_busy = false;
        let mut troubles = Vec::new();
        let longest_line = self.to.longest_line();
        for step in 0..self.files.len() {
            if batches.len() == MAX_BATCHES {
                is_busy = true;
                break;
            }
            let place = (self.turn + step) % self.files.len();
            let file = &mut self.files[place];
            if !file.may_have_more(now, &self.times) {
                continue;
            }
            match file.next(now, &self.times, longest_line) {
                Ok(Next::Batch(batch)) => batches.push((place, *batch)),
                Ok(Next::Passed) => is_busy = true,
                Ok(Next::Nothing) => {}
                Ok(Next::Replaced) => {
                    self.restart(place, now);
                    is_busy = true;
                }
                Err(error) => troubles.push((self.files[place].id, error)),
            }
        }
        self.turn = batches.last().map_or(0, |(place, _)| place + 1);
        if !troubles.is_empty() {
            // Removing files changes the indexes, so the batches are discarded and read again.
            batches.clear();
            is_busy = true;
        }
        for (id, error) in troubles {
            if let Some(place) = self.files.iter().position(|file| file.id == id) {
                self.drop_troubled(place, &error, now);
            }
        }
        (batches, is_busy)
    }

    fn deliver(&mut self, batches: Vec<(usize, Batch)>, is_busy: bool) -> PollOutcome {
        let mut round = if is_busy || !batches.is_empty() { PollOutcome::Busy } else { PollOutcome::Idle };
        let time = self.to.now();
        let requests = batches.iter().map(|(place, batch)| self.request(*place, batch)).collect();
        let responses = self.to.deliver(requests);
        for ((place, mut batch), response) in batches.into_iter().zip(responses) {
            batch.text.time = time;
            if let Some(pause) = self.settle(place, batch, response) {
                round = PollOutcome::RejectionBody(pause);
            }
        }
        round
    }

    /// Records the result of a batch. Returns the pause before the next attempt if it was rejected for now.
    fn settle(
        &mut self,
        place: usize,
        batch: Batch,
        response: Result<IngestResponse, Rejection>,
    ) -> Option<Duration> {
        let counters = self.to.counters();
        let file = self.files.get_mut(place)?;
        match response {
            Ok(response) => {
                counters.lines.add(response.accepted + response.rejected_count);
                counters.bytes.add(batch.body.len() as u64);
                self.known.put(batch.text.clone());
                file.delivered(batch);
                None
            }
            Err(Rejection { retry_after: Some(pause), .. }) => Some(pause),
            Err(rejection) => {
                if file.rejected(&batch) {
                    counters.skipped.add(1);
                    let (path, reason) = (file.path.display(), rejection.reason.as_str());
                    tracing::warn!(
                        reason,
                        position = batch.text.state.offset,
                        "a record of {path} is left out"
                    );
                }
                (rejection.reason == RejectionReason::ShuttingDown).then_some(self.times.discovery_interval)
            }
        }
    }

    fn request(&self, place: usize, batch: &Batch) -> Request {
        let file = self.files.get(place);
        let watch = file.and_then(|file| self.watches.get(file.pattern));
        let service = watch.and_then(|watch| watch.service.clone());
        let service = service.or_else(|| rotation::service(&batch.text.path));
        Request {
            source: Source::Files,
            body: batch.body.clone(),
            encoding: Encoding::Identity,
            read: read_lines,
            defaults: Defaults { service, ..Defaults::default() },
            idempotency_key: None,
            position: Some(batch.text.position()),
            stream: file.map(|file| file.calls.clone()),
            permits: Vec::new(),
        }
    }
}
