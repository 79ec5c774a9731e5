//! A copy of a log that another process may be writing.
//!
//! What must always hold: the copy is what a power loss at one moment would have left. Everything that was answered before
//! that moment is in it, and nothing in it is half written. The segment that is being written is cut behind its last
//! whole frame: copied byte by byte, a later frame could be in the copy and an earlier one, written meanwhile, not.
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

/// A frame that is being written is looked at again so often, with a pause; what is then still not whole is damage.
const LOOKS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(1);

/// The reason why the WAL could not be copied.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopyError {
    /// The log cannot be read.
    #[error(transparent)]
    Wal(#[from] WalError),
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] io::Error),
    /// Segments came and went between two looks: begin again.
    #[error("the log was changed too fast")]
    Changing,
}

impl WalView {
    /// Copies the log as it is now into a folder that is there and empty: what was there when this view was opened, and
    /// what has come since. Gives back how many segments and bytes that is.
    pub(crate) fn copy(&self, disk: &dyn Disk, folder: &Path, to: &Path) -> Result<(u64, u64), CopyError> {
        let now = SegmentIndex::take(disk, folder)?;
        let segments = self.0.followed_by(now).ok_or(CopyError::Changing)?;
        // A segment has a header when records are written to it, and then none before it is written any more.
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

/// The bytes of a segment that are to be copied; none when nothing is in it.
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
        // Up to the end of the last frame: a payload may end with zeros, which are not what was preallocated.
        Some(header) => {
            let (_, end) = salvage::pieces(&whole, header.salt, header.bytes());
            Ok(Some(whole.slice_with_length(0, end.min(whole.len()))))
        }
        // Begun a moment ago.
        None if SegmentHeader::decode(&whole).is_ok() => Err(CopyError::Changing),
        None => Ok((salvage::used(&whole) > 0).then_some(whole)),
    }
}

/// Returns the end of the last whole frame; none if something before it is damaged.
fn written(file: &dyn DiskRead, header: &SegmentHeader) -> Option<u64> {
    let mut at = header.bytes() as u64;
    let mut looks = 0;
    loop {
        let mut walk = SegmentReader::new(file, header.salt, usize::try_from(at).ok()?);
        match walk.next() {
            Step::End => return Some(at),
            // Where nothing can be preallocated: it came after the file was opened.
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
