//! Which text a file holds that was not read before under this name or number.
//!
//! A file that was copied, or packed, is another file with the same text: it is known by what it holds. The text must
//! be in it up to the very place to which it was read, or it must end before that place and agree as far as it goes.
//!
//! What always holds: nothing is skipped that was not read before, unless two logs of one family begin with the same
//! bytes and one of them held nothing else: of those with the same name it takes a kibibyte (`rotation::must_agree`).

use super::file_content::FileContent;
use super::file_reader::FileReader;
use super::rolling_hash::{BLOCK, RollingHash};
use std::io;

/// What is known of a file's text.
pub(super) struct ContentMatch {
    /// How far into the file everything was read before.
    pub(super) chain: RollingHash,
    /// The text it was read as, if any.
    pub(super) text: Option<u64>,
}

impl ContentMatch {
    fn nothing() -> Self {
        Self { chain: RollingHash::new(), text: None }
    }
}

/// True when a file holds this text up to its place; the chain goes on from there.
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

/// Reads a file from its beginning as long as it may hold one of these texts.
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

/// False when a text is known to differ at a mark.
fn agrees(text: &FileContent, chain: &RollingHash) -> bool {
    let power = chain.offset().trailing_zeros();
    let is_mark = chain.offset().is_power_of_two();
    let mark = text.checkpoints.get(&power).filter(|_| is_mark);
    mark.is_none_or(|mark| chain.checkpoints().get(&power).is_none_or(|own| own == mark))
}

/// The file ends before these texts do: it is a copy of the beginning of one whose marks agree for an eighth of it or
/// more (all that are there; the newest may be lost in a crash).
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
