//! Tests that damage costs only what is damaged, and is counted.
use super::*;
use crate::wal::format::{ALIGN, SegmentHeader, frame_bytes};
use crate::wal::salvage::{SalvagedItem, pieces};
use proptest::prelude::*;
use std::ops::Range;

/// A WAL on a disk, and the locations of its records.
struct Image {
    disk: SimDisk,
    files: Vec<(PathBuf, Vec<u8>)>,
    records: Vec<RecordLocation>,
}

#[derive(Debug, Clone)]
struct RecordLocation {
    sequence: u64,
    payload: Vec<u8>,
    file: usize,
    bytes: Range<usize>,
}

impl Image {
    fn of(disk: &SimDisk) -> Self {
        let files: Vec<_> = disk.paths().into_iter().map(|path| (path.clone(), disk.file(&path))).collect();
        let mut records = Vec::new();
        for (file, (_, bytes)) in files.iter().enumerate() {
            let header = SegmentHeader::decode(bytes).unwrap();
            for piece in pieces(bytes, header.salt, header.bytes()).0 {
                let SalvagedItem::Intact { header, payload } = piece else { panic!("{piece:?}") };
                let end = payload + header.length;
                records.push(RecordLocation {
                    sequence: header.sequence,
                    payload: bytes[payload..end].to_vec(),
                    file,
                    bytes: payload - ALIGN..end,
                });
            }
        }
        Self { disk: disk.clone(), files, records }
    }

    /// Reads the WAL with one file changed, and restores the file.
    fn with(&self, file: usize, bytes: Vec<u8>) -> (Replay, Vec<(u64, Vec<u8>)>) {
        self.disk.put(&self.files[file].0, bytes);
        let read = contents(&self.disk);
        self.disk.put(&self.files[file].0, self.files[file].1.clone());
        read
    }

    /// Returns the records that must be found when only those for which `hit` is true are damaged.
    fn untouched(&self, hit: impl Fn(&RecordLocation) -> bool) -> Vec<(u64, Vec<u8>)> {
        let kept = self.records.iter().filter(|place| !hit(place));
        kept.map(|place| (place.sequence, place.payload.clone())).collect()
    }
}

/// Returns a WAL of two segments, with groups of one and of several records; the last group has one.
fn small_log() -> Image {
    let disk = SimDisk::new(1);
    let (log, ..) = open(&disk, WalOptions { segment_bytes: (16 << 10) + 1300, ..options() });
    for n in 0..3_u8 {
        store_together(&log, &[&[n; 100], &[n + 10; 129], &[]]);
    }
    store(&log, "the last").unwrap();
    drop(log);
    let image = Image::of(&disk);
    assert_eq!((image.files.len(), image.records.len()), (2, 13));
    image
}

#[test]
fn every_flipped_byte_costs_at_most_its_record() {
    let image = small_log();
    for file in 0..image.files.len() {
        for at in 0..image.files[file].1.len() {
            let mut bytes = image.files[file].1.clone();
            bytes[at] ^= [0xff, 1, 0x80, 0x10][at % 4];
            let (replay, records) = image.with(file, bytes);
            let expected = image.untouched(|place| place.file == file && place.bytes.contains(&at));
            assert!(records == expected, "byte {at} of file {file}: {replay:?}");
            let lost = (image.records.len() - records.len()) as u64;
            // Only the last group has no later one to confirm that it was acknowledged.
            let is_last = file == 1 && image.records.last().unwrap().bytes.contains(&at);
            assert_eq!(replay.damaged, if is_last { 0 } else { lost }, "byte {at} of file {file}");
            assert_eq!(replay.torn, if is_last { lost } else { 0 }, "byte {at} of file {file}");
            assert_eq!(replay.unreadable_segments, 0, "both copies of a header are not hit by one byte");
        }
    }
}

#[test]
fn every_truncation_costs_only_what_is_cut_off() {
    let image = small_log();
    for file in 0..image.files.len() {
        for length in 0..image.files[file].1.len() {
            let (replay, records) = image.with(file, image.files[file].1[..length].to_vec());
            let expected = image.untouched(|place| place.file == file && place.bytes.end > length);
            assert!(records == expected, "file {file} cut to {length}: {replay:?}");
            let lost = (image.records.len() - records.len()) as u64;
            if file == 0 {
                assert_eq!(replay.damaged, lost, "file {file} cut to {length}: {replay:?}");
            } else {
                assert_eq!(replay.damaged, 0, "nobody can tell this from a crash");
            }
        }
    }
}

#[test]
fn a_lost_segment_is_counted() {
    let image = small_log();
    let in_first = image.records.iter().filter(|place| place.file == 0).count() as u64;
    for bytes in [vec![0; 20 << 10], vec![0xff; 20 << 10], Vec::new()] {
        let (replay, records) = image.with(0, bytes);
        assert_eq!(records, image.untouched(|place| place.file == 0));
        assert!(
            replay.damaged == in_first || replay.damaged == 0 && replay.unreadable_segments == 0,
            "{replay:?}"
        );
    }
    // The damage hits all copies of the header, and nothing else.
    for range in [0..8192, 8192..16384] {
        let mut bytes = image.files[0].1.clone();
        bytes[range].fill(0xee);
        let (replay, records) = image.with(0, bytes);
        assert_eq!(records, image.untouched(|place| place.file == 0));
        assert_eq!((replay.damaged, replay.unreadable_segments), (in_first, 1));
    }
}

#[test]
fn a_hole_of_zeros_is_not_taken_for_the_end() {
    let image = small_log();
    let hit = image.records[2].bytes.start;
    let mut bytes = image.files[0].1.clone();
    bytes[hit..hit + 512].fill(0);
    let (replay, records) = image.with(0, bytes);
    let expected =
        image.untouched(|place| place.file == 0 && place.bytes.start < hit + 512 && place.bytes.end > hit);
    assert_eq!(records, expected);
    assert_eq!(replay.damaged, (image.records.len() - expected.len()) as u64);
}

/// Opening a damaged WAL works, changes no byte of it, and continues with new sequences.
#[test]
fn a_damaged_log_is_opened_and_left_as_it_is() {
    let image = small_log();
    for at in (0..image.files[1].1.len()).step_by(211) {
        let mut bytes = image.files[1].1.clone();
        let end = bytes.len().min(at + 300);
        bytes[at..end].fill(0x5a);
        let disk = image.disk.after_kill();
        disk.put(&image.files[1].0, bytes.clone());
        let (log, replay, records) = open(&disk, options());
        let sequence = store(&log, "new").unwrap();
        assert!(sequence > image.records.last().unwrap().sequence, "{replay:?}");
        drop(log);
        assert_eq!(disk.file(&image.files[1].0), bytes);
        let (_log, again, more) = open(&disk, options());
        assert_eq!((again.damaged, again.torn), (replay.damaged, replay.torn));
        assert_eq!(more[..records.len()], records);
        assert_eq!(more[records.len()..], [(sequence, b"new".to_vec())]);
    }
}

/// A sender puts whole frames and segments into its payloads, even such as it cannot know; then the frame around them
/// is damaged, and the reader has to search those bytes for the next frame.
#[test]
fn a_payload_never_passes_for_a_record() {
    let other = small_log();
    let disk = SimDisk::new(2);
    let (log, ..) = open(&disk, options());
    store(&log, "genuine").unwrap();
    let own = disk.file(&disk.paths()[0]);
    let header = SegmentHeader::decode(&own).unwrap();
    // These are frames of this segment, at all positions but their own, and those of another WAL.
    let mut forged = own[header.bytes()..header.bytes() + frame_bytes(7)].repeat(20);
    forged.extend_from_slice(&other.files[0].1[16 << 10..]);
    store(&log, forged.clone()).unwrap();
    store(&log, other.files[0].1.clone()).unwrap();
    store(&log, "after").unwrap();
    drop(log);
    let image = Image::of(&disk);
    for victim in [1, 2] {
        let RecordLocation { file, bytes: place, .. } = image.records[victim].clone();
        for at in place.start..place.start + ALIGN {
            let mut bytes = image.files[file].1.clone();
            bytes[at] ^= 0xff;
            let (replay, records) = image.with(file, bytes);
            assert_eq!(records, image.untouched(|place| place.sequence == victim as u64 + 1));
            assert_eq!((replay.damaged, replay.records), (1, 3));
        }
    }
    // They are not accepted even when the frame that was copied is gone, so that its sequence is missing.
    let mut bytes = image.files[0].1.clone();
    for place in &image.records[..2] {
        bytes[place.bytes.start] ^= 0xff;
    }
    assert_eq!(image.with(0, bytes).1, image.untouched(|place| place.sequence <= 2));
    // Payloads do not become segments when the header of the segment is gone, either.
    let mut bytes = image.files[0].1.clone();
    bytes[..8192].fill(0);
    let (_, records) = image.with(0, bytes);
    assert_eq!(records, image.untouched(|place| place.file == 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Whatever is done to the files: every record that is read was written, in order and once, and every untouched
    /// record is read if a copy of its segment's header is untouched.
    #[test]
    fn anything_may_happen_to_the_files(
        hits in prop::collection::vec((0_usize..2, 0_usize..19_000, 1_usize..3000, any::<u8>()), 1..6),
    ) {
        let image = {
            thread_local!(static IMAGE: Image = small_log());
            IMAGE.with(|image| Image { disk: image.disk.after_kill(), files: image.files.clone(), records: image.records.clone() })
        };
        let mut touched = [Vec::new(), Vec::new()];
        for (file, at, length, byte) in hits {
            let mut bytes = image.disk.file(&image.files[file].0);
            let range = at.min(bytes.len())..(at + length).min(bytes.len());
            bytes[range.clone()].fill(byte);
            touched[file].push(range);
            image.disk.put(&image.files[file].0, bytes);
        }
        let (replay, records) = contents(&image.disk);
        let overlaps = |file: usize, range: &Range<usize>| {
            touched[file].iter().any(|hit| hit.start < range.end && range.start < hit.end)
        };
        let header_lost = |file| {
            overlaps(file, &(0..128)) && overlaps(file, &(4096..4224)) || overlaps(file, &(8192..8203)) && overlaps(file, &(12288..12299))
        };
        let mut found = records.iter().peekable();
        for place in &image.records {
            let is_found = found.next_if(|record| record.0 == place.sequence);
            if let Some(record) = is_found {
                prop_assert_eq!(&record.1, &place.payload);
            } else {
                prop_assert!(overlaps(place.file, &place.bytes) || header_lost(place.file), "{:?} {:?}", place, replay);
                prop_assert!(replay.damaged + replay.torn > 0 || touched.iter().flatten().count() > 0);
            }
        }
        prop_assert!(found.next().is_none(), "nothing but what was written");
    }
}
