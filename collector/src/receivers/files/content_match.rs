//! Recognizes content that was read before, even if the file has another name or inode now.
//!
//! A file that was copied or compressed is another file with the same content, and is recognized by that content. It
//! must agree with all bytes that were read before, or end before that offset and agree as far as it goes.
//!
//! Invariant: only content that was read before is skipped. The one exception is two logs of one family that begin with
//! the same bytes, one of which has no others; unless rotation made one name from the other, at least a kibibyte must
//! agree (`rotation::must_agree`).

use super::file_content::FileContent;
use super::file_reader::FileReader;
use super::rolling_hash::{BLOCK, RollingHash};
use std::io;

/// The part of a file that was read before.
pub(super) struct ContentMatch {
    /// The hash of the bytes that were read before; its offset is their number.
    pub(super) chain: RollingHash,
    /// The number of the content that they belong to, if any.
    pub(super) text: Option<u64>,
}

impl ContentMatch {
    fn nothing() -> Self {
        Self { chain: RollingHash::new(), text: None }
    }
}

/// Checks that a file still has the content up to its offset. Returns the hash to continue with, and the bytes of its
/// last block; `None` if the file differs.
pub(super) fn goes_on(
    reader: &mut FileReader,
    text: &FileContent,
) -> io::Result<Option<(RollingHash, Vec<u8>)>> {
    let state = text.state;
    let mut chain = RollingHash::at_last_block(&state, text.checkpoints.clone());
    let length = usize::try_from(state.offset.saturating_sub(state.block_start)).unwrap_or(usize::MAX);
    if length as u64 > BLOCK {
        return Ok(None);
    }
    let bytes = reader.read(state.block_start, length)?.bytes;
    chain.add(&bytes);
    Ok((chain.state() == state).then_some((chain, bytes)))
}

/// Reads a file from its beginning for as long as it may have one of these contents, and returns the longest match.
pub(super) fn by_content(reader: &mut FileReader, kin: Vec<(FileContent, u64)>) -> io::Result<ContentMatch> {
    let mut kin = kin;
    let mut chain = RollingHash::new();
    let mut found = ContentMatch::nothing();
    while !kin.is_empty() {
        let next = kin.iter().map(|(text, _)| text.state.offset).filter(|at| *at > chain.offset()).min();
        let Some(next) = next else { return Ok(found) };
        let stop = next.min(chain.next_checkpoint()).min(chain.offset() + BLOCK);
        let wanted = usize::try_from(stop - chain.offset()).unwrap_or(usize::MAX);
        let read = reader.read(chain.offset(), wanted)?;
        chain.add(&read.bytes);
        if read.bytes.len() < wanted {
            return Ok(ended(chain, &kin).unwrap_or(found));
        }
        kin.retain(|(text, _)| agrees(text, &chain));
        let here = kin.iter().find(|(text, agree)| {
            let state = text.state;
            state.offset == chain.offset() && state.hash == chain.digest() && state.offset >= *agree
        });
        if let Some((text, _)) = here {
            found = ContentMatch { chain: chain.clone(), text: Some(text.id) };
        }
    }
    Ok(found)
}

/// Returns false if a checkpoint shows that the content differs.
fn agrees(text: &FileContent, chain: &RollingHash) -> bool {
    let power = chain.offset().trailing_zeros();
    let is_mark = chain.offset().is_power_of_two();
    let mark = text.checkpoints.get(&power).filter(|_| is_mark);
    mark.is_none_or(|mark| chain.checkpoints().get(&power).is_none_or(|own| own == mark))
}

/// Returns the match of a file that ends before these contents do. It is a copy of the beginning of one if all
/// checkpoints agree and they cover at least an eighth of the file; the newest checkpoints may be lost in a crash.
fn ended(chain: RollingHash, kin: &[(FileContent, u64)]) -> Option<ContentMatch> {
    let size = chain.offset();
    let copied = kin.iter().find(|(text, agree)| {
        let marks = text.checkpoints.keys().filter_map(|power| 1_u64.checked_shl(*power));
        let last = marks.filter(|at| *at <= size).max().unwrap_or(0);
        text.state.offset > size && last >= *agree && last > 0 && last.saturating_mul(8) >= size
    });
    let id = copied?.0.id;
    Some(ContentMatch { chain, text: Some(id) })
}
