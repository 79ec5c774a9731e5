//! Finds where JSON values end, without parsing them: only brackets and strings matter.
//!
//! Brackets are kept on a stack of bits, so there is no recursion and no allocation. Brackets deeper than the stack are
//! only counted; later stages reject JSON of that depth.

use memchr::memchr3;

/// The token that ended an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A comma: another element follows.
    Comma,
    /// The array's own bracket.
    Close,
    /// The end of the body.
    End,
}

/// Returns the offset at which an element of an array ends, and the token that ended it.
pub(super) fn element(bytes: &[u8]) -> (usize, Found) {
    let mut open = Open::default();
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string(bytes, at).0,
            b'{' | b'[' => open.push(byte == b'['),
            b'}' => open.pop(false),
            b']' if !open.holds_list() => return (at, Found::Close),
            b']' => open.pop(true),
            b',' if open.is_empty() => return (at, Found::Comma),
            _ => {}
        }
        at += 1;
    }
    (bytes.len(), Found::End)
}

/// Returns the length of the object or list at the start of `bytes`; `None` if it or one of its strings is not closed.
pub(in crate::receivers) fn value(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                let (end, closed) = string(bytes, at);
                if !closed {
                    return None;
                }
                at = end;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Returns the offset of the last byte of the string that starts at `start`, and true if it is closed. JSON forbids raw
/// line breaks in strings, so a string that reaches one was cut short, and scanning continues outside of it.
fn string(bytes: &[u8], start: usize) -> (usize, bool) {
    let mut at = start + 1;
    while let Some(found) = bytes.get(at..).and_then(|rest| memchr3(b'"', b'\\', b'\n', rest)) {
        at += found;
        match bytes.get(at) {
            Some(b'\\') => at += 2,
            Some(b'"') => return (at, true),
            _ => return (at, false),
        }
    }
    (bytes.len(), false)
}

/// The stack of open brackets: one bit each, 1 for a list.
#[derive(Default)]
struct Open {
    kinds: u128,
    depth: u32,
    /// The number of open brackets that are deeper than the stack.
    beyond: usize,
}

impl Open {
    fn is_empty(&self) -> bool {
        self.depth == 0
    }

    fn holds_list(&self) -> bool {
        self.beyond > 0 || self.kinds != 0
    }

    fn push(&mut self, list: bool) {
        if self.depth == u128::BITS {
            self.beyond += 1;
            return;
        }
        self.kinds = self.kinds << 1 | u128::from(list);
        self.depth += 1;
    }

    /// Closes the innermost open bracket of this kind and all brackets inside it; does nothing if there is none.
    fn pop(&mut self, list: bool) {
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        let wanted = if list { self.kinds } else { !self.kinds & self.mask() };
        let inside = wanted.trailing_zeros();
        if inside < self.depth {
            self.depth -= inside + 1;
            self.kinds = self.kinds.checked_shr(inside + 1).unwrap_or(0);
        }
    }

    fn mask(&self) -> u128 {
        1_u128.checked_shl(self.depth).map_or(u128::MAX, |bit| bit - 1)
    }
}
