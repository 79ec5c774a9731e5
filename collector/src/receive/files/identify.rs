//! Which text a file holds that was not read before under this name or number.
//!
//! A file that was copied, or packed, is another file with the same text: it is known by what it holds. The text must be
//! in it up to the very place to which it was read, or it must end before that place and agree as far as it goes.
//!
//! What always holds: nothing is skipped that was not read before, unless two logs of one family begin with the same
//! bytes and one of them held nothing else: of those with the same name it takes a kibibyte (`name::must_agree`).

use super::chain::{BLOCK, Chain};
use super::reader::Reader;
use super::text::Text;
use std::io;

/// What is known of a file's text.
pub(super) struct Found {
    /// How far into the file everything was read before.
    pub(super) chain: Chain,
    /// The text it was read as, if any.
    pub(super) text: Option<u64>,
}

impl Found {
    fn nothing() -> Self {
        Self { chain: Chain::new(), text: None }
    }
}

/// True when a file holds this text up to its place; the chain goes on from there.
pub(super) fn goes_on(reader: &mut Reader, text: &Text) -> io::Result<Option<(Chain, Vec<u8>)>> {
    let place = text.place;
    let mut chain = Chain::at_block(&place, text.marks.clone());
    let length = usize::try_from(place.position.saturating_sub(place.block)).unwrap_or(usize::MAX);
    if length as u64 > BLOCK {
        return Ok(None);
    }
    let bytes = reader.read(place.block, length)?.bytes;
    chain.add(&bytes);
    Ok((chain.place() == place).then_some((chain, bytes)))
}

/// Reads a file from its beginning as long as it may hold one of these texts.
pub(super) fn by_content(reader: &mut Reader, kin: Vec<(Text, u64)>) -> io::Result<Found> {
    let mut kin = kin;
    let mut chain = Chain::new();
    let mut found = Found::nothing();
    while !kin.is_empty() {
        let next = kin.iter().map(|(text, _)| text.place.position).filter(|at| *at > chain.position()).min();
        let Some(next) = next else { return Ok(found) };
        let stop = next.min(chain.next_mark()).min(chain.position() + BLOCK);
        let wanted = usize::try_from(stop - chain.position()).unwrap_or(usize::MAX);
        let read = reader.read(chain.position(), wanted)?;
        chain.add(&read.bytes);
        if read.bytes.len() < wanted {
            return Ok(ended(chain, &kin).unwrap_or(found));
        }
        kin.retain(|(text, _)| agrees(text, &chain));
        let here = kin.iter().find(|(text, agree)| {
            let place = text.place;
            place.position == chain.position() && place.hash == chain.digest() && place.position >= *agree
        });
        if let Some((text, _)) = here {
            found = Found { chain: chain.clone(), text: Some(text.id) };
        }
    }
    Ok(found)
}

/// False when a text is known to differ at a mark.
fn agrees(text: &Text, chain: &Chain) -> bool {
    let power = chain.position().trailing_zeros();
    let is_mark = chain.position().is_power_of_two();
    let mark = text.marks.get(&power).filter(|_| is_mark);
    mark.is_none_or(|mark| chain.marks().get(&power).is_none_or(|own| own == mark))
}

/// The file ends before these texts do: it is a copy of the beginning of one whose marks agree for an eighth of it or
/// more (all that are there; the newest may be lost in a crash).
fn ended(chain: Chain, kin: &[(Text, u64)]) -> Option<Found> {
    let size = chain.position();
    let copied = kin.iter().find(|(text, agree)| {
        let marks = text.marks.keys().filter_map(|power| 1_u64.checked_shl(*power));
        let last = marks.filter(|at| *at <= size).max().unwrap_or(0);
        text.place.position > size && last >= *agree && last > 0 && last.saturating_mul(8) >= size
    });
    let id = copied?.0.id;
    Some(Found { chain, text: Some(id) })
}
