//! Copies a WAL that another process may be writing.
//!
//! Invariant: the copy is what a power loss at one moment would have left. Everything that was acknowledged before that
//! moment is in it, and nothing in it is incomplete. The segment that is being written is cut off after its last
//! complete frame: copied byte by byte, the copy could have a later frame and lack an earlier one, which was written
//! meanwhile.
use super::format::SegmentHeader;
use super::replay::{IndexedSegment, SegmentIndex};
use super::segment_reader::{SegmentReader, Step};
use super::{WalError, WalView, salvage};
use crate::disk::{Disk, DiskRead};
use arrow::buffer::Buffer;
use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// The number of times that an incomplete frame is read again, with a pause. A frame that is still incomplete is
/// damaged.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// The reason why the WAL could not be copied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    /// The WAL cannot be read.
    #[error(transparent)]
    Wal(#[from] WalError),
    /// The disk failed.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// Segments were created and removed between two looks. The copy must start over.
    #[error("the log was changed too fast")]
    Changing,
}

impl WalView {
    /// Copies the WAL into an existing, empty folder: the segments that existed when this view was opened, and those
    /// that were added since. Returns the number of segments and bytes.
    pub(crate) fn copy(&self, disk: &dyn Disk, folder: &Path, to: &Path) -> Result<(u64, u64), CopyError> {
        let now = SegmentIndex::take(disk, folder)?;
        let segments = self.0.followed_by(now).ok_or(CopyError::Changing)?;
        // A segment gets a header with its first record, and then no earlier segment is written any more.
        let active = segments.iter().rposition(|segment| segment.header.is_some());
        let (mut files, mut bytes) = (0, 0);
        for (place, segment) in segments.iter().enumerate() {
            let content = content(segment, Some(place) == active)?;
            let (Some(content), Some(name)) = (content, segment.path.file_name()) else { continue };
            let mut file = disk.create(&to.join(name), content.len() as u64)?;
            file.append(&mut [IoSlice::new(&content)])?;
            file.sync()?;
            files += 1;
            bytes += content.len() as u64;
        }
        disk.sync_dir(to)?;
        Ok((files, bytes))
    }
}

/// Returns the bytes of a segment that are to be copied, or `None` when the segment is empty.
fn content(segment: &IndexedSegment, is_active: bool) -> Result<Option<Buffer>, CopyError> {
    let file: &Arc<dyn DiskRead> =
        segment.file.as_ref().map_err(|error| io::Error::new(error.kind(), Arc::clone(error)))?;
    if let (true, Some(header)) = (is_active, &segment.header)
        && let Some(end) = written(&**file, header)
    {
        return Ok(Some(file.read(end)?));
    }
    let whole = file.read(u64::MAX)?;
    match &segment.header {
        // The copy ends with the last frame: a payload may end with zeros, which are not preallocated ones.
        Some(header) => {
            let (_, end) = salvage::pieces(&whole, header.salt, header.bytes());
            Ok(Some(whole.slice_with_length(0, end.min(whole.len()))))
        }
        // The segment was begun a moment ago.
        None if SegmentHeader::decode(&whole).is_ok() => Err(CopyError::Changing),
        None => Ok((salvage::used(&whole) > 0).then_some(whole)),
    }
}

/// Returns the end of the last complete frame, or `None` if something before it is damaged.
fn written(file: &dyn DiskRead, header: &SegmentHeader) -> Option<u64> {
    let mut at = header.bytes() as u64;
    let mut looks = 0;
    loop {
        let mut walk = SegmentReader::new(file, header.salt, usize::try_from(at).ok()?);
        match walk.next() {
            Step::End => return Some(at),
            // Without preallocation, the frame may have been added after the file was opened.
            Step::Frame(_) if walk.at() > file.bytes() => return Some(at),
            Step::Frame(frame) if walk.payload(&frame).is_some() => (at, looks) = (walk.at(), 0),
            _ if looks == LOOKS => return None,
            _ => {
                looks += 1;
                thread::sleep(PAUSE);
            }
        }
    }
}
