//! Hostile bodies that are cheap to build, because the sender of a bomb avoids effort, too.

use std::io::Write;

pub(super) const MIB: usize = 1 << 20;

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Returns a gibibyte of zeros in gzip: 256 members of 4 MiB each.
pub(super) fn gzip_bomb() -> Vec<u8> {
    gzip(&vec![0; 4 * MIB]).repeat(256)
}

/// Returns a gibibyte of zeros in zstd: 256 frames of 4 MiB each.
pub(super) fn zstd_bomb() -> Vec<u8> {
    zstd(&vec![0; 4 * MIB]).repeat(256)
}

/// Returns a few bytes that need a window of 128 MiB to be decompressed.
pub(super) fn zstd_window() -> Vec<u8> {
    let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(27).unwrap();
    encoder.write_all(b"{}").unwrap();
    encoder.finish().unwrap()
}

/// Returns a batch in one line: `context`, and this many failed items.
pub(super) fn batch(context: &str, items: usize) -> String {
    let items = vec![r#"{"success":false,"error":"x"}"#; items].join(",");
    format!("{{\"success\":true,{context}\"results\":[{items}]}}\n")
}

/// Returns as many copies as fit.
pub(super) fn fill(line: &str, bytes: usize) -> String {
    line.repeat(bytes / line.len())
}
