//! The hybrid of run lengths and packed bits, in which Parquet stores small numbers.

/// Eight numbers are packed together.
const GROUP: usize = 8;

/// Returns the number of bits of the numbers below a count.
pub(super) fn width(count: usize) -> u8 {
    let most = count.saturating_sub(1) as u64;
    // A count of rows has at most 32 bits.
    (u64::BITS - most.leading_zeros()) as u8
}

/// Appends numbers of at most `width` bits.
pub(super) fn encode(numbers: impl Iterator<Item = u32>, width: u8, into: &mut Vec<u8>) {
    let mut numbers = numbers.peekable();
    // Numbers that do not repeat enough, and will be packed.
    let mut packed: Vec<u32> = Vec::new();
    while let Some(number) = numbers.next() {
        let mut run = 1;
        while numbers.next_if_eq(&number).is_some() {
            run += 1;
        }
        // Only whole groups can be packed before a run.
        let missing = packed.len().next_multiple_of(GROUP) - packed.len();
        if run < GROUP + missing {
            packed.extend(std::iter::repeat_n(number, run));
            continue;
        }
        packed.extend(std::iter::repeat_n(number, missing));
        pack(&packed, width, into);
        packed.clear();
        put_length(((run - missing) as u64) << 1, into);
        into.extend_from_slice(&number.to_le_bytes()[..usize::from(width).div_ceil(8)]);
    }
    packed.resize(packed.len().next_multiple_of(GROUP), 0);
    pack(&packed, width, into);
}

fn pack(numbers: &[u32], width: u8, into: &mut Vec<u8>) {
    if numbers.is_empty() {
        return;
    }
    put_length(((numbers.len() / GROUP) as u64) << 1 | 1, into);
    let (mut bits, mut count) = (0_u64, 0_u32);
    for number in numbers {
        bits |= u64::from(*number) << count;
        count += u32::from(width);
        while count >= 8 {
            into.push(bits as u8);
            bits >>= 8;
            count -= 8;
        }
    }
}

/// Appends a number, seven bits to a byte.
fn put_length(mut number: u64, into: &mut Vec<u8>) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}
